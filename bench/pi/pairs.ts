import { Arena, ArenaPlan } from '../../src/arena/memory/arena.ts'
import { KernelThread } from '../../src/arena/sync/thread.ts'
import { Futexes } from '../../src/futex/core/futexes.ts'
import { initializeFutexes, reserveFutexes } from '../../src/futex/core/layout.ts'
import { PI, PLAIN, ROBUST, ROBUST_PI, type WordMutex } from '../../src/futex/robust/mutex.ts'
import type { LockOwner } from '../../src/futex/core/owner.ts'
import { makeMutex } from './contend.ts'

/**
 * A thread with an uncontended mutex of each kind, and for each kind a loop that locks and unlocks it. The
 * loops are written out, so that each is compiled for its own kind.
 */
const plan = new ArenaPlan()
const layout = reserveFutexes(plan, { waiters: 256 })
const arena = Arena.create(plan)
initializeFutexes(arena, layout)
export const fx: Futexes = new Futexes(new KernelThread(arena, 64), layout, { now: () => performance.now() })
/** The mutexes are in its first 32 words. */
export const view: Int32Array<SharedArrayBuffer> = new Int32Array(new SharedArrayBuffer(1024))
fx.map(view.buffer)
export const owner: LockOwner = fx.self
const plain: WordMutex = makeMutex(fx, view, 0, PLAIN)
const robust: WordMutex = makeMutex(fx, view, 8, ROBUST)
const pi: WordMutex = makeMutex(fx, view, 16, PI)
const robustPi: WordMutex = makeMutex(fx, view, 24, ROBUST_PI)

export function plainPairs(turns: number): void {
  for (let i = 0; i < turns; i++) {
    plain.lockSync(owner)
    plain.unlock(owner)
  }
}

export function piPairs(turns: number): void {
  for (let i = 0; i < turns; i++) {
    pi.lockSync(owner)
    pi.unlock(owner)
  }
}

export function robustPairs(turns: number): void {
  for (let i = 0; i < turns; i++) {
    robust.lockSync(owner)
    robust.unlock(owner)
  }
}

export function robustPiPairs(turns: number): void {
  for (let i = 0; i < turns; i++) {
    robustPi.lockSync(owner)
    robustPi.unlock(owner)
  }
}
