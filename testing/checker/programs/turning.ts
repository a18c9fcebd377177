import type { Program } from '../../../src/checker/machine/program.ts'

/**
 * Loops that wait for a word and change private state in each turn. None is a livelock, and each may end with
 * more than one count. A checker that treats one of their turns as useless would lose outcomes, or report a
 * livelock.
 */
const words = (count: number): Int32Array<SharedArrayBuffer> =>
  new Int32Array(new SharedArrayBuffer(4 * count))

function* counting(): Generator<number> {
  for (let n = 1; ; n++) yield n
}

/** The code of a turn beside its load; true after three turns, which ends the loop. */
const hidden: Record<string, () => () => boolean> = {
  'a generator': () => {
    const numbers = counting()
    return () => (numbers.next().value as number) >= 3
  },
  'a proxy': () => {
    let n = 0
    const counted: any = new Proxy({}, { get: () => ++n })
    return () => counted.anything >= 3
  },
  toString: () => {
    let n = 0
    const counted = { toString: () => String(++n) }
    return () => `${counted}` === '3'
  },
  valueOf: () => {
    let n = 0
    const counted = { valueOf: () => ++n }
    return () => Number(counted) >= 3
  },
  'a conversion': () => {
    let n = 0
    const counted: any = { valueOf: () => ++n }
    return () => counted >= 3
  },
  'an iterator': () => {
    let n = 0
    const list = { [Symbol.iterator]: () => ({ next: () => ({ done: ++n % 2 === 0, value: n }) }) }
    return () => Math.max(...(list as never as number[])) >= 5
  },
  'Atomics of its own': () => {
    const own = new Int32Array(1)
    return () => Atomics.add(own, 0, 1) >= 2
  },
  'a getter': () => {
    let n = 0
    const counted = {
      get next() {
        return ++n
      },
    }
    return () => counted.next >= 3
  },
  'a computed getter': () => {
    let n = 0
    const counted: any = {
      get [`ne${'xt'}`]() {
        return ++n
      },
    }
    return () => counted.next >= 3
  },
  'a var': () => {
    const held = { n: 0 }
    return () => ++held.n >= 3
  },
  sort: () => {
    const list = [3, 2, 1]
    let n = 0
    return () => {
      list.sort(() => (n++, 0))
      return n >= 5
    }
  },
  json: () => {
    let n = 0
    const counted = { toJSON: () => ++n }
    return () => JSON.stringify(counted) === '3'
  },
}

/** Evaluates code that is not instrumented; `n` counts in it. */
const foreign = (text: string): any => new Function(`let n = 0; return ${text}`)()

/** The same where the counting code is not instrumented, or is part of the language. */
const unseen: Record<string, () => () => boolean> = {
  'a getter': () => {
    const it = foreign('{ get n() { return ++n } }')
    return () => it.n >= 3
  },
  'a getter, by a chain': () => {
    const it = foreign('{ get n() { return ++n } }')
    return () => it?.n >= 3
  },
  'a getter of the length': () => {
    const it = foreign('{ get length() { return ++n } }')
    return () => it.length >= 3
  },
  'a getter, by a computed key': () => {
    const it = foreign('{ get n() { return ++n } }')
    return () => it[`${'n'}`] >= 3
  },
  'a getter, by a pattern': () => {
    const it = foreign('{ get n() { return ++n } }')
    return () => {
      const { n } = it
      return n >= 3
    }
  },
  'a getter, by a spread': () => {
    const it = foreign('{ get n() { return ++n } }')
    return () => ({ ...it }).n >= 3
  },
  'a getter that throws': () => {
    const it = foreign('{ get n() { if (++n >= 3) throw n } }')
    return () => {
      try {
        return it.n === 0
      } catch {
        return true
      }
    }
  },
  'a proxy': () => {
    const it = foreign('new Proxy({}, { get: () => ++n })')
    return () => it.n >= 3
  },
  'a proxy behind another object': () => {
    const it = Object.create(foreign('new Proxy({}, { get: () => ++n })'))
    return () => it.n >= 3
  },
  in: () => {
    const it = foreign('new Proxy({}, { has: () => ++n >= 3 })')
    return () => 'x' in it
  },
  instanceof: () => {
    const it = foreign('{ [Symbol.hasInstance]: () => ++n >= 3 }')
    return () => ({}) instanceof it
  },
  'for in': () => {
    const it = foreign(
      'new Proxy({}, { ownKeys: () => (++n, []) , getPrototypeOf: () => n >= 3 ? { x: 1 } : null })',
    )
    return () => {
      for (const _ in it) return true
      return false
    }
  },
  plus: () => {
    const it = foreign('{ valueOf: () => ++n }')
    return () => it + 0 >= 3
  },
  minus: () => {
    const it = foreign('{ valueOf: () => ++n }')
    return () => -it <= -3
  },
  equals: () => {
    const it = foreign('{ valueOf: () => ++n }')
    // oxlint-disable-next-line eqeqeq
    return () => it == 3
  },
  'a template': () => {
    const it = foreign('{ toString: () => ++n }')
    return () => `${it}` === '3'
  },
  'a key': () => {
    const it = foreign('{ toString: () => ++n }')
    const table: any = { 3: true }
    return () => table[it] === true
  },
  'a key of a literal': () => {
    const it = foreign('{ toString: () => ++n }')
    return () => Object.keys({ [it]: 1 })[0] === '3'
  },
  'an argument of Math': () => {
    const it = foreign('{ valueOf: () => ++n }')
    return () => Math.max(it, 0) >= 3
  },
  'an index of Atomics': () => {
    const own = new Int32Array(4)
    own[3] = 1
    const it = foreign('{ valueOf: () => ++n }')
    return () => Atomics.load(own, it) === 1
  },
  'a pattern of positions': () => {
    const it = foreign('{ *[Symbol.iterator]() { yield ++n } }')
    return () => {
      const [n] = it
      return n >= 3
    }
  },
  'a pattern in a pattern': () => {
    const it = { inner: foreign('{ get n() { return ++n } }') }
    return () => {
      const {
        inner: { n },
      } = it
      return n >= 3
    }
  },
  'a spread': () => {
    const it = foreign('{ *[Symbol.iterator]() { yield ++n } }')
    return () => [...it][0] >= 3
  },
  'a getter that is bound': () => {
    const left = [0, 0, 1]
    const it = Object.defineProperty({} as any, 'n', { get: left.shift.bind(left) })
    return () => it.n === 1
  },
  'valueOf that is bound': () => {
    const left = [0, 0, 1]
    const it: any = { valueOf: left.shift.bind(left) }
    return () => it * 1 === 1
  },
  'a trap that is bound': () => {
    const left = [0, 0, 1]
    const it: any = new Proxy({}, { get: left.shift.bind(left) as never })
    return () => it.n === 1
  },
  'a method of the language by call': () => {
    const list = { length: 0 }
    return () => Array.prototype.push.call(list, 1) >= 3
  },
  'a method of the language by Reflect.apply': () => {
    const list: number[] = []
    return () => Reflect.apply(Array.prototype.push, list, [1]) >= 3
  },
  'a callback that is bound': () => {
    const list: number[] = []
    return () => {
      ;[1].forEach(Array.prototype.push.bind(list))
      return list.length >= 7
    }
  },
  'a static field': () => {
    let n = 0
    return () => {
      // oxlint-disable-next-line no-extraneous-class
      class Counted {
        static n = ++n
      }
      return Counted.n >= 3
    }
  },
}
for (const [name, make] of Object.entries(unseen)) hidden[`unseen: ${name}`] = make

