import { workerData } from 'node:worker_threads'
import { Arena, ArenaPlan } from '../../src/arena/memory/arena.ts'
import { KernelThread } from '../../src/arena/sync/thread.ts'
import { Futexes } from '../../src/futex/core/futexes.ts'
import { type FutexSizes, reserveFutexes } from '../../src/futex/core/layout.ts'
import { type MutexKind, WordMutex } from '../../src/futex/robust/mutex.ts'
import type { MappingHandles } from '../../src/futex/core/space.ts'

/** Words beside the lock. */
export const GO = 16
export const READY = 17
export const ACQUIRED = 18

export const contendSizes: FutexSizes = { waiters: 256, mappings: 4, spaces: 2, buckets: 8 }

export interface ContendBoot {
  readonly arena: SharedArrayBuffer
  readonly id: number
  readonly kind: number
  readonly space: number
  readonly buffer: SharedArrayBuffer
  readonly handles: MappingHandles
}

export function makeMutex(fx: Futexes, words: Int32Array, index: number, kind: MutexKind): WordMutex {
  return new WordMutex(fx, fx.word(words, index), kind)
}

if (workerData !== null && typeof workerData === 'object' && 'kind' in workerData) {
  const boot = workerData as ContendBoot
  const layout = reserveFutexes(new ArenaPlan(), contendSizes)
  const fx = new Futexes(new KernelThread(Arena.attach(boot.arena), boot.id), layout, {
    now: () => performance.now(),
    space: boot.space,
  })
  fx.space.adopt(boot.buffer, boot.handles)
  const view = new Int32Array(boot.buffer)
  const mutex = makeMutex(fx, view, 0, boot.kind as MutexKind)
  const owner = fx.self
  Atomics.add(view, READY, 1)
  Atomics.notify(view, READY)
  for (;;) {
    while (Atomics.load(view, GO) === 0) Atomics.wait(view, GO, 0)
    mutex.lockSync(owner)
    Atomics.add(view, ACQUIRED, 1)
    mutex.unlock(owner)
  }
}
