import { CPU_MAX, THREAD_MAX } from '../../arena/sync/thread.ts'
import type { FutexLayout } from './layout.ts'

/**
 * The ids of threads that are not CPUs: one word for each, 0 free, 1 taken. A thread claims an id before it
 * makes its KernelThread, and frees it as its last action. If it dies, the recovering thread frees the id.
 */

/** An id that no other thread has, from 64 up. */
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
    throw new RangeError(
      `releaseThreadId(${id}): no thread has this id; release each id from claimThreadId once`,
    )
  }
}
