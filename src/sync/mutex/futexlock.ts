import { wait as waitForPromise } from '../../coroutine/core/blocking.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import {
  EBUSY,
  EDEADLK,
  EINTR,
  ENOTRECOVERABLE,
  EOWNERDEAD,
  ESRCH,
  ETIMEDOUT,
} from '../../futex/core/errno.ts'
import type { Futexes } from '../../futex/core/futexes.ts'
import { FUTEX_WAITERS, holderOf, type LockOwner } from '../../futex/core/owner.ts'
import { Bucket, PI_REQUEUE, Waiter } from '../../futex/core/records.ts'
import { LEAVES, type LongWait } from '../../futex/core/sleep.ts'
import type { FutexWord } from '../../futex/core/space.ts'
import { MATCH_ANY, wake } from '../../futex/operations/waitwake.ts'
import type { OwnedLock } from '../../futex/robust/ownedlock.ts'
import { type MutexKind, PI, PLAIN, ROBUST, WordMutex } from '../../futex/robust/mutex.ts'
import { currentTask } from '../../kernel/cpu/taskwaiter.ts'
import { currentOwner, leavesWait } from '../wait/caller.ts'
import { disposedError, SyncError } from '../wait/errors.ts'
import { EXTRA, type ObjectWords } from '../wait/objectwords.ts'
import { limitOf, type WaitOptions } from '../wait/waiting.ts'
import type { LockCore, Protocol } from './lockcore.ts'
import { LOCK_WORD, mappedWord } from './mappedword.ts'
import { disposeWord, NOBODY } from './parkinglock.ts'

/**
 * A lock whose waiters sleep at the futex of a word: it lends priorities to its holder, or survives the death
 * of its holder, or both (futex/robust/mutex.ts). Word 0 of the mutex says only whether it was disposed of;
 * then NOBODY holds the lock, so that no fast path takes it.
 */
export class FutexLock implements LockCore {
  readonly parking = null
  ownerDied = false
  protected readonly kind: MutexKind
  private readonly place: ObjectWords
  /**
   * The lock as this thread sees it in its domain. A thread that boots a kernel is in another domain
   * afterwards.
   */
  private opened: { readonly futexes: Futexes; readonly word: FutexWord; readonly lock: OwnedLock } | null =
    null
  /**
   * The owner that used the lock last through this object, and what it used: an owner stays in its domain.
   */
  private lastOwner: LockOwner | null = null
  private lastLock: OwnedLock | null = null

  constructor(place: ObjectWords, protocol: Protocol, robust: boolean) {
    this.place = place
    this.kind = ((protocol === 'inherit' ? PI : PLAIN) | (robust ? ROBUST : 0)) as MutexKind
    if (place.at % 2 !== 0)
      throw new RangeError('new Mutex({ index }): with a protocol, or robust, it starts at an even word')
  }

  holder(): number {
    const word = Atomics.load(this.place.i32, this.place.at + LOCK_WORD)
    return word === NOBODY ? NOBODY : holderOf(word)
  }

  tryLockHere(): boolean {
    return this.tryLock(currentOwner())
  }

  tryLock(owner: LockOwner): boolean {
    if (this.isDisposed) throw disposedError('lock')
    return this.isTaken(this.lockOf(owner).tryLock(owner))
  }

  /** A plain read: only `dispose` writes there, and no other thread may use the lock meanwhile. */
  protected get isDisposed(): boolean {
    return this.place.i32[this.place.at] !== 0
  }

  tryLockSoon(_owner: LockOwner, _blocks: boolean): boolean {
    return false
  }

  /** `owner` is that of the task, or of a coroutine of a schedule. */
  *lockTask(
    what: string,
    owner: LockOwner,
    options: WaitOptions | undefined,
    long: LongWait | null,
  ): Generator<number, boolean | typeof LEAVES, unknown> {
    const task = currentTask()
    const timeout = limitOf(options)
    if (task !== null) {
      const result = yield* this.here().lock.lockTask(task, timeout, options?.signal, long)
      if (result === LEAVES) return LEAVES
      if (result === -EINTR) options?.signal?.throwIfAborted()
      return this.took(result, what)
    }
    const giveUp = new AbortController()
    const signal =
      options?.signal === undefined ? giveUp.signal : AbortSignal.any([giveUp.signal, options.signal])
    const locking = this.here().lock.lockAsync(owner, timeout, signal)
    let settled = false
    try {
      const result = yield* waitForPromise(locking)
      settled = true
      return this.took(result, what)
    } finally {
      // Thrown into: if it gets the lock after that, it unlocks.
      if (!settled) {
        giveUp.abort()
        const left = locking.then(
          result => {
            if (result === 0 || result === -EOWNERDEAD) this.here().lock.unlock(owner)
          },
          () => undefined,
        )
        leavesWait(owner, left)
      }
    }
  }

  lockSync(what: string, owner: LockOwner, options: WaitOptions | undefined, long: LongWait | null): boolean {
    return this.took(this.lockOf(owner).lockSync(owner, limitOf(options), long), what)
  }

