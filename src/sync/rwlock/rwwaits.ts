import type { FutexContext } from '../../futex/core/context.ts'
import { type Decision, SKIP, STOP, WAKE } from '../../futex/core/decision.ts'
import { Waiter } from '../../futex/core/records.ts'
import { findOwner } from '../../futex/core/owner.ts'
import { SyncError } from '../wait/errors.ts'
import { expectGrant, finishGrant, grant, isGranted, wasGranted } from '../wait/countgrant.ts'
import { LOSSES, TID_MASK } from '../mutex/parkinglock.ts'
import { HAS_WAITERS } from '../wait/objectwords.ts'
import type { RwLock } from './rwlock.ts'
import { QueueWait } from '../wait/waiting.ts'

export const WRITER = 0x4000_0000
/** Only beside readers: in the word of a writer this bit is part of the TID. */
const UPGRADING = 0x2000_0000
const READERS = 0x1fff_ffff

/** The number of readers in this state. */
export function readersOf(state: number): number {
  return (state & WRITER) === 0 ? state & READERS : 0
}

/** The TID of the writer in this state, or 0. */
export function writerOf(state: number): number {
  return (state & WRITER) === 0 ? 0 : state & TID_MASK
}

export function notHeld(lock: RwLock, what: string, why: string): SyncError {
  return new SyncError(
    'ERR_HEDDLE_NOT_HELD',
    `${what}: the caller does not hold ${lock.describe()} in this way: ${why}`,
  )
}

export function withoutUpgrade(state: number): number {
  return (state & WRITER) === 0 ? state & ~UPGRADING : state
}

/** In a waiter's bits: what it wants, and above it the TID of a writer, or DEMANDS of a reader. */
const WRITE_AT_LAST = 0
const READ = 1
const WRITE = 2
const UPGRADE = 3
const WANTS = 3
const TID_SHIFT = 2
const DEMANDS = 4

/** Admits the first waiters that may hold the lock together, or wakes them to compete for it. */
class LettingIn implements Decision {
  private readonly lock: RwLock
  /** A reader was first: all readers are woken. */
  private batch = false
  /** A writer was woken to compete for the lock. */
  private called = false

  constructor(lock: RwLock) {
    this.lock = lock
  }

  decide(arena: Int32Array, waiter: number): typeof SKIP | typeof STOP | typeof WAKE {
    const bits = arena[waiter + Waiter.bitset]
    const state = Atomics.load(this.lock.i32, this.lock.at)
    if ((state & WRITER) !== 0 || this.called) return STOP
    const wants = bits & WANTS
    if (wants === READ) {
      this.batch = true
      if ((state & READERS) !== 0 || (bits & DEMANDS) !== 0) grant(arena, waiter, this.lock, state + 1)
      return WAKE
    }
    if (wants === UPGRADE) {
      if ((state & READERS) !== 1) return STOP
    } else if (this.batch) return SKIP
    else if ((state & READERS) !== 0) return STOP
    this.called = wants === WRITE
    if (!this.called) grant(arena, waiter, this.lock, HAS_WAITERS | WRITER | (bits >>> TID_SHIFT))
    return WAKE
  }
}

/**
 * Admits the waiters that the state allows. The queue is locked; while there are waiters no other thread
 * changes the state.
 */
export function serveLine(context: FutexContext, lock: RwLock): void {
  const { queue, i32, at } = lock
  if (queue.isEmpty(context)) return
  queue.walk(context, new LettingIn(lock))
  if (!queue.isEmpty(context)) return
  const state = Atomics.load(i32, at)
  Atomics.store(i32, at, withoutUpgrade(state & ~HAS_WAITERS))
}

/** Changes the state, and admits the waiters that it allows. The queue is locked. */
export function changeAndServe(context: FutexContext, lock: RwLock, change: (seen: number) => number): void {
  const { i32, at, queue } = lock
  for (;;) {
    const seen = Atomics.load(i32, at)
    const bits = queue.isEmpty(context) ? 0 : HAS_WAITERS
    const changed = change(seen) & ~HAS_WAITERS
    // Other threads can change only [1] to [3] (rwlock.ts) meanwhile, and then there was no waiter.
    const next = bits === 0 ? withoutUpgrade(changed) : changed | HAS_WAITERS
    if (Atomics.compareExchange(i32, at, seen, next) === seen) break
  }
  serveLine(context, lock)
}

/**
 * A wait for an RwLock. A waiter that is woken to compete for the lock (LettingIn) may leave instead:
 *
 *   unlocking writer           W, first waiter               X, second waiter
 *   ----------------           ---------------               ----------------
 *   frees the lock; wakes W
 *                              its time is over
 *                              (A) the lock is free:
 *                              wakes X
 *
 * Without (A) X would sleep at a free lock. If W dies instead, the recovery makes all waiters check again.
 */
export abstract class LineWait extends QueueWait {
  /** How often it was woken and found the lock taken. */
  protected losses = 0
  /** It waits for all readers to end, so dead readers must not count. */
  protected readonly needsAllReaders: boolean = true
  protected readonly lock: RwLock

  constructor(lock: RwLock) {
    super(lock.queue)
    this.lock = lock
  }

  /** The state after this waiter is admitted; -1: it cannot be. */
  protected abstract letIn(seen: number): number

  /** Whether it may pass the waiters in the queue, in this state. */
  protected mayPass(seen: number): boolean {
    return (seen & ~HAS_WAITERS) === 0
  }

