import type { Program } from '../../../src/checker/check.ts'

/**
 * Threads that share a variable or an object beside memory. Their steps do not depend on one another, so one
 * order of them covers all orders of the accesses to memory.
 */
export interface Sharing {
  readonly what: string
  readonly program: () => Program
}

const sharing = (what: string, program: (m: Int32Array<SharedArrayBuffer>) => Program): Sharing => ({
  what,
  program: () => program(new Int32Array(new SharedArrayBuffer(32))),
})

function refuse(text: string): never {
  throw new Error(text)
}

/** A list in which each of two threads writes its number. */
function ordered(m: Int32Array, wrong: string): Program {
  const order: number[] = []
  const thread = (n: number) => (): void => {
    Atomics.store(m, n, 1)
    order.push(n)
  }
  return { threads: [thread(1), thread(2)], final: () => void (order.join('') === wrong && refuse(wrong)) }
}

/** Each fails in an order of its threads. */
export const unsound: readonly Sharing[] = [
  sharing('a variable that the first thread reads', m => {
    let ready = false
    return {
      threads: [
        () => {
          Atomics.store(m, 0, 1)
          if (ready) refuse('it is ready')
        },
        () => {
          Atomics.store(m, 1, 1)
          ready = true
        },
      ],
    }
  }),
  sharing('a variable that the second thread reads', m => {
    let ready = false
    return {
      threads: [
        () => {
          Atomics.store(m, 0, 1)
          ready = true
        },
        () => {
          Atomics.store(m, 1, 1)
          if (!ready) refuse('it is not ready')
        },
      ],
    }
  }),
  sharing('a variable that is read before the first step', m => {
    let ready = false
    return {
      threads: [
        () => {
          const seen = ready
          Atomics.store(m, 0, 1)
          if (seen) refuse('it was ready')
        },
        () => {
          ready = true
          Atomics.store(m, 1, 1)
        },
      ],
    }
  }),
  sharing('a counter that is read and written', m => {
    let count = 0
    const add = (n: number) => (): void => {
      Atomics.load(m, n)
      const seen = count
      Atomics.store(m, n, 1)
      count = seen + 1
    }
    return { threads: [add(0), add(1)], final: () => void (count === 2 || refuse('lost')) }
  }),
  sharing('an array of the heap', m => {
    const words = new Int32Array(1)
    const add = (n: number) => (): void => {
      Atomics.load(m, n)
      const seen = words[0]
      Atomics.store(m, n, 1)
      words[0] = seen + 1
    }
    return { threads: [add(0), add(1)], final: () => void (words[0] === 2 || refuse('lost')) }
  }),
  sharing('a list, in one order', m => ordered(m, '12')),
  sharing('a list, in the other order', m => ordered(m, '21')),
  sharing('a cache', m => {
    const cache = new Map<string, number>()
    let made = 0
    const get = (n: number) => (): void => {
      Atomics.load(m, n)
      if (cache.has('key')) return
      Atomics.store(m, n, 1)
      cache.set('key', ++made)
    }
    return { threads: [get(0), get(1)], final: () => void (made === 1 || refuse('made twice')) }
  }),
  sharing('a variable that decides the next step', m => {
    let ready = false
    return {
      threads: [
        () => {
          Atomics.store(m, 0, 1)
          if (ready) Atomics.store(m, 2, 1)
        },
        () => {
          Atomics.store(m, 1, 1)
          ready = true
        },
      ],
    }
  }),
]

/** None depends on the order: the result is sound. */
export const sound: readonly Sharing[] = [
  sharing('a count', m => {
    let count = 0
    const add = (n: number) => (): void => {
      Atomics.store(m, n, 1)
      count++
    }
    return { threads: [add(0), add(1)], final: () => void (count === 2 || refuse('lost')) }
  }),
  sharing('a list under a lock', m => {
    const list: number[] = []
    const add = (n: number) => (): void => {
      while (Atomics.compareExchange(m, 0, 0, 1) !== 0);
      list.push(n)
      Atomics.store(m, 0, 0)
    }
    return { threads: [add(0), add(1)], final: () => void (list.length === 2 || refuse('lost')) }
  }),
  sharing('a list that waits and timeouts fill', m => {
    const list: unknown[] = []
    const waiter = (): void => {
      list.push(Atomics.wait(m, 0, 0, 10))
      list.push(Atomics.load(m, 1))
    }
    const waker = (): void => {
      Atomics.store(m, 0, 1)
      list.push(Atomics.notify(m, 0))
    }
    return { threads: [waiter, waiter, waker], final: () => void (list.length === 5 || refuse('lost')) }
  }),
]

/** Values that are not equal to themselves, or equal to another value. */
export function floats(): Program {
  const words = new Float64Array(new SharedArrayBuffer(16))
  const write = (): void => {
    words[0] = Number.NaN
    words[1] = -0
  }
  return { threads: [write, write, () => words[0]] }
}