  async lockAsync(what: string, owner: LockOwner, options: WaitOptions | undefined): Promise<boolean> {
    return this.took(await this.lockOf(owner).lockAsync(owner, limitOf(options), options?.signal), what)
  }

  unlockHere(): boolean {
    return this.unlock(currentOwner())
  }

  unlock(owner: LockOwner): boolean {
    return this.lockOf(owner).unlock(owner) === 0
  }

  makeConsistent(owner: LockOwner): void {
    if (this.lockOf(owner).makeConsistent(owner) < 0) {
      throw new SyncError(
        'ERR_HEDDLE_NOT_HELD',
        'makeConsistent: the caller does not hold the mutex, or no owner has died with it',
      )
    }
    this.ownerDied = false
  }

  aim({ i32 }: FutexContext, waiter: number, owner: LockOwner): void {
    const { word } = this.here()
    i32[waiter + Waiter.target] = word.mapped.backing
    i32[waiter + Waiter.targetIndex] = word.index
    i32[waiter + Waiter.lockOwner] = owner.record
    if (this.inherits) i32[waiter + Waiter.pi] = PI_REQUEUE
  }

  /** True: the notifier or the unlocker gave it the lock while it slept. */
  tryRelock(owner: LockOwner): boolean {
    return this.inherits && this.holder() === owner.tid && this.took(this.here().lock.granted(owner), 'wait')
  }

  /**
   * The waiters that a notifier moved to the word have not set the flag that makes the unlocker wake them.
   */
  relocked(): void {
    if (this.inherits) return
    const { word, futexes } = this.here()
    if (Atomics.load(futexes.context.i32, word.sharedBucket + Bucket.waiters) > 0)
      Atomics.or(word.i32, word.index, FUTEX_WAITERS)
  }

  passOn(): void {
    if (this.inherits) return
    const { word, futexes } = this.here()
    wake(futexes.context, word, true, 1, MATCH_ANY)
  }

  /**
   * From here on this thread sees the word. If a receiver dies with the lock, the thread that recovers (the
   * one that booted the kernel) has to write there.
   */
  announce(): void {
    this.here()
  }

  dispose(): void {
    const { i32, at } = this.place
    for (;;) {
      const seen = Atomics.load(i32, at + LOCK_WORD)
      if (seen === NOBODY) return
      if (holderOf(seen) !== 0) throw new SyncError('ERR_HEDDLE_BUSY', 'dispose: the mutex is held')
      if (Atomics.compareExchange(i32, at + LOCK_WORD, seen, NOBODY) === seen) break
    }
    disposeWord(this.place)
  }

  protected make(futexes: Futexes, word: FutexWord): OwnedLock {
    return new WordMutex(futexes, word, this.kind)
  }

  /** The lock for this owner, which is on this thread. */
  protected lockOf(owner: LockOwner): OwnedLock {
    const { lastLock } = this
    if (owner === this.lastOwner && lastLock !== null) return lastLock
    const { lock } = this.here()
    this.lastOwner = owner
    this.lastLock = lock
    return lock
  }

  /** The result of an attempt. False: another owner has the lock. */
  protected isTaken(result: number): boolean {
    return result !== -EBUSY && this.took(result, 'lock')
  }

  private get inherits(): boolean {
    return (this.kind & PI) !== 0
  }

  /** True: the owner has the lock. False: the time is over. */
  private took(result: number, what: string): boolean {
    if (result === 0) {
      if (this.ownerDied) this.ownerDied = false
      return true
    }
    if (result === -ETIMEDOUT) return false
    this.ownerDied = result === -EOWNERDEAD
    if (!this.ownerDied) throw lockError(result, what)
    // The dead holder may have locked it several times.
    this.place.i32[this.place.at + EXTRA] = 0
    return true
  }

  private here(): NonNullable<FutexLock['opened']> {
    const futexes = currentFutexes()
    if (this.opened?.futexes !== futexes) {
      const word = mappedWord(futexes, this.place)
      this.opened = { futexes, word, lock: this.make(futexes, word) }
    }
    return this.opened
  }
}

function lockError(result: number, what: string): Error {
  switch (result) {
    case -ENOTRECOVERABLE:
      return new SyncError(
        'ERR_HEDDLE_NOT_RECOVERABLE',
        `${what}: an owner died with the mutex, and the next unlocked it without makeConsistent()`,
      )
    case -EDEADLK:
      return new SyncError('ERR_HEDDLE_DEADLOCK', `${what}: the caller would wait for itself`)
    case -ESRCH:
      return new SyncError(
        'ERR_HEDDLE_NOT_RECOVERABLE',
        `${what}: the owner of the mutex died with it, and it is not robust`,
      )
    default:
      return new SyncError(
        'ERR_HEDDLE_INTERRUPTED',
        `${what}: the task was interrupted while it waited (${result})`,
      )
  }
}
