import { CPU_MAX, THREAD_MAX } from '../../arena/sync/thread.ts'
import type { FutexLayout } from './layout.ts'

/**
 * Which ids threads that are no CPUs have: one word for each, 0 free, 1 taken. A thread claims an id before
 * it makes its KernelThread, gives it back as the last thing it does; if it dies, whoever has recovered it
 * gives it back.
 */

/** An id that nobody else has, from 64 up. */
export function claimThreadId(i32: Int32Array, layout: FutexLayout): number {
  for (let id = CPU_MAX; id < THREAD_MAX; id++) {
    if (Atomics.compareExchange(i32, layout.threadIds + id, 0, 1) === 0) return id
  }
  throw new RangeError(
    `claimThreadId: ${THREAD_MAX - CPU_MAX} threads have ids already; give back those of threads that have ended`,
  )
}

/** The thread makes no more calls, and nothing of it is left in the kernel. */
export function releaseThreadId(i32: Int32Array, layout: FutexLayout, id: number): void {
  if (Atomics.compareExchange(i32, layout.threadIds + id, 1, 0) !== 1) {
    throw new RangeError(`releaseThreadId(${id}): nobody has this id`)
  }
}
