import { markAllocated, markFreed } from '../../../src/checker/machine/lifetimes.ts'
import type { Program } from '../../../src/checker/machine/program.ts'
import { CheckedMutex } from '../../../src/checker/machine/mutex.ts'

/** Small programs that each show one behaviour or one refusal of the checker. */

function words(count: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(4 * count))
}

/** A wait with a timeout, which can return all three results. */
export function timedWait(): Program {
  const memory = words(1)
  return {
    threads: {
      sleeper: () => Atomics.wait(memory, 0, 0, 10),
      waker() {
        Atomics.notify(memory, 0)
        Atomics.store(memory, 0, 1)
      },
    },
  }
}

/** Two sleepers and one notify: the first sleeper is woken. */
export function fifoWake(): Program {
  const memory = words(2)
  const sleep = (): number => {
    const order = Atomics.add(memory, 1, 1)
    Atomics.wait(memory, 0, 0, 10)
    return order
  }
  return { threads: { one: sleep, two: sleep, waker: () => Atomics.notify(memory, 0, 1) } }
}

/** The promise of a waitAsync, awaited. */
export function asyncWait(timeout: number | undefined): Program {
  const memory = words(1)
  return {
    threads: {
      async sleeper() {
        const { async, value } = Atomics.waitAsync(memory, 0, 0, timeout)
        return async ? await value : value
      },
      waker() {
        Atomics.store(memory, 0, 1)
        return Atomics.notify(memory, 0)
      },
    },
  }
}

/** Spins for a change that no thread makes. */
export function spinsForever(): Program {
  const memory = words(1)
  return {
    threads: {
      spinner() {
        while (Atomics.load(memory, 0) === 0) Atomics.pause?.()
      },
      other: () => Atomics.load(memory, 0),
    },
  }
}

/** Spins for a change that the other thread makes, with more than one read in a turn. */
export function spinsUntil(): Program {
  const memory = words(2)
  return {
    threads: {
      spinner() {
        for (;;) {
          if (Atomics.load(memory, 0) === 1 && Atomics.load(memory, 1) === 1) break
        }
      },
      first: () => Atomics.store(memory, 0, 1),
      second: () => Atomics.store(memory, 1, 1),
    },
  }
}

const pause: () => void = Atomics.pause ?? (() => undefined)

/** The same with a pause under another name. */
export function spinsWithPause(): Program {
  const memory = words(1)
  return {
    threads: {
      spinner() {
        while (Atomics.load(memory, 0) === 0) pause()
      },
      other: () => Atomics.store(memory, 0, 1),
    },
  }
}

/** Counts its turns and stops after three, so no turn may be left out. */
export function boundedSpin(): Program {
  const memory = words(1)
  return {
    threads: {
      spinner() {
        for (let turn = 0; turn < 3; turn++) if (Atomics.load(memory, 0) === 1) return 'seen'
        return 'gave up'
      },
      other: () => Atomics.store(memory, 0, 1),
    },
  }
}

/** The same with the count in an object, where the checker cannot see it. */
export function boundedSpinInObject(): Program {
  const memory = words(1)
  const state = { turns: 0 }
  return {
    threads: {
      spinner() {
        for (;;) {
          if (state.turns++ === 3) return 'gave up'
          if (Atomics.load(memory, 0) === 1) return 'seen'
        }
      },
      other: () => Atomics.store(memory, 0, 1),
    },
  }
}

/** Two threads that yield to each other, for ever if they move in step. */
export function politeLivelock(): Program {
  const memory = words(2)
  const body = (me: number): void => {
    for (;;) {
      Atomics.store(memory, me, 1)
      if (Atomics.load(memory, 1 - me) === 0) break
      Atomics.store(memory, me, 0)
    }
    Atomics.store(memory, me, 0)
  }
  return { threads: { one: () => body(0), two: () => body(1) } }
}

/** Reads memory that another thread may have freed. */
export function useAfterFree(right: boolean): Program {
  const memory = words(2)
  const FLAG = 0
  const RECORD = 1
  return {
    threads: {
      owner() {
        markAllocated(memory, RECORD, 1)
        Atomics.store(memory, RECORD, 7)
        if (right) while (Atomics.load(memory, FLAG) === 0);
        markFreed(memory, RECORD, 1)
      },
      reader() {
        Atomics.load(memory, RECORD)
        Atomics.store(memory, FLAG, 1)
      },
    },
  }
}

