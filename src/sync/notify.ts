import type { FutexContext } from '../futex/context.ts'
import { type Decision, MOVE, STOP, WAKE } from '../futex/decision.ts'
import { wakeAll } from '../futex/queue.ts'
import { Waiter } from '../futex/records.ts'
import { TID_MASK, WakeFirst } from './lockwait.ts'
import { type Place, WAITERS } from './place.ts'
import type { ParkingQueue } from './queue.ts'

/** In the bits of who waits at a condition, beside its TID: it has been notified. */
export const NOTIFIED: number = 0x8000_0000 | 0

/**
 * Takes the first few off a condition's queue. Those who could not get the mutex yet are not woken: they move to the queue where
 * unlocking it will find them.
 */
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

/** Where those go who are notified and not woken yet. */
export interface Destination {
  readonly queue: ParkingQueue
  /** The mutex, when it is its own queue that they go to. */
  readonly mutex: Place | null
}

/** How many were notified. The caller holds no queue's lock. */
export function notify(
  context: FutexContext,
  place: Place,
  queue: ParkingQueue,
  { queue: target, mutex }: Destination,
  limit: number,
): number {
  const { i32, at } = place
  // Room for the other queue before anyone is taken off this one. Without it all are woken: a herd, but nobody is lost.
  const spare = context.layout.futexes.tryAllocate(context.thread)
  queue.lock(context)
  const free = mutex === null || (Atomics.load(mutex.i32, mutex.at) & TID_MASK) === 0
  const decision = new Notification(limit, free, spare !== 0)
  const moved = queue.walk(context, decision)
  if (queue.isEmpty(context)) Atomics.and(i32, at, ~WAITERS)
  queue.unlockQuietly(context)
  if (moved !== 0) moveTo(context, target, mutex, moved, spare)
  else if (spare !== 0) context.layout.futexes.free(context.i32, spare)
  wakeAll(context)
  return decision.notified
}

function moveTo(
  context: FutexContext,
  target: ParkingQueue,
  mutex: Place | null,
  moved: number,
  spare: number,
): void {
  target.lock(context, spare)
  target.addMoved(context, moved)
  if (mutex !== null) {
    const before = Atomics.or(mutex.i32, mutex.at, WAITERS)
    // It was unlocked meanwhile, by one who saw nobody waiting.
    if ((before & TID_MASK) === 0) target.walk(context, new WakeFirst())
    if (target.isEmpty(context)) Atomics.and(mutex.i32, mutex.at, ~WAITERS)
  }
  target.unlockQuietly(context)
}
