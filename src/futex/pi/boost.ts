import type { FutexContext } from '../core/context.ts'
import { Bucket, Futex } from '../core/records.ts'

/**
 * The priority of a waiter rises while its lock is pending (pending.ts), and the boosting thread has not
 * mapped the lock's buffer: it cannot write the new priority into the word. So it marks in the arena, which
 * every thread can read, that the priority in the word is too low:
 *
 *   booster H, boosts the waiter      locker L, of the waiter's old priority
 *   ----------------------------      --------------------------------------
 *                                     the word: no waiter is better
 *   (A) boosted++ of the bucket       (C) takes the lock, by the word
 *   (B) the waiter is boosted         (D) boosted? It returns the lock, and uses the futex
 *
 * L keeps the lock only if (D) is before (A), and so (C) before (B): then it had the lock first, and inherits
 * from the called waiter when that one tries to take it. The word is corrected, and the mark removed, when a
 * thread that can access the word writes it, or when the last waiter is gone.
 *
 * The mark is a count for each bucket of the table and a flag for each futex, both under the futex's lock. A
 * thread that dies between the two leaves the count too high: from then on locks of that bucket always use
 * their futexes, which is slower but correct.
 */
export function markBoosted({ i32 }: FutexContext, futex: number): void {
  if (i32[futex + Futex.boosted] !== 0) return
  Atomics.add(i32, i32[futex + Futex.bucket] + Bucket.boosted, 1) // (A)
  i32[futex + Futex.boosted] = 1
}

/**
 * The word holds the priority of the top waiter again, or a holder, or no owner waits. The futex is locked.
 */
export function clearBoosted({ i32 }: FutexContext, futex: number): void {
  if (i32[futex + Futex.boosted] === 0) return
  i32[futex + Futex.boosted] = 0
  Atomics.sub(i32, i32[futex + Futex.bucket] + Bucket.boosted, 1)
}

/** (D) Whether a word of this bucket holds a priority that is too low. */
export function isBoosted({ i32 }: FutexContext, bucket: number): boolean {
  return Atomics.load(i32, bucket + Bucket.boosted) !== 0
}