/** A thread dies while it holds a lock, with or without a recovery. */
export function deadHolder(recovers: boolean): Program {
  const memory = words(2)
  const locked = (id: number): void => {
    while (Atomics.compareExchange(memory, 0, 0, id) !== 0);
    Atomics.add(memory, 1, 1)
    Atomics.store(memory, 0, 0)
  }
  const threads = { mortal: () => locked(1), survivor: () => locked(2) }
  if (!recovers) return { threads }
  return {
    threads,
    recover: (dead: number) => Atomics.compareExchange(memory, 0, dead + 1, 0),
    final({ crashed, results }) {
      if (crashed.length > 1) throw new Error('one death was asked for')
      if (results.length !== 3) throw new Error('two threads and a recovery have results')
    },
  }
}

/** Loops without an operation. */
export function endlessLoop(): Program {
  const memory = words(1)
  let stop = false
  return {
    threads: [
      () => {
        for (;;) if (stop) return
      },
      () => {
        Atomics.store(memory, 0, 1)
        stop = true
      },
    ],
  }
}

/** Never ends, and takes a step in each turn. */
export function endlessSteps(): Program {
  const memory = words(1)
  return {
    threads: [
      () => {
        for (;;) Atomics.add(memory, 0, 1)
      },
      () => Atomics.load(memory, 0),
    ],
  }
}

/** A thread waits by recursion: each further step costs more. */
export function recursiveWait(): Program {
  const memory = words(1)
  const wait = (): number => (Atomics.load(memory, 0) === 0 ? wait() : 1)
  return { threads: [() => wait(), () => Atomics.load(memory, 0)] }
}

/** Code that is not instrumented reads or writes shared memory. */
export function uninstrumented(how: 'atomics' | 'reads' | 'writes'): Program {
  const memory = words(2)
  const bytes = new Uint8Array(memory.buffer)
  const made = (text: string): ((view: unknown) => number) => new Function('view', text) as never
  return {
    threads: [
      () => {
        Atomics.load(memory, 1)
        if (how === 'atomics') made('return Atomics.load(view, 0)')(memory)
        if (how === 'reads') return Atomics.store(memory, 1, made('return view[0]')(bytes))
        if (how === 'writes') made('view[0] = 1')(bytes)
        return Atomics.load(memory, 1)
      },
      () => Atomics.load(memory, 0),
    ],
  }
}

/** Uses a source of nondeterminism. */
export function nondeterministic(how: 'random' | 'clock' | 'state', count: { value: number }): Program {
  const memory = words(1)
  return {
    threads: [
      () => {
        if (how === 'random') return Atomics.store(memory, 0, Math.floor(Math.random() * 1e9))
        if (how === 'clock') return Atomics.store(memory, 0, Date.now() | 0)
        return Atomics.store(memory, 0, count.value++)
      },
      () => Atomics.load(memory, 0),
    ],
  }
}

/** Awaits a promise that no thread of the check can settle. */
export function realPromise(): Program {
  return { threads: [async () => await Promise.resolve(1), () => 1] }
}

/** Two mutexes of the checker, locked in two orders. */
export function mutexOrder(right: boolean, names: 'named' | 'unnamed' | 'alike' = 'named'): Program {
  const make = (id: number): CheckedMutex =>
    names === 'unnamed' ? new CheckedMutex() : new CheckedMutex(names === 'alike' ? 7 : id)
  const a = make(1)
  const b = make(2)
  const both = (first: CheckedMutex, second: CheckedMutex): void => {
    first.lock()
    second.lock()
    second.unlock()
    first.unlock()
  }
  return { threads: { one: () => both(a, b), two: () => (right ? both(a, b) : both(b, a)) } }
}

/** All kinds of access to a view. */
export function everyAccess(): Program {
  const memory = words(4)
  const view = new DataView(memory.buffer)
  const big = new BigInt64Array(memory.buffer)
  return {
    threads: [
      () => {
        memory[0] += 2
        memory[1]++
        view.setInt16(8, 258, true)
        memory.fill(7, 3, 4)
        memory.set([5], 3)
        const copy = memory.slice(0, 2)
        const sum = [...memory].reduce((a, b) => a + b, 0)
        let all = 0
        for (const word of memory) all += word
        big[1] ^= 1n
        const out = memory[9]
        return [copy[0], copy[1], view.getUint8(8), view.getUint8(9), sum, all, big[1], out].join()
      },
    ],
  }
}
