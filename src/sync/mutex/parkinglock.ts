import type { FutexContext } from '../../futex/core/context.ts'
import { type Decision, STOP, WAKE } from '../../futex/core/decision.ts'
import { recordAcquired, recordContended, recordReleased } from '../../futex/core/events.ts'
import { Waiter } from '../../futex/core/records.ts'
import { findOwner } from '../../futex/core/owner.ts'
import type { LongWait } from '../../futex/core/sleep.ts'
import { disposedError, SyncError } from '../wait/errors.ts'
import { type Place, HAS_WAITERS } from '../wait/place.ts'
import type { ParkingQueue } from '../wait/queue.ts'
import { QueueWait } from '../wait/waiting.ts'

/**
 * The word of a mutex.
 *
 *   HAS_WAITERS | TID   | meaning
 *   --------+-------+--------------------------------------------------------------------------------------------------
 *      0    |   0   | [1] free
 *      0    |  tid  | [2] held, nobody waits: unlocking is one compare-exchange
 *      1    |  tid  | [3] held, and someone may wait: unlocking goes through the queue
 *      1    |   0   | [4] free, someone was woken to take it and others still wait: whoever comes first takes it, to [3]
 *      1    | NOBODY| [5] disposed of
 *
 * HAS_WAITERS is set and cleared under the queue's lock only. It may stand with an empty queue (a waiter that
 * timed out does not clear it), never the other way round.
 *
 * Who is woken competes with whoever comes by, as this lets a running thread take a free lock without waiting
 * for a sleeping one to wake up; but one that has lost LOSSES times demands the lock, and unlocking then
 * hands it over, so nobody starves.
 */
export const TID_MASK = 0x3fff_ffff
/** The owner of a mutex that has been disposed of: no TID. */
export const NOBODY: number = TID_MASK
/** In a waiter's bits, beside its TID. */
export const DEMANDS = 0x4000_0000

/** Who has been woken so often, and has found the lock taken, is given it. */
export const LOSSES = 4

/** Takes the word from [1] or [4]. False: someone holds it, perhaps the caller. */
export function takeWord({ i32, at }: Place, tid: number): boolean {
  for (;;) {
    const seen = Atomics.load(i32, at)
    if ((seen & TID_MASK) !== 0) return false
    if (Atomics.compareExchange(i32, at, seen, seen | tid) === seen) return true
  }
}

export class LockWait extends QueueWait {
  readonly what: string
  private readonly place: Place
  private readonly tid: number
  private losses = 0
  /** When it began to wait. */
  private since = 0
  /** It waits for itself. */
  private held = false

  constructor(what: string, place: Place, queue: ParkingQueue, tid: number, long: LongWait | null = null) {
    super(queue)
    this.long = long
    this.what = what
    this.place = place
    this.tid = tid
  }

  override bits(): number {
    return this.losses < LOSSES ? this.tid : this.tid | DEMANDS
  }

  admit(context: FutexContext): boolean {
    const { i32, at } = this.place
    for (;;) {
      const seen = Atomics.load(i32, at)
      const owner = seen & TID_MASK
      if (owner === this.tid && this.losses > 0) return true
      if (owner === NOBODY) throw disposedError(this.what)
      if (owner !== 0 && findOwner(context, owner) === 0 && Atomics.load(i32, at) === seen) {
        throw new SyncError(
          'ERR_HEDDLE_NOT_RECOVERABLE',
          `${this.what}: the owner of the mutex died with it, and it is not robust`,
        )
      }
      const next = owner === 0 ? seen | this.tid : seen | HAS_WAITERS
      if (seen !== next && Atomics.compareExchange(i32, at, seen, next) !== seen) continue
      if (owner === 0) {
        if (this.losses > 0) this.acquired(context)
        return true
      }
      if (this.losses === 0) {
        this.since = context.now()
        this.held = owner === this.tid
      }
      recordContended(context, this.queue.objectId(context), owner)
      return false
    }
  }

  override woken(context: FutexContext): boolean {
    this.losses++
    const { i32, at } = this.place
    if ((Atomics.load(i32, at) & TID_MASK) !== this.tid && !takeWord(this.place, this.tid)) return false
    this.acquired(context)
    return true
  }

  private acquired(context: FutexContext): void {
    this.place.heldSince = context.now()
    recordAcquired(context, this.queue.objectId(context), this.since)
  }

  /** It was handed the lock. */
  servedByDead(): number {
    const { i32, at } = this.place
    return !this.held && (Atomics.load(i32, at) & TID_MASK) === this.tid ? 0 : -1
  }

  override leave(context: FutexContext, _waiters: readonly number[], index: number): void {
    if (index < 0) return
    const { i32, at } = this.place
    if ((Atomics.load(i32, at) & TID_MASK) === this.tid) releaseWord(context, this.place, this.queue)
    else passOn(context, this.place, this.queue)
  }
}

/**
 * Wakes the first in line; the word says that the lock is its own, or free, before it can see that it was
 * woken.
 */
class NextHolder implements Decision {
  private readonly i32: Int32Array
  private readonly at: number
  private woken = false

  constructor({ i32, at }: Place) {
    this.i32 = i32
    this.at = at
  }

  decide(arena: Int32Array, waiter: number): typeof STOP | typeof WAKE {
    if (this.woken) return STOP
    this.woken = true
    const bits = arena[waiter + Waiter.bitset]
    Atomics.store(this.i32, this.at, HAS_WAITERS | ((bits & DEMANDS) !== 0 ? bits & TID_MASK : 0))
    return WAKE
  }
}

/** From [3], by its owner: to [1], [4], or to [3] with the one who demanded it. */
export function releaseWord(context: FutexContext, place: Place, queue: ParkingQueue): void {
  const { i32, at } = place
  recordReleased(context, queue.objectId(context), place.heldSince ?? 0)
  place.heldSince = 0
  queue.lock(context)
  if (queue.isEmpty(context)) Atomics.store(i32, at, 0)
  else {
    queue.walk(context, new NextHolder(place))
    if (queue.isEmpty(context)) Atomics.and(i32, at, ~HAS_WAITERS)
  }
  queue.unlock(context)
}

/** One who was woken to take the lock does not: if the lock is free, the next in line is woken instead. */
export function passOn(context: FutexContext, place: Place, queue: ParkingQueue): void {
  const { i32, at } = place
  if (!queue.lockIfWaiting(context)) return
  if ((Atomics.load(i32, at) & TID_MASK) === 0) queue.walk(context, new WakeFirst())
  if (queue.isEmpty(context)) Atomics.and(i32, at, ~HAS_WAITERS)
  queue.unlock(context)
}

/** Wakes the first in line, and says nothing in any word. */
export class WakeFirst implements Decision {
  private woken = false

  decide(): typeof STOP | typeof WAKE {
    if (this.woken) return STOP
    this.woken = true
    return WAKE
  }
}
