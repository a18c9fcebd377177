import type { FutexContext } from '../futex/context.ts'
import { type Decision, MOVE, STOP, WAKE } from '../futex/decision.ts'
import { wakeAll } from '../futex/queue.ts'
import { Waiter } from '../futex/records.ts'
import { TID_MASK, WakeFirst } from './lockwait.ts'
import { EXTRA, type Place, WAITERS } from './place.ts'
import type { ParkingQueue } from './queue.ts'

/**
 * Notifies those who wait at a condition. At most one of them is awake and without the mutex. The others move on without being woken: to
 * the mutex's own queue, where unlocking finds them; or, when this thread does not know the mutex or that keeps its own queue, to a
 * second queue of the condition's, from where each who has got the mutex wakes the next. So nobody may come to that queue when the last
 * who would wake the next has passed by:
 *
 *   notifier of W and X                       W, whose time is over
 *   -------------------                       ---------------------
 *   locks the condition's queue
 *   W is woken; X is off
 *   unlocks                                   finds that it was woken, locks the mutex
 *                                             wakes the next: there is none
 *   (A) X is on the second queue              is done
 *
 * X would sleep for ever. So W goes there as well, and (B) the first of those who are there is woken under that queue's lock, after (A).
 */

/** In the bits of who waits at a condition, beside its TID: it has been notified. */
export const NOTIFIED: number = 0x8000_0000 | 0

/** Takes the first few off a condition's queue. */
class Notification implements Decision {
  notified = 0
  private readonly limit: number
  private readonly moves: boolean
  private wakes: boolean

  constructor(limit: number, wakes: boolean, moves: boolean) {
    this.limit = limit
    this.wakes = wakes
    this.moves = moves
  }

  decide(i32: Int32Array, waiter: number): typeof STOP | typeof WAKE | typeof MOVE {
    if (this.notified === this.limit) return STOP
    this.notified++
    i32[waiter + Waiter.bitset] |= NOTIFIED
    if (this.moves && !this.wakes) return MOVE
    this.wakes = false
    return WAKE
  }
}

/** The queues of a condition: of those who wait, and of those who are notified and not woken yet. */
export interface ConditionQueues {
  readonly waiting: ParkingQueue
  readonly notified: ParkingQueue
}

/** A mutex whose waiters are on `queue`. */
export interface QueuedMutex extends Place {
  readonly queue: ParkingQueue
}

/** How many were notified. `mutex`: the one that this thread believes they wait with. The caller holds no queue's lock. */
export function notify(
  context: FutexContext,
  { i32, at }: Place,
  { waiting, notified }: ConditionQueues,
  mutex: QueuedMutex | null,
  limit: number,
): number {
  const mutexId = mutex === null ? 0 : mutex.queue.objectId(context)
  // Room for the other queue before anyone is taken off this one. Without it all are woken: a herd, but nobody is lost.
  const spare = context.layout.futexes.tryAllocate(context.thread)
  waiting.lock(context)
  // Under the lock: before, the last of them may have left, and others have come with another mutex.
  const known = mutex !== null && Atomics.load(i32, at + EXTRA) === mutexId ? mutex : null
  const wakes = known === null ? limit === 1 : isFree(known)
  const decision = new Notification(limit, wakes, spare !== 0)
  const moved = waiting.walk(context, decision)
  if (waiting.isEmpty(context)) Atomics.and(i32, at, ~WAITERS)
  waiting.unlockQuietly(context)
  if (moved === 0) {
    if (spare !== 0) context.layout.futexes.free(context.i32, spare)
  } else if (known !== null) moveToMutex(context, known, moved, spare)
  else moveToNotified(context, notified, moved, spare)
  wakeAll(context)
  return decision.notified
}

function isFree({ i32, at }: Place): boolean {
  return (Atomics.load(i32, at) & TID_MASK) === 0
}

function moveToMutex(
  context: FutexContext,
  { i32, at, queue }: QueuedMutex,
  moved: number,
  spare: number,
): void {
  queue.lock(context, spare)
  queue.addMoved(context, moved)
  const before = Atomics.or(i32, at, WAITERS)
  // It was unlocked meanwhile, by one who saw nobody waiting.
  if ((before & TID_MASK) === 0) queue.walk(context, new WakeFirst())
  if (queue.isEmpty(context)) Atomics.and(i32, at, ~WAITERS)
  queue.unlockQuietly(context)
}

function moveToNotified(context: FutexContext, notified: ParkingQueue, moved: number, spare: number): void {
  notified.lock(context, spare)
  notified.addMoved(context, moved) // (A)
  notified.walk(context, new WakeFirst()) // (B)
  notified.unlockQuietly(context)
}
