import type { Body, Program } from '../../../src/checker/machine/program.ts'

/**
 * Programs with a published, or obvious, number of Mazurkiewicz traces under sequential consistency. A
 * reduction that loses a trace, or runs one twice, gets another number.
 */

function words(count: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(4 * count))
}

function bodies(count: number, body: (thread: number) => Body): Body[] {
  return Array.from({ length: count }, (_, thread) => body(thread))
}

/** One writer and n readers of one word: each reader is before or after, 2^n. */
export function readers(n: number): Program {
  const x = words(1)
  return { threads: [() => Atomics.store(x, 0, 1), ...bodies(n, () => () => Atomics.load(x, 0))] }
}

/**
 * One thread searches for the last zero in an array, while each of n threads writes one element: the element
 * before it plus one.
 */
export function lastzero(n: number): Program {
  const array = words(n + 1)
  return {
    threads: [
      () => {
        let i = n
        while (Atomics.load(array, i) !== 0) i--
      },
      ...bodies(n, thread => () => {
        Atomics.store(array, thread + 1, Atomics.load(array, thread) + 1)
      }),
    ],
  }
}

/** n threads put four messages each into a hash table with linear probing. */
export function indexer(n: number): Program {
  const size = 128
  const table = words(size)
  return {
    threads: bodies(n, thread => () => {
      for (let message = 1; message <= 4; message++) {
        const w = message * 11 + thread
        let h = (w * 7) % size
        while (Atomics.compareExchange(table, h, 0, w) !== 0) h = (h + 1) % size
      }
    }),
  }
}

/** n threads allocate an inode and a free block for it, with a lock for each inode and each block. */
export function filesystem(n: number): Program {
  const blocks = 26
  const inodes = 32
  const lockInode = words(inodes)
  const lockBlock = words(blocks)
  const inode = words(inodes)
  const busy = words(blocks)
  return {
    threads: bodies(n, thread => () => {
      const i = thread % inodes
      lock(lockInode, i)
      if (Atomics.load(inode, i) === 0) {
        let b = (i * 2) % blocks
        for (;;) {
          lock(lockBlock, b)
          if (Atomics.load(busy, b) === 0) {
            Atomics.store(busy, b, 1)
            Atomics.store(inode, i, b + 1)
            unlock(lockBlock, b)
            break
          }
          unlock(lockBlock, b)
          b = (b + 1) % blocks
        }
      }
      unlock(lockInode, i)
    }),
  }
}

/** Two threads add i to j and j to i, n times each; a third reads both. */
export function fibonacci(n: number): Program {
  const pair = words(2)
  pair.fill(1)
  const adder = (to: number, from: number): Body => {
    return () => {
      for (let k = 0; k < n; k++) {
        Atomics.store(pair, to, Atomics.load(pair, to) + Atomics.load(pair, from))
      }
    }
  }
  return {
    threads: [
      adder(0, 1),
      adder(1, 0),
      () => {
        Atomics.load(pair, 0)
        Atomics.load(pair, 1)
      },
    ],
  }
}

/** n threads increment a counter under one spin lock: n!. */
export function locked(n: number): Program {
  const memory = words(2)
  return {
    threads: bodies(n, () => () => {
      lock(memory, 0)
      memory[1]++
      unlock(memory, 0)
    }),
    final: () => {
      if (memory[1] !== n) throw new Error(`the counter is ${memory[1]}, not ${n}`)
    },
  }
}

/** Handwritten locks: how each locks and unlocks. */
export const handmade: Record<
  string,
  { take(m: Int32Array): number; give(m: Int32Array, ticket: number): void }
> = {
  'compare-exchange': {
    take(m) {
      while (Atomics.compareExchange(m, 0, 0, 1) !== 0);
      return 0
    },
    give: m => void Atomics.store(m, 0, 0),
  },
  'compare-exchange with a pause': {
    take(m) {
      while (Atomics.compareExchange(m, 0, 0, 1) !== 0) Atomics.pause?.()
      return 0
    },
    give: m => void Atomics.store(m, 0, 0),
  },
  exchange: {
    take(m) {
      while (Atomics.exchange(m, 0, 1) === 1);
      return 0
    },
    give: m => void Atomics.store(m, 0, 0),
  },
  'test and test-and-set': {
    take(m) {
      for (;;) {
        while (Atomics.load(m, 0) !== 0) Atomics.pause?.()
        if (Atomics.compareExchange(m, 0, 0, 1) === 0) return 0
      }
    },
    give: m => void Atomics.store(m, 0, 0),
  },
  tickets: {
    take(m) {
      const ticket = Atomics.add(m, 0, 1)
      while (Atomics.load(m, 2) !== ticket);
      return ticket
    },
    give: (m, ticket) => void Atomics.store(m, 2, ticket + 1),
  },
}

/** n threads increment a counter under a handwritten lock; `released`: they unlock it. */
export function lockedBy(name: string, n: number, released: boolean = true): Program {
  const memory = words(3)
  const { take, give } = handmade[name]!
  return {
    threads: bodies(n, () => () => {
      const ticket = take(memory)
      memory[1]!++
      if (released) give(memory, ticket)
    }),
    final: () => {
      if (memory[1] !== n) throw new Error(`the counter is ${memory[1]}, not ${n}`)
    },
  }
}

/** A thread waits for a lock that another holds, and the holder unlocks it by a plain write. */
export function plainUnlock(): Program {
  const memory = words(1)
  return {
    threads: {
      spinner() {
        while (Atomics.load(memory, 0) !== 2);
      },
      other() {
        memory[0] = 1
        Atomics.store(memory, 0, 2)
      },
    },
  }
}

/** n fetch-and-adds on one word: n!. */
export function adders(n: number): Program {
  const x = words(1)
  return {
    threads: bodies(n, () => () => Atomics.add(x, 0, 1)),
    final: () => {
      if (x[0] !== n) throw new Error(`the sum is ${x[0]}, not ${n}`)
    },
  }
}

function lock(words: Int32Array, index: number): void {
  while (Atomics.compareExchange(words, index, 0, 1) !== 0);
}

function unlock(words: Int32Array, index: number): void {
  Atomics.store(words, index, 0)
}
