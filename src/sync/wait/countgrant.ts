import type { FutexContext } from '../../futex/core/context.ts'
import { Waiter } from '../../futex/core/records.ts'
import { EXTRA, type ObjectWords } from './objectwords.ts'
import type { ParkingQueue } from './queue.ts'

/**
 * Grants a waiter its part of a count, so that the granting thread can die at any step. All steps are under
 * the queue's lock, and while there are waiters every change of the word is under that lock.
 *
 *   (A) the waiter's value: what the word will be
 *   (B) extra: which waiter
 *   (C) the word: from here on the waiter has its part
 *   (D) the waiter's value: GRANTED
 *   (E) extra: 0
 *   (F) the waiter is off the queue, woken
 *
 * After a death between (C) and (D), the word is still what (A) announced: the next thread that locks the
 * queue first calls `finishGrant`, which does (D) and (E). After a death before (F), the recovery makes the
 * waiter check again, or the waiter leaves by itself; it finds that extra names it, or GRANTED. Its record is
 * not freed before that, so (D) never writes into a record of another waiter.
 */
const NEXT = Waiter.handover
const GRANTED = Waiter.handover + 1

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

/** The first step under the queue's lock: finishes the grant of a thread that died. */
export function finishGrant({ i32: arena }: FutexContext, { i32, at }: ObjectWords): void {
  const waiter = Atomics.load(i32, at + EXTRA)
  if (waiter === 0) return
  if (Atomics.load(i32, at) === arena[waiter + NEXT]) Atomics.store(arena, waiter + GRANTED, 1)
  Atomics.store(i32, at + EXTRA, 0)
}

/** Whether a woken waiter was granted its part. */
export function isGranted(arena: Int32Array, waiter: number): boolean {
  return Atomics.load(arena, waiter + GRANTED) === 1
}

/** Whether a waiter that left the queue without a wakeup was granted its part. The queue is not locked. */
export function wasGranted(
  context: FutexContext,
  place: ObjectWords & { readonly queue: ParkingQueue },
  waiter: number,
): boolean {
  // In this order: extra is cleared after GRANTED is set.
  if (Atomics.load(place.i32, place.at + EXTRA) === waiter) {
    place.queue.lock(context)
    finishGrant(context, place)
    place.queue.unlock(context)
  }
  return isGranted(context.i32, waiter)
}
