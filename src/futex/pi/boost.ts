import type { FutexContext } from '../core/context.ts'
import { Bucket, Futex } from '../core/records.ts'

/**
 * The priority of a waiter rises while its lock is pending (pending.ts), and the thread that raises it has
 * not mapped the lock's buffer: it cannot write the new priority into the word. So it says in the arena,
 * which every thread sees, that the word says too little:
 *
 *   H, raises the waiter              L, as good as the waiter was before
 *   --------------------              -----------------------------------
 *                                     the word: no waiter is better
 *   (A) boosted, of the bucket        (C) takes the lock, by the word
 *   (B) the waiter is raised          (D) boosted? It gives the lock back, and asks the futex
 *
 * L keeps the lock only if (D) is before (A), and so (C) before (B): then it had the lock first, and the
 * called waiter, when it comes, lends it what it has. The word is right again, and the mark off, when a
 * thread that sees the word writes it, or the last waiter is gone.
 *
 * The mark is a count for each bucket of the table, beside a flag for each futex, both under the futex's
 * lock. A thread that dies between the two leaves the count too high: the locks of that bucket are asked for
 * at their futexes from then on, which is slower and no less right.
 */
export function markBoosted({ i32 }: FutexContext, futex: number): void {
  if (i32[futex + Futex.boosted] !== 0) return
  Atomics.add(i32, i32[futex + Futex.bucket] + Bucket.boosted, 1) // (A)
  i32[futex + Futex.boosted] = 1
}

/**
 * The word says the priority of the top waiter again, or its holder, or nothing waits. The futex is locked.
 */
export function settleBoosted({ i32 }: FutexContext, futex: number): void {
  if (i32[futex + Futex.boosted] === 0) return
  i32[futex + Futex.boosted] = 0
  Atomics.sub(i32, i32[futex + Futex.bucket] + Bucket.boosted, 1)
}

/** (D) Whether a word of this bucket says too little. */
export function isBoosted({ i32 }: FutexContext, bucket: number): boolean {
  return Atomics.load(i32, bucket + Bucket.boosted) !== 0
}