  admit(context: FutexContext, waiter: number): boolean {
    const { i32, at } = this.lock
    this.lock.refuseDisposed(this.what)
    finishGrant(context, this.lock)
    expectGrant(context, waiter)
    const first = this.queue.isEmpty(context)
    if (this.needsAllReaders) this.giveBackDead(context)
    for (;;) {
      const seen = Atomics.load(i32, at)
      this.refuseDead(context, seen)
      const entered = first || this.mayPass(seen) ? this.letIn(seen & ~HAS_WAITERS) : -1
      const next = entered < 0 ? seen | HAS_WAITERS : first ? entered : entered | HAS_WAITERS
      if (Atomics.compareExchange(i32, at, seen, next) === seen) return entered >= 0
    }
  }

  /** Releases the shares of dead readers. */
  private giveBackDead(context: FutexContext): void {
    const { i32, at, holders } = this.lock
    if (readersOf(Atomics.load(i32, at)) === 0) return
    for (let dead = holders.takeDead(context); dead > 0; dead--) {
      for (;;) {
        const seen = Atomics.load(i32, at)
        if (readersOf(seen) === 0 || Atomics.compareExchange(i32, at, seen, seen - 1) === seen) break
      }
    }
  }

  /** Throws if a writer died with the lock. */
  protected refuseDead(context: FutexContext, seen: number): void {
    const writer = writerOf(seen)
    if (writer === 0 || findOwner(context, writer) !== 0) return
    if (Atomics.load(this.lock.i32, this.lock.at) !== seen) return
    throw new SyncError(
      'ERR_HEDDLE_NOT_RECOVERABLE',
      `${this.what}: the writer of ${this.lock.describe()} died with it`,
    )
  }

  override woken({ i32 }: FutexContext, [waiter]: readonly number[]): boolean {
    if (isGranted(i32, waiter)) return true
    this.losses++
    return false
  }

  /** The state after it gives back the lock that it was granted. */
  protected abstract undo(seen: number): number

  servedByDead(context: FutexContext, [waiter]: readonly number[]): number {
    return wasGranted(context, this.lock, waiter) ? 0 : -1
  }

  override leave(context: FutexContext, [waiter]: readonly number[], index: number): void {
    this.queue.lock(context)
    finishGrant(context, this.lock)
    const granted = index >= 0 && isGranted(context.i32, waiter)
    // (A)
    changeAndServe(context, this.lock, seen => (granted ? this.undo(seen) : this.forget(seen)))
    this.queue.unlock(context)
  }

  protected forget(seen: number): number {
    return seen
  }
}

export class ReadWait extends LineWait {
  protected override readonly needsAllReaders: boolean = false
  readonly what = 'lockRead'

  override bits(): number {
    return this.losses < LOSSES ? READ : READ | DEMANDS
  }

  /** A reader that was woken with others reads beside them. */
  protected override mayPass(seen: number): boolean {
    return super.mayPass(seen) || (this.losses > 0 && readersOf(seen) > 0 && (seen & UPGRADING) === 0)
  }

  protected letIn(seen: number): number {
    return (seen & WRITER) === 0 ? seen + 1 : -1
  }

  protected undo(seen: number): number {
    return seen - 1
  }
}

abstract class WritingWait extends LineWait {
  protected readonly writing: number

  constructor(lock: RwLock, tid: number) {
    super(lock)
    this.writing = WRITER | tid
  }

  override bits(): number {
    return (this.writing << TID_SHIFT) | this.wants
  }

  protected abstract get wants(): number
}

export class WriteWait extends WritingWait {
  readonly what = 'lockWrite'

  protected get wants(): number {
    return this.losses < LOSSES ? WRITE : WRITE_AT_LAST
  }

  protected letIn(seen: number): number {
    return seen === 0 ? this.writing : -1
  }

  protected undo(): number {
    return 0
  }
}

export class UpgradeWait extends WritingWait {
  readonly what = 'upgrade'
  /** The bit UPGRADING is its own. */
  private upgrading = false
  protected readonly wants: number = UPGRADE

  /** The other waiters wait for its reading to end. */
  protected override get goesFirst(): boolean {
    return true
  }

  override admit(context: FutexContext, waiter: number): boolean {
    const { i32, at } = this.lock
    this.lock.refuseDisposed(this.what)
    finishGrant(context, this.lock)
    expectGrant(context, waiter)
    for (;;) {
      const seen = Atomics.load(i32, at)
      if (readersOf(seen) === 0) throw notHeld(this.lock, this.what, 'it has no reader')
      if (!this.upgrading && (seen & (UPGRADING | WRITER)) === UPGRADING) {
        throw new SyncError(
          'ERR_HEDDLE_DEADLOCK',
          `upgrade: another reader of ${this.lock.describe()} is upgrading, and each would wait for the other; unlock, and call lockWrite`,
        )
      }
      const only = readersOf(seen) === 1
      const bits = this.queue.isEmpty(context) ? 0 : HAS_WAITERS
      const next = only ? this.writing | bits : seen | UPGRADING | HAS_WAITERS
      if (Atomics.compareExchange(i32, at, seen, next) !== seen) continue
      this.upgrading = !only
      return only
    }
  }

  protected letIn(): number {
    return -1
  }

  /** Back to reading. */
  protected undo(): number {
    return 1
  }

  protected override forget(seen: number): number {
    return withoutUpgrade(seen)
  }
}
