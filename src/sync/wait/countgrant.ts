import type { FutexContext } from '../../futex/core/context.ts'
import { Waiter } from '../../futex/core/records.ts'
import { EXTRA, type ObjectWords } from './objectwords.ts'
import type { ParkingQueue } from './queue.ts'

/**
 * Gives a waiter its part of a count, so that whoever gives can die at any step. All of it under the queue's
 * lock, and while someone is in line nobody changes the word without that lock.
 *
 *   (A) the waiter's value: what the word will be
 *   (B) extra: which waiter
 *   (C) the word: from here on the waiter has its part
 *   (D) the waiter's value: GRANTED
 *   (E) extra: 0
 *   (F) the waiter is off the queue, woken
 *
 * Dead between (C) and (D), the word is what (A) announced, because whoever locks the queue next looks first
 * (`finishGrant`) and does (D) and (E). Dead before (F), the waiter is sent round by the recovery, or leaves
 * by itself, and finds that it is named, or GRANTED. Its record is not given back before that, so (D) never
 * writes into another's.
 */
const NEXT = Waiter.value
const GRANTED = Waiter.value + 1

/** The waiter is about to be queued. */
export function expectGrant({ i32 }: FutexContext, waiter: number): void {
  Atomics.store(i32, waiter + GRANTED, 0)
}

/** (A) to (E); the caller's walk does (F). */
export function grant(arena: Int32Array, waiter: number, { i32, at }: ObjectWords, next: number): void {
  arena[waiter + NEXT] = next // (A)
  Atomics.store(i32, at + EXTRA, waiter) // (B)
  Atomics.store(i32, at, next) // (C)
  Atomics.store(arena, waiter + GRANTED, 1) // (D)
  Atomics.store(i32, at + EXTRA, 0) // (E)
}

/** First of all under the queue's lock. */
export function finishGrant({ i32: arena }: FutexContext, { i32, at }: ObjectWords): void {
  const waiter = Atomics.load(i32, at + EXTRA)
  if (waiter === 0) return
  if (Atomics.load(i32, at) === arena[waiter + NEXT]) Atomics.store(arena, waiter + GRANTED, 1)
  Atomics.store(i32, at + EXTRA, 0)
}

/** Whether a waiter that was woken has been given its part with that. */
export function isGranted(arena: Int32Array, waiter: number): boolean {
  return Atomics.load(arena, waiter + GRANTED) === 1
}

/**
 * Whether a waiter that is off the queue and that nobody woke has its part all the same. The queue is not
 * locked.
 */
export function wasGranted(
  context: FutexContext,
  place: ObjectWords & { readonly queue: ParkingQueue },
  waiter: number,
): boolean {
  // In this order: whoever clears the name has said GRANTED before.
  if (Atomics.load(place.i32, place.at + EXTRA) === waiter) {
    place.queue.lock(context)
    finishGrant(context, place)
    place.queue.unlock(context)
  }
  return isGranted(context.i32, waiter)
}
