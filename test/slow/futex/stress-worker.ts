import { parentPort, workerData } from 'node:worker_threads'
import { Arena, ArenaPlan } from '../../../src/arena/memory/arena.ts'
import { KernelThread } from '../../../src/arena/sync/thread.ts'
import { Futexes } from '../../../src/futex/core/futexes.ts'
import { reserveFutexes } from '../../../src/futex/core/layout.ts'
import type { FutexWord, MappingHandles } from '../../../src/futex/core/space.ts'

/** Words of the shared buffer. */
export const LOCK = 0
export const COUNTER = 1
export const SEQUENCE = 2
export const ARRIVED = 3
export const WAKEUPS = 4

export const stressSizes = { waiters: 64, mappings: 4, spaces: 2, buckets: 8 }

export interface StressBoot {
  readonly scenario: 'mutex' | 'broadcast'
  readonly arena: SharedArrayBuffer
  readonly id: number
  readonly turns: number
  readonly space: number
  readonly buffer: SharedArrayBuffer
  readonly handles: MappingHandles
}

/** A mutex on a futex: 0 free, 1 locked, 2 locked and a thread may wait. */
export function lock(fx: Futexes, word: FutexWord): void {
  const { i32, index } = word
  let seen = Atomics.compareExchange(i32, index, 0, 1)
  while (seen !== 0) {
    if (seen === 2 || Atomics.compareExchange(i32, index, 1, 2) !== 0) fx.waitSync(word, 2)
    seen = Atomics.compareExchange(i32, index, 0, 2)
  }
}

export function unlock(fx: Futexes, word: FutexWord): void {
  const { i32, index } = word
  if (Atomics.exchange(i32, index, 0) === 2) fx.wake(word, 1)
}

if (workerData !== null && 'scenario' in (workerData as object)) {
  const boot = workerData as StressBoot
  const layout = reserveFutexes(new ArenaPlan(), stressSizes)
  const fx = new Futexes(new KernelThread(Arena.attach(boot.arena), boot.id), layout, {
    now: () => performance.now(),
    space: boot.space,
  })
  const view = new Int32Array(boot.buffer)
  fx.space.adopt(boot.buffer, boot.handles)
  const word = fx.word(view, LOCK)
  const sequence = fx.word(view, SEQUENCE)
  if (boot.scenario === 'mutex') {
    for (let turn = 0; turn < boot.turns; turn++) {
      lock(fx, word)
      view[COUNTER]++
      unlock(fx, word)
    }
  } else {
    // A condition: waits until the sequence changes, and locks again in the state with waiters.
    for (let turn = 0; turn < boot.turns; turn++) {
      lock(fx, word)
      const seen = Atomics.load(view, SEQUENCE)
      Atomics.add(view, ARRIVED, 1)
      Atomics.notify(view, ARRIVED)
      unlock(fx, word)
      while (Atomics.load(view, SEQUENCE) === seen) fx.waitSync(sequence, seen)
      while (Atomics.exchange(view, LOCK, 2) !== 0) fx.waitSync(word, 2)
      view[WAKEUPS]++
      unlock(fx, word)
    }
  }
  parentPort?.postMessage('done')
}
