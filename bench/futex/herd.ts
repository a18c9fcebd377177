import { parentPort, workerData } from 'node:worker_threads'
import { Arena, ArenaPlan } from '../../src/arena/memory/arena.ts'
import { KernelThread } from '../../src/arena/sync/thread.ts'
import { Futexes } from '../../src/futex/core/futexes.ts'
import { reserveFutexes } from '../../src/futex/core/layout.ts'
import type { FutexWord, MappingHandles } from '../../src/futex/core/space.ts'

/** One of the threads that wait for a broadcast and then contend for one lock. */
export interface HerdBoot {
  readonly arena: SharedArrayBuffer
  readonly id: number
  readonly space: number
  readonly buffer: SharedArrayBuffer
  readonly handles: MappingHandles
}

export const herdSizes = { waiters: 256, mappings: 4, spaces: 2, buckets: 16 }
export const LOCK = 0
export const SEQUENCE = 1
export const ARRIVED = 2
export const STOP = 3

export function lockContended(fx: Futexes, word: FutexWord): void {
  while (Atomics.exchange(word.i32, word.index, 2) !== 0) fx.waitSync(word, 2)
}

export function unlock(fx: Futexes, word: FutexWord): void {
  if (Atomics.exchange(word.i32, word.index, 0) === 2) fx.wake(word, 1)
}

if (workerData !== null && import.meta.filename === process.argv[1]) {
  const boot = workerData as HerdBoot
  const layout = reserveFutexes(new ArenaPlan(), herdSizes)
  const fx = new Futexes(new KernelThread(Arena.attach(boot.arena), boot.id), layout, {
    now: () => performance.now(),
    space: boot.space,
  })
  fx.space.adopt(boot.buffer, boot.handles)
  const view = new Int32Array(boot.buffer)
  const lock = fx.word(view, LOCK)
  const sequence = fx.word(view, SEQUENCE)
  while (Atomics.load(view, STOP) === 0) {
    const seen = Atomics.load(view, SEQUENCE)
    Atomics.add(view, ARRIVED, 1)
    Atomics.notify(view, ARRIVED)
    while (Atomics.load(view, SEQUENCE) === seen) fx.waitSync(sequence, seen)
    lockContended(fx, lock)
    // A short critical section.
    for (let spin = 0; spin < 200; spin++) Atomics.load(view, LOCK)
    unlock(fx, lock)
  }
  parentPort?.close()
}
