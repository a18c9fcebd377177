import { pause } from '../../arena/sync/pause.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import { type Decision, STOP, WAKE } from '../../futex/core/decision.ts'
import { recordAcquired, recordContended, recordReleased } from '../../futex/core/events.ts'
import { findOwner, type LockOwner } from '../../futex/core/owner.ts'
import { Waiter } from '../../futex/core/records.ts'
import type { LongWait } from '../../futex/core/sleep.ts'
import { currentTid } from '../wait/caller.ts'
import { disposedError, SyncError } from '../wait/errors.ts'
import { type ObjectWords, HAS_WAITERS } from '../wait/objectwords.ts'
import type { ParkingQueue } from '../wait/queue.ts'
import { QueueWait, WAIT_SPINS, waitAsync, type WaitOptions, waitSync, waitTask } from '../wait/waiting.ts'
import { WakeCount } from '../wait/wakecount.ts'
import type { LockCore } from './lockcore.ts'

/**
 * The plain lock: a word, and a parking queue for its waiters.
 *
 *   HAS_WAITERS | TID    | meaning
 *   ------------+--------+----------------------------------------------------------------------------
 *        0      |   0    | [1] free
 *        0      |  tid   | [2] held, no waiter: unlocking is one compare-exchange
 *        1      |  tid   | [3] held, and there may be waiters: unlocking locks the queue
 *        1      |   0    | [4] free; one waiter is woken, others wait: the first caller takes it, to [3]
 *        1      | NOBODY | [5] disposed of
 *
 * HAS_WAITERS is set and cleared under the queue's lock only. It may be set while the queue is empty (a
 * waiter that timed out does not clear it), and is never clear while a waiter is queued.
 *
 * A woken waiter competes with every other thread, so a running thread can take a free lock without waiting
 * until a sleeping one has woken up. A waiter that has lost LOSSES times demands the lock, and the unlocker
 * then hands it over, so no waiter starves.
 */
export const TID_MASK = 0x3fff_ffff
/** The owner of a mutex that has been disposed of: no TID. */
export const NOBODY: number = TID_MASK
/** In a waiter's bits, beside its TID. */
export const DEMANDS = 0x4000_0000

/** How often a waiter is woken and finds the lock taken before it is handed the lock. */
export const LOSSES = 4

/** Takes the word from [1] or [4]. False: it is held, perhaps by the caller. */
export function takeWord({ i32, at }: ObjectWords, tid: number): boolean {
  for (;;) {
    const seen = Atomics.load(i32, at)
    if ((seen & TID_MASK) !== 0) return false
    if (Atomics.compareExchange(i32, at, seen, seen | tid) === seen) return true
  }
}

/** Disposes of the word, from [1] to [5]. */
export function disposeWord({ i32, at }: ObjectWords): void {
  const before = Atomics.compareExchange(i32, at, 0, HAS_WAITERS | NOBODY)
  if (before === 0 || (before & TID_MASK) === NOBODY) return
  throw new SyncError('ERR_HEDDLE_BUSY', 'dispose: the mutex is held, or has waiters')
}

export class ParkingLock implements LockCore, ObjectWords {
  readonly i32: Int32Array<SharedArrayBuffer>
  readonly at: number
  readonly queue: ParkingQueue
  readonly parking: this = this
  readonly ownerDied = false
  /** When this thread took the lock, if it had waited for it, for the event ring; else 0. */
  heldSince = 0

  constructor({ i32, at }: ObjectWords, queue: ParkingQueue) {
    this.i32 = i32
    this.at = at
    this.queue = queue
  }

  holder(): number {
    return Atomics.load(this.i32, this.at) & TID_MASK
  }

  tryLockHere(): boolean {
    const tid = currentTid()
    return Atomics.compareExchange(this.i32, this.at, 0, tid) === 0 || this.tryWord(tid)
  }

  tryLock({ tid }: LockOwner): boolean {
    return this.tryWord(tid)
  }

  /**
   * A thread spins before it blocks, because most locks are held for less time than a thread takes to sleep.
   */
  tryLockSoon({ tid }: LockOwner, blocks: boolean): boolean {
    if (!blocks) return false
    const { spins } = currentFutexes().context.thread
    for (let spin = 0; spin < WAIT_SPINS && spin < spins; spin++) {
      pause()
      if (Atomics.load(this.i32, this.at) === 0 && takeWord(this, tid)) return true
    }
    return false
  }

  lockTask(
    what: string,
    { tid }: LockOwner,
    options: WaitOptions | undefined,
    long: LongWait | null,
  ): Generator<number, boolean, unknown> {
    return waitTask(new LockWait(what, this, tid, long), options)
  }

