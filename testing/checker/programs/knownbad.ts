import type { Program } from '../../../src/checker/machine/program.ts'

/**
 * Common mistakes with shared memory, each with its correct version. The checker finds the mistake and passes
 * the correct version, exhaustively.
 */

function words(count: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(4 * count))
}

function expectEqual(actual: unknown, expected: unknown, what: string): void {
  if (actual !== expected) throw new Error(`${what} is ${String(actual)}, not ${String(expected)}`)
}

/** Checks a flag, then sleeps on another word: the notify may come between the two. */
export function sleepWithoutRecheck(right: boolean): Program {
  const memory = words(2)
  const FLAG = 0
  const SIGNAL = 1
  return {
    threads: {
      sleeper() {
        if (right) {
          while (Atomics.load(memory, FLAG) === 0) Atomics.wait(memory, FLAG, 0)
        } else if (Atomics.load(memory, FLAG) === 0) {
          Atomics.wait(memory, SIGNAL, 0)
        }
      },
      waker() {
        Atomics.store(memory, FLAG, 1)
        Atomics.notify(memory, right ? FLAG : SIGNAL)
      },
    },
  }
}

/** A ring for one producer and one consumer that moves its head before it writes the value. */
export function publishBeforeWrite(right: boolean): Program {
  const HEAD = 0
  const TAIL = 1
  const SLOTS = 2
  const capacity = 2
  const memory = words(SLOTS + capacity)
  const push = (value: number): boolean => {
    const head = memory[HEAD]
    const next = (head + 1) % capacity
    if (next === Atomics.load(memory, TAIL)) return false
    if (right) memory[SLOTS + head] = value
    Atomics.store(memory, HEAD, next)
    if (!right) memory[SLOTS + head] = value
    return true
  }
  const pop = (): number => {
    const tail = memory[TAIL]
    if (tail === Atomics.load(memory, HEAD)) return 0
    const value = memory[SLOTS + tail]
    Atomics.store(memory, TAIL, (tail + 1) % capacity)
    return value
  }
  return {
    threads: {
      producer() {
        for (let value = 1; value <= 3; value++) while (!push(value));
      },
      consumer() {
        for (let expected = 1; expected <= 3; expected++) {
          let value = pop()
          while (value === 0) value = pop()
          expectEqual(value, expected, 'the value')
        }
      },
    },
  }
}

/** Initialises once, under a lock, after it has checked a flag that is not atomic. */
export function doubleCheckedFlag(right: boolean): Program {
  const LOCK = 0
  const READY = 1
  const VALUE = 2
  const memory = words(3)
  const isReady = (): boolean => (right ? Atomics.load(memory, READY) : memory[READY]) === 1
  const value = (): number => {
    if (!isReady()) {
      while (Atomics.compareExchange(memory, LOCK, 0, 1) !== 0);
      if (!isReady()) {
        memory[VALUE] = 42
        if (right) Atomics.store(memory, READY, 1)
        else memory[READY] = 1
      }
      Atomics.store(memory, LOCK, 0)
    }
    return memory[VALUE]
  }
  return {
    threads: {
      first: () => expectEqual(value(), 42, 'the value'),
      second: () => expectEqual(value(), 42, 'the value'),
    },
  }
}

/**
 * A futex mutex: 0 free, 1 held, 2 held and a thread may sleep. A woken thread must lock it as 2, because a
 * third thread may still sleep. If it locks as 1, the next unlock wakes no thread.
 */
export function unlockForgetsWaiters(right: boolean): Program {
  const memory = words(2)
  const lock = (): void => {
    let seen = Atomics.compareExchange(memory, 0, 0, 1)
    while (seen !== 0) {
      if (seen === 2 || Atomics.compareExchange(memory, 0, 1, 2) !== 0) Atomics.wait(memory, 0, 2)
      seen = Atomics.compareExchange(memory, 0, 0, right ? 2 : 1)
    }
  }
  const unlock = (): void => {
    if (Atomics.exchange(memory, 0, 0) === 2) Atomics.notify(memory, 0, 1)
  }
  const body = (): void => {
    lock()
    memory[1]++
    unlock()
  }
  return { threads: [body, body, body], final: () => expectEqual(memory[1], 3, 'the counter') }
}

