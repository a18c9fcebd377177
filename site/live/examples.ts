/** The checks that the page begins with. */
export const examples: readonly { readonly name: string; readonly code: string }[] = [
  {
    name: 'A counter',
    code: `import { check } from 'heddle/checker'

check('two increments are two', () => {
  const memory = new Int32Array(new SharedArrayBuffer(4))
  const add = () => { memory[0] = memory[0] + 1 }
  return {
    threads: { one: add, two: add },
    final: () => { if (memory[0] !== 2) throw new Error('it is ' + memory[0]) },
  }
})
`,
  },
  {
    name: 'A lost wakeup',
    code: `import { check } from 'heddle/checker'

check('the sleeper wakes', () => {
  const flag = new Int32Array(new SharedArrayBuffer(4))
  return {
    threads: {
      sleeper() { if (Atomics.load(flag, 0) === 0) Atomics.wait(flag, 0, 0) },
      ringer() { Atomics.notify(flag, 0); Atomics.store(flag, 0, 1) },
    },
  }
})
`,
  },
  {
    name: 'A lock that works',
    code: `import { check } from 'heddle/checker'

check('a lock keeps two threads apart', () => {
  const memory = new Int32Array(new SharedArrayBuffer(8))
  const add = () => {
    while (Atomics.compareExchange(memory, 0, 0, 1) !== 0);
    memory[1] = memory[1] + 1
    Atomics.store(memory, 0, 0)
  }
  return {
    threads: { one: add, two: add, three: add },
    final: () => { if (memory[1] !== 3) throw new Error('it is ' + memory[1]) },
  }
})
`,
  },
]