  lockSync(
    what: string,
    { tid }: LockOwner,
    options: WaitOptions | undefined,
    long: LongWait | null,
  ): boolean {
    return waitSync(new LockWait(what, this, tid, long), options)
  }

  lockAsync(what: string, { tid }: LockOwner, options: WaitOptions | undefined): Promise<boolean> {
    return waitAsync(new LockWait(what, this, tid, null), options)
  }

  unlockHere(): boolean {
    return this.unlockTid(currentTid())
  }

  unlock({ tid }: LockOwner): boolean {
    return this.unlockTid(tid)
  }

  private unlockTid(tid: number): boolean {
    if (Atomics.compareExchange(this.i32, this.at, tid, 0) !== tid) return this.unlockContended(tid)
    this.heldSince = 0
    return true
  }

  makeConsistent(): void {
    throw new SyncError('ERR_HEDDLE_NOT_HELD', 'makeConsistent: the mutex is not robust')
  }

  aim({ i32 }: FutexContext, waiter: number): void {
    i32[waiter + Waiter.target] = 0
  }

  tryRelock({ tid }: LockOwner): boolean {
    return takeWord(this, tid)
  }

  relocked(): void {}

  /** If the lock is free, the first waiter is woken. */
  passOn(): void {
    const { i32, at, queue } = this
    const { context } = currentFutexes()
    if (!queue.lockIfWaiting(context)) return
    if (this.holder() === 0) queue.walk(context, new WakeCount(1))
    if (queue.isEmpty(context)) Atomics.and(i32, at, ~HAS_WAITERS)
    queue.unlock(context)
  }

  announce(): void {}

  dispose(): void {
    disposeWord(this)
  }

  /** From [4], or false. */
  private tryWord(tid: number): boolean {
    if (takeWord(this, tid)) return true
    if (this.holder() === NOBODY) throw disposedError('lock')
    return false
  }

  private unlockContended(tid: number): boolean {
    if (this.holder() !== tid) return false
    this.release(currentFutexes().context)
    return true
  }

  /** From [3], by the holder: to [1], [4], or to [3] with the waiter that demanded the lock. */
  release(context: FutexContext): void {
    const { i32, at, queue } = this
    recordReleased(context, queue.objectId(context), this.heldSince)
    this.heldSince = 0
    queue.lock(context)
    if (queue.isEmpty(context)) Atomics.store(i32, at, 0)
    else {
      queue.walk(context, new NextHolder(this))
      if (queue.isEmpty(context)) Atomics.and(i32, at, ~HAS_WAITERS)
    }
    queue.unlock(context)
  }
}

/**
 * Wakes the first waiter. Before the waiter can see that it was woken, the word says that the lock is its
 * own, or free.
 */
class NextHolder implements Decision {
  private readonly lock: ObjectWords
  private hasWoken = false

  constructor(lock: ObjectWords) {
    this.lock = lock
  }

  decide(arena: Int32Array, waiter: number): typeof STOP | typeof WAKE {
    if (this.hasWoken) return STOP
    this.hasWoken = true
    const bits = arena[waiter + Waiter.bitset]
    const next = (bits & DEMANDS) !== 0 ? bits & TID_MASK : 0
    Atomics.store(this.lock.i32, this.lock.at, HAS_WAITERS | next)
    return WAKE
  }
}

export class LockWait extends QueueWait {
  readonly what: string
  private readonly lock: ParkingLock
  private readonly tid: number
  private losses = 0
  /** When the wait began. */
  private since = 0
  /** The waiter holds the lock itself. */
  private waitsForItself = false

  constructor(what: string, lock: ParkingLock, tid: number, long: LongWait | null) {
    super(lock.queue)
    this.long = long
    this.what = what
    this.lock = lock
    this.tid = tid
  }

  override bits(): number {
    return this.losses < LOSSES ? this.tid : this.tid | DEMANDS
  }

  admit(context: FutexContext): boolean {
    const { i32, at } = this.lock
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
        this.waitsForItself = owner === this.tid
      }
      recordContended(context, this.queue.objectId(context), owner)
      return false
    }
  }

  override woken(context: FutexContext): boolean {
    this.losses++
    if (this.lock.holder() !== this.tid && !takeWord(this.lock, this.tid)) return false
    this.acquired(context)
    return true
  }

  private acquired(context: FutexContext): void {
    this.lock.heldSince = context.now()
    recordAcquired(context, this.queue.objectId(context), this.since)
  }

  /** The dead thread had handed it the lock. */
  servedByDead(): number {
    return !this.waitsForItself && this.lock.holder() === this.tid ? 0 : -1
  }

  override leave(context: FutexContext, _waiters: readonly number[], index: number): void {
    if (index < 0) return
    if (this.lock.holder() === this.tid) this.lock.release(context)
    else this.lock.passOn()
  }
}