export const kinds: readonly string[] = Object.keys(hidden)

/** Waits for the word for at most three turns. */
export function givesUp(kind: string): Program {
  const memory = words(1)
  return {
    threads: [
      () => {
        const enough = hidden[kind]!()
        while (Atomics.load(memory, 0) === 0) if (enough()) return 'gave up'
        return 'seen'
      },
      () => Atomics.store(memory, 0, 1),
    ],
  }
}

/** Counts in a `var` inside the turn. */
export function turnsInVar(): Program {
  const memory = words(1)
  return {
    threads: [
      () => {
        while (Atomics.load(memory, 0) === 0) {
          // oxlint-disable-next-line no-var
          var n: number = (n! || 0) + 1
          if (n >= 3) return 'gave up'
        }
        return 'seen'
      },
      () => Atomics.store(memory, 0, 1),
    ],
  }
}

/** Loops that wait for ever without another thread, with an effect in each turn. */
export function counts(how: 'variable' | 'object' | 'new' | 'array' | 'for of' | 'recursion'): Program {
  const memory = words(1)
  const spin = (n: number): number => (Atomics.load(memory, 0) === 0 ? spin(n + 1) : n)
  const bodies = {
    variable() {
      let spins = 0
      while (Atomics.load(memory, 0) === 0) spins++
      return spins
    },
    object() {
      const held = { spins: 0 }
      while (Atomics.load(memory, 0) === 0) held.spins++
      return held.spins
    },
    new() {
      let last: object | undefined
      let spins = 0
      for (; Atomics.load(memory, 0) === 0; spins++) last = new Map()
      return last === undefined ? 0 : spins
    },
    array() {
      const list = [0]
      while (Atomics.load(memory, 0) === 0) list[0]!++
      return list[0]
    },
    'for of'() {
      for (const n of counting()) if (Atomics.load(memory, 0) !== 0) return n - 1
      return -1
    },
    recursion: () => spin(0),
  }
  return { threads: { spinner: bodies[how], other: () => Atomics.store(memory, 0, 1) } }
}

/** A handwritten lock whose waiters count. */
export function countedLock(threads: number): Program {
  const memory = words(2)
  return {
    threads: Array.from({ length: threads }, () => () => {
      let spins = 0
      while (Atomics.compareExchange(memory, 0, 0, 1) !== 0) spins++
      memory[1]!++
      Atomics.store(memory, 0, 0)
      return spins >= 0
    }),
    final() {
      if (memory[1] !== threads) throw new Error(`it is ${memory[1]}`)
    },
  }
}

/** Two threads that wait for each other, and count. */
export function countedDeadlock(): Program {
  const memory = words(2)
  const wait = (mine: number, other: number) => () => {
    let n = 0
    while (Atomics.load(memory, other) === 0) n++
    Atomics.store(memory, mine, 1)
    return n
  }
  return { threads: [wait(0, 1), wait(1, 0)] }
}

/** Memory that grows while another thread reads it. */
export function grows(how: 'length' | 'element' | 'write' | 'bytes'): Program {
  const buffer = new SharedArrayBuffer(4, { maxByteLength: 8 })
  const memory = new Int32Array(buffer)
  return {
    threads: [
      () => {
        if (how === 'length') return memory.length
        if (how === 'bytes') return buffer.byteLength
        if (how === 'element') return memory[1]
        memory[1] = 5
        return memory[1]
      },
      () => buffer.grow(8),
    ],
  }
}
