import type { FutexContext } from '../futex/context.ts'
import { type Decision, SKIP, STOP, WAKE } from '../futex/decision.ts'
import { Waiter } from '../futex/records.ts'
import { SyncError } from './errors.ts'
import type { SyncObject } from './object.ts'
import { EXTRA, WAITERS } from './place.ts'
import { changeAndServe, type RwLock } from './rwlock.ts'
import type { Wait } from './waiting.ts'

export const WRITER = 0x4000_0000
export const UPGRADING = 0x2000_0000
export const READERS = 0x1fff_ffff

/** In a waiter's bits: what it wants, and above it the TID of who would write. */
const READ = 1
const WRITE = 2
const UPGRADE = 3
const WANTS = 3
const TID_SHIFT = 2

/** Lets in those at the head of the line who may come in together. */
class LettingIn implements Decision {
  state: number
  private readonly lock: RwLock
  /** A reader was first: all readers go. */
  private batch = false

  constructor(lock: RwLock, state: number) {
    this.lock = lock
    this.state = state
  }

  decide(i32: Int32Array, waiter: number): typeof SKIP | typeof STOP | typeof WAKE {
    const bits = i32[waiter + Waiter.bitset]
    if ((this.state & WRITER) !== 0) return STOP
    switch (bits & WANTS) {
      case READ:
        this.batch = true
        this.state++
        return WAKE
      case WRITE:
        if (this.batch) return SKIP
        if ((this.state & READERS) !== 0) return STOP
        break
      default:
        if ((this.state & READERS) !== 1) return STOP
        this.state &= ~(READERS | UPGRADING)
    }
    this.state |= WRITER
    // Before it can see that it was woken: it may unlock at once.
    Atomics.store(this.lock.i32, this.lock.at + EXTRA, bits >>> TID_SHIFT)
    return WAKE
  }
}

/** The state after those have come in who may. The queue is locked, and nobody else changes the state meanwhile: someone is in line. */
export function serveLine(context: FutexContext, lock: RwLock, state: number): number {
  const letting = new LettingIn(lock, state)
  lock.queue.walk(context, letting)
  return letting.state
}

abstract class LineWait implements Wait {
  abstract readonly what: string
  abstract readonly bits: number
  readonly queue: SyncObject['queue']
  protected readonly lock: RwLock

  constructor(lock: RwLock) {
    this.lock = lock
    this.queue = lock.queue
  }

  /** The state with this one let in, or -1: it cannot be. Nobody is in line before it. */
  protected abstract letIn(seen: number): number

  admit(context: FutexContext): boolean {
    const { i32, at } = this.lock
    this.lock.refuseDisposed(this.what)
    const first = this.queue.isEmpty(context)
    for (;;) {
      const seen = Atomics.load(i32, at)
      const entered = first ? this.letIn(seen & ~WAITERS) : -1
      if (Atomics.compareExchange(i32, at, seen, entered < 0 ? this.waiting(seen) : entered) !== seen)
        continue
      if (entered >= 0) this.entered()
      return entered >= 0
    }
  }

  protected waiting(seen: number): number {
    return seen | WAITERS
  }

  protected entered(): void {}

  woken(): boolean {
    return true
  }

  /** What to undo when it was let in and does not want it any more. */
  protected abstract undo(seen: number): number

  leave(context: FutexContext, woken: boolean): void {
    this.queue.lock(context)
    changeAndServe(context, this.lock, seen => (woken ? this.undo(seen) : this.forget(seen)))
    this.queue.unlock(context)
  }

  protected forget(seen: number): number {
    return seen
  }
}

export class ReadWait extends LineWait {
  readonly what = 'lockRead'
  readonly bits: number = READ

  protected letIn(seen: number): number {
    return (seen & WRITER) === 0 ? seen + 1 : -1
  }

  protected undo(seen: number): number {
    return seen - 1
  }
}

abstract class WritingWait extends LineWait {
  readonly bits: number
  private readonly tid: number

  constructor(lock: RwLock, tid: number, wants: number) {
    super(lock)
    this.tid = tid
    this.bits = (tid << TID_SHIFT) | wants
  }

  protected override entered(): void {
    Atomics.store(this.lock.i32, this.lock.at + EXTRA, this.tid)
  }
}

export class WriteWait extends WritingWait {
  readonly what = 'lockWrite'

  constructor(lock: RwLock, tid: number) {
    super(lock, tid, WRITE)
  }

  protected letIn(seen: number): number {
    return seen === 0 ? WRITER : -1
  }

  protected undo(seen: number): number {
    Atomics.store(this.lock.i32, this.lock.at + EXTRA, 0)
    return seen & ~WRITER
  }
}

export class UpgradeWait extends WritingWait {
  readonly what = 'upgrade'
  readonly first = true

  constructor(lock: RwLock, tid: number) {
    super(lock, tid, UPGRADE)
  }

  /** Before all who are in line: they wait for its reading to end. */
  override admit(context: FutexContext): boolean {
    const { i32, at } = this.lock
    this.lock.refuseDisposed(this.what)
    for (;;) {
      const seen = Atomics.load(i32, at)
      if ((seen & UPGRADING) !== 0) {
        throw new SyncError(
          'ERR_HEDDLE_DEADLOCK',
          `upgrade: another reader of ${this.lock.describe()} is upgrading, and each would wait for the other; unlock, and lock to write`,
        )
      }
      const only = (seen & READERS) === 1
      const bits = this.queue.isEmpty(context) ? 0 : WAITERS
      const next = only ? WRITER | bits : seen | UPGRADING | WAITERS
      if (Atomics.compareExchange(i32, at, seen, next) !== seen) continue
      if (only) this.entered()
      return only
    }
  }

  protected letIn(): number {
    return -1
  }

  /** Back to reading. */
  protected undo(seen: number): number {
    Atomics.store(this.lock.i32, this.lock.at + EXTRA, 0)
    return (seen & ~WRITER) + 1
  }

  protected override forget(seen: number): number {
    return seen & ~UPGRADING
  }
}
