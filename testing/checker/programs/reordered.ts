/** Programs whose steps tests put into other orders. */
import { CheckedMutex, type Program } from '../../../src/checker/check.ts'

/** Two threads count without any order between them. */
export function counter(): Program {
  const memory = new Int32Array(new SharedArrayBuffer(4))
  const add = () => {
    memory[0] = memory[0] + 1
  }
  return { threads: { one: add, two: add } }
}

/** A thread that sleeps until the other has stored and notified. */
export function bell(): Program {
  const memory = new Int32Array(new SharedArrayBuffer(8))
  return {
    threads: {
      sleeper: () => {
        Atomics.wait(memory, 0, 0)
        return Atomics.load(memory, 1)
      },
      ringer: () => {
        Atomics.store(memory, 1, 7)
        Atomics.store(memory, 0, 1)
        Atomics.notify(memory, 0)
      },
    },
    final: ({ results }) => results[0],
  }
}

/** Two threads count under a mutex. */
export function locked(): Program {
  const mutex = new CheckedMutex()
  const memory = new Int32Array(new SharedArrayBuffer(4))
  const add = () => {
    mutex.lock()
    memory[0] = memory[0] + 1
    mutex.unlock()
  }
  return { threads: { one: add, two: add } }
}

/** Two threads count, and the sum is checked: for memory in which both writes may come from one value. */
export function lossy(): Program {
  const memory = new Int32Array(new SharedArrayBuffer(4))
  const add = () => {
    memory[0] = memory[0] + 1
  }
  return {
    threads: { one: add, two: add },
    final: () => {
      if (memory[0] !== 2) throw new Error(`it is ${memory[0]}`)
    },
  }
}