/**
 * A free list whose pop compares only the head: the node may have been popped and pushed back with another
 * next.
 */
export function abaFreeList(right: boolean): Program {
  // Nodes 1 and 2; NEXT + n is the next of node n. The head has a version above its low four bits.
  const HEAD = 0
  const NEXT = 0
  const memory = words(3)
  memory[HEAD] = 1
  memory[NEXT + 1] = 2
  const version = right ? 16 : 0
  const pop = (): number => {
    for (;;) {
      const head = Atomics.load(memory, HEAD)
      const node = head & 15
      if (node === 0) return 0
      const next = Atomics.load(memory, NEXT + node)
      if (Atomics.compareExchange(memory, HEAD, head, ((head & ~15) + version) | next) === head) return node
    }
  }
  const push = (node: number): void => {
    for (;;) {
      const head = Atomics.load(memory, HEAD)
      Atomics.store(memory, NEXT + node, head & 15)
      if (Atomics.compareExchange(memory, HEAD, head, ((head & ~15) + version) | node) === head) return
    }
  }
  return {
    threads: {
      taker: () => pop(),
      mixer() {
        const a = pop()
        const b = pop()
        if (a !== 0) push(a)
        return b
      },
    },
    final({ results }) {
      const owned = results.filter(node => node !== 0)
      const free: number[] = []
      for (let node = memory[HEAD] & 15; node !== 0 && free.length < 3; node = memory[NEXT + node])
        free.push(node)
      const all = [...owned, ...free]
      expectEqual(new Set(all).size, all.length, `how many of the nodes ${all.join()} are different`)
      expectEqual(all.length, 2, 'the number of nodes')
    },
  }
}

/** Two threads lock two mutexes in opposite orders. */
export function lockOrder(right: boolean): Program {
  const memory = words(2)
  const lock = (mutex: number): void => {
    while (Atomics.exchange(memory, mutex, 2) !== 0) Atomics.wait(memory, mutex, 2)
  }
  const unlock = (mutex: number): void => {
    Atomics.store(memory, mutex, 0)
    Atomics.notify(memory, mutex, 1)
  }
  const both = (first: number, second: number): void => {
    lock(first)
    lock(second)
    unlock(second)
    unlock(first)
  }
  return { threads: { one: () => both(0, 1), two: () => (right ? both(0, 1) : both(1, 0)) } }
}

/** A 64-bit value read as two halves while another thread writes it. */
export function tornRead(right: boolean): Program {
  const memory = words(2)
  const whole = new BigInt64Array(memory.buffer)
  return {
    threads: {
      writer() {
        if (right) {
          Atomics.store(whole, 0, -1n)
        } else {
          Atomics.store(memory, 0, -1)
          Atomics.store(memory, 1, -1)
        }
      },
      reader() {
        const value = right
          ? Atomics.load(whole, 0)
          : BigInt(Atomics.load(memory, 0) >>> 0) | (BigInt(Atomics.load(memory, 1)) << 32n)
        if (value !== 0n && value !== -1n) throw new Error(`torn: ${value.toString(16)}`)
      },
    },
  }
}

/** The same with one plain 64-bit access: the language may split it, so it is a data race. */
export function tornPlainRead(right: boolean): Program {
  const whole = new BigInt64Array(new SharedArrayBuffer(8))
  return {
    threads: {
      writer() {
        if (right) Atomics.store(whole, 0, -1n)
        else whole[0] = -1n
      },
      reader: () => (right ? Atomics.load(whole, 0) : whole[0]),
    },
  }
}
