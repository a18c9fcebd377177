import { parkFor, type Futexes } from '../core/futexes.ts'
import type { FutexContext } from '../core/context.ts'
import { finishCall, type Prepared, prepareWordWait } from '../operations/call.ts'
import { deadlineOf } from '../core/deadline.ts'
import {
  EBUSY,
  EAGAIN,
  EDEADLK,
  EINVAL,
  ENOTRECOVERABLE,
  EOWNERDEAD,
  EPERM,
  ESRCH,
  ETIMEDOUT,
} from '../core/errno.ts'
import { recordAcquired, recordContended, recordReleased } from '../core/events.ts'
import { lockTag } from '../core/locktag.ts'
import { CONSISTENT, GONE, INCONSISTENT, MutexRecord } from './mutexrecord.ts'
import {
  findOwner,
  FUTEX_OWNER_DIED,
  FUTEX_TID_MASK,
  FUTEX_WAITERS,
  holderOf,
  type LockOwner,
  SOMETHING,
} from '../core/owner.ts'
import { leavePendingWord } from '../pi/pendingword.ts'
import { lockPi, takePendingLock, unlockPi } from '../pi/pi.ts'
import { Owner } from '../core/records.ts'
import { pointerTo, ROBUST_PI as PI_BIT } from './robust.ts'
import { clearPending, makeRoom, unlinkEntry } from './robustlist.ts'
import {
  finishWait,
  type LongWait,
  type TaskWaiter,
  promiseWaiter,
  taskWaiter,
  threadWaiter,
} from '../core/sleep.ts'
import type { FutexWord } from '../core/space.ts'
import type { OwnedLock } from './ownedlock.ts'
import { MATCH_ANY, wake, type WaiterOptions } from '../operations/waitwake.ts'

/**
 * A mutex over words of shared memory. Priority inheritance and robustness are independent, so there are four
 * kinds:
 *
 *   kind        a contended caller                the owner dies with it
 *   PLAIN       sleeps at the word                the waiters get ESRCH after the recovery
 *   ROBUST      sleeps at the word                one waiter gets it with EOWNERDEAD
 *   PI          LOCK_PI: the owner inherits       the waiters get it, later callers ESRCH
 *   ROBUST_PI   LOCK_PI: the owner inherits       one waiter gets it with EOWNERDEAD
 *
 * In all four a free word is 0 and a held one its owner's TID, so locking and unlocking are one
 * compare-exchange each. A robust lock is also on its owner's list (robustlist.ts), which costs a plain store
 * each way.
 *
 * With EOWNERDEAD the owner holds the lock, and the data that it guards may be half changed. The owner
 * repairs the data and calls `makeConsistent`. If it unlocks without that call, the mutex is ENOTRECOVERABLE
 * for ever.
 */
export const PLAIN = 0
export const ROBUST = 1
export const PI = 2
export const ROBUST_PI = 3
export type MutexKind = typeof PLAIN | typeof ROBUST | typeof PI | typeof ROBUST_PI

/** Takes a free word, of any kind. The caller puts a robust lock on its owner's list. */
export function tryLockWord(words: Int32Array, index: number, tid: number): boolean {
  return Atomics.compareExchange(words, index, 0, tid) === 0
}

/** Unlocks a word without waiters. False: it has waiters, or another owner holds it. */
export function unlockWord(words: Int32Array, index: number, tid: number): boolean {
  return Atomics.compareExchange(words, index, tid, 0) === tid
}

/**
 * The walk of a dead owner's list wakes the waiters of a robust lock, and does not know the owner's mappings.
 */
const SHARED = true
/**
 * When the caller has to wait, `take` returns the word. It has WAITERS, the sign bit, and so is less than all
 * errors.
 */
const WAIT_BELOW = -0x1_0000

/** One thread's view of a mutex; it has no state of its own. */
export class WordMutex implements OwnedLock {
  readonly kind: MutexKind
  readonly word: FutexWord
  private readonly fx: Futexes
  private readonly words: Int32Array
  private readonly index: number
  private readonly robust: boolean
  private readonly pi: boolean
  /** The pointer to its entry in a robust list. */
  private readonly entry: number
  /** The caller records the waits in the event ring. */
  private readonly quiet: boolean

  constructor(fx: Futexes, word: FutexWord, kind: MutexKind, quiet: boolean = false) {
    this.quiet = quiet
    this.fx = fx
    this.word = word
    this.kind = kind
    this.words = word.i32
    this.index = word.index
    this.robust = (kind & ROBUST) !== 0
    this.pi = (kind & PI) !== 0
    const next = word.index + MutexRecord.next
    this.entry = pointerTo(word.mapped.name, next * 4) + (this.pi ? PI_BIT : 0)
    if (this.robust && (word.index % 2 !== 0 || word.index + MutexRecord.words > word.i32.length)) {
      throw new RangeError(
        `WordMutex: a robust mutex takes ${MutexRecord.words} words from an even one on; word ${word.index} of ${word.i32.length} does not fit`,
      )
    }
  }

  looksFree(): boolean {
    return holderOf(Atomics.load(this.words, this.index)) === 0
  }

  isHeldBy({ tid }: LockOwner): boolean {
    return holderOf(Atomics.load(this.words, this.index)) === tid
  }

  tryLock(owner: LockOwner): number {
    const fast = this.lockFast(owner)
    if (fast <= 0) return fast
    return this.finish(owner, this.tryContended(owner))
  }

  lockSync(owner: LockOwner, timeout: number = Infinity, long: LongWait | null = null): number {
    const fast = this.lockFast(owner)
    if (fast <= 0) return fast
    if (this.pi && takePendingLock(this.fx.context, owner, this.word)) return this.finish(owner, 0)
    return this.lockContended(owner, timeout, long)
  }

  private lockContended(owner: LockOwner, timeout: number, long: LongWait | null): number {
    const { fx } = this
    const waiterOptions = threadWaiter(fx.context.i32[owner.record + Owner.basePriority], owner)
    const deadline = this.deadlineOf(timeout)
    const begun = this.contends()
    if (this.pi) {
      const prepared = this.queuePi(fx.context, waiterOptions, deadline)
      return this.had(owner, typeof prepared === 'number' ? prepared : fx.blockFor(prepared, long), begun)
    }
    let result = this.take(owner, false)
    while (result < WAIT_BELOW) {
      const prepared = this.prepareWait(waiterOptions, result, deadline)
      const slept = typeof prepared === 'number' ? prepared : fx.blockFor(prepared, long)
      result = slept === 0 || slept === -EAGAIN ? this.take(owner, true) : slept
    }
    return this.had(owner, result, begun)
  }

  /** Takes a lock that inherits priorities, or queues for it. */
  private queuePi(context: FutexContext, waiterOptions: WaiterOptions, deadline: number): Prepared {
    for (;;) {
      const prepared = lockPi(context, waiterOptions, this.word, SHARED, deadline, false)
      if (prepared !== -ESRCH || !this.markDead()) return prepared
    }
  }

  /**
   * Marks a word whose owner has died, if the recovering thread could not: it had not mapped the buffer,
   * because the lock came from the thread that died. True: check the word again.
   */
  private markDead(): boolean {
    const { words, index } = this
    const seen = Atomics.load(words, index)
    const holder = holderOf(seen)
    if (!this.robust || (holder !== 0 && findOwner(this.fx.context, holder) !== 0)) return false
    if (holder !== 0) Atomics.compareExchange(words, index, seen, (seen & FUTEX_WAITERS) | FUTEX_OWNER_DIED)
    return true
  }

  /** Records that the owner is about to wait. Returns the time. */
  private contends(): number {
    const { context } = this.fx
    // Without a scheduler there is no event ring.
    if (this.quiet || context.scheduler === undefined) return 0
    recordContended(context, this.tag, holderOf(Atomics.load(this.words, this.index)))
    return context.now()
  }

  /** The wait that began at `begun` is over. */
  private had(owner: LockOwner, result: number, begun: number): number {
    const finished = this.finish(owner, result)
    if (!this.quiet && (finished === 0 || finished === -EOWNERDEAD))
      recordAcquired(this.fx.context, this.tag, begun)
    return finished
  }

  /** Its name in events. */
  private get tag(): number {
    return lockTag(this.word.mapped.backing, this.word.index)
  }

  async lockAsync(owner: LockOwner, timeout: number = Infinity, signal?: AbortSignal): Promise<number> {
    signal?.throwIfAborted()
    const fast = this.lockFast(owner)
    if (fast <= 0) return fast
    const { fx } = this
    if (this.pi && takePendingLock(fx.context, owner, this.word)) return this.finish(owner, 0)
    const waiterOptions = promiseWaiter(fx.context.i32[owner.record + Owner.basePriority], owner)
    const deadline = this.deadlineOf(timeout)
    const begun = this.contends()
    let result = -ETIMEDOUT
    try {
      if (this.pi) {
        const prepared = this.queuePi(fx.context, waiterOptions, deadline)
        result = typeof prepared === 'number' ? prepared : await fx.promiseFor(prepared, signal)
      } else {
        result = this.take(owner, false)
        while (result < WAIT_BELOW) {
          const prepared = this.prepareWait(waiterOptions, result, deadline)
          const slept = typeof prepared === 'number' ? prepared : await fx.promiseFor(prepared, signal)
          result = slept === 0 || slept === -EAGAIN ? this.take(owner, true) : slept
        }
      }
    } catch (aborted) {
      this.giveUp(owner)
      throw aborted
    }
    return this.had(owner, result, begun)
  }

  *lockTask(
    parking: TaskWaiter,
    timeout: number = Infinity,
    signal?: AbortSignal,
    long: LongWait | null = null,
    once: boolean = false,
  ): Generator<number, number, unknown> {
    const { owner } = parking
    const fast = this.lockFast(owner)
    if (fast <= 0) return fast
    if (this.pi && takePendingLock(parking.context(), owner, this.word)) return this.finish(owner, 0)
    const waiterOptions = taskWaiter(parking, owner)
    const deadline = this.deadlineOf(timeout)
    const begun = this.contends()
    let result = -ETIMEDOUT
    let thrownInto = true
    try {
      if (this.pi) {
        const prepared = this.queuePi(parking.context(), waiterOptions, deadline)
        result = typeof prepared === 'number' ? prepared : yield* parkFor(parking, prepared, signal, long)
      } else {
        result = this.take(owner, false)
        while (result < WAIT_BELOW) {
          const prepared = this.prepareWait(waiterOptions, result, deadline)
          const slept: number =
            typeof prepared === 'number' ? prepared : yield* parkFor(parking, prepared, signal, long)
          result = slept === 0 || slept === -EAGAIN ? this.take(owner, true) : slept
          // WAITERS is set: the holder wakes the next waiter.
          if (once && slept === 0 && result < WAIT_BELOW) result = -EBUSY
        }
      }
      thrownInto = false
    } finally {
      if (thrownInto) this.giveUp(owner)
    }
    return this.had(owner, result, begun)
  }

  unlock(owner: LockOwner): number {
    const { words, index } = this
    const { tid } = owner
    if (!this.robust) {
      if (Atomics.compareExchange(words, index, tid, 0) === tid) return 0
      return this.unlockContended(owner)
    }
    if (owner.last !== this) return this.unlockListed(owner)
    const result = Atomics.compareExchange(words, index, tid, 0) === tid ? 0 : this.unlockContended(owner)
    if (result !== 0) return result
    owner.last = null
    owner.pending[0] = 0
    return 0
  }

  /** Unlocks a robust lock that was not locked last, or that is not consistent. */
  private unlockListed(owner: LockOwner): number {
    const { words, index } = this
    const { tid } = owner
    if (holderOf(Atomics.load(words, index)) !== tid) return -EPERM
    if (owner.pending[0] !== this.entry) unlinkEntry(this.fx.context, owner, this.entry)
    const at = index + MutexRecord.state
    if (words[at] !== CONSISTENT) words[at] = GONE
    const result = Atomics.compareExchange(words, index, tid, 0) === tid ? 0 : this.unlockContended(owner)
    clearPending(owner)
    return result
  }

  makeConsistent({ tid }: LockOwner): number {
    const { words, index } = this
    if (!this.robust || holderOf(Atomics.load(words, index)) !== tid) return -EINVAL
    const at = index + MutexRecord.state
    if (words[at] !== INCONSISTENT) return -EINVAL
    words[at] = CONSISTENT
    return 0
  }

  /**
   * For a wait at a condition (pirequeue.ts). A robust lock is on no list until this call: if its owner dies
   * before, the next caller finds that out (`markDead`).
   */
  granted(owner: LockOwner): number {
    if (!this.robust) return 0
    if (owner.last !== null) makeRoom(this.fx.context, owner)
    owner.last = this
    owner.pending[0] = this.entry
    return this.finishLock(owner)
  }

  /**
   * 0 or negative: done. 1: it is contended, and pending. In one piece, so that it is inlined into its
   * callers.
   */
  private lockFast(owner: LockOwner): number {
    const { words, index } = this
    if (!this.robust) return Atomics.compareExchange(words, index, 0, owner.tid) === 0 ? 0 : 1
    if (owner.last !== null) makeRoom(this.fx.context, owner)
    owner.last = this
    owner.pending[0] = this.entry
    if (Atomics.compareExchange(words, index, 0, owner.tid) !== 0) return 1
    return words[index + MutexRecord.state] === GONE ? this.refuse(owner) : 0
  }

  /**
   * After a slow path this owner holds a robust lock, which stays pending. Returns whether the last owner
   * died.
   */
  private finishLock(owner: LockOwner): number {
    const { words, index } = this
    const at = index + MutexRecord.state
    if (words[at] === GONE) return this.refuse(owner)
    if ((Atomics.load(words, index) & FUTEX_OWNER_DIED) === 0) return 0
    owner.last = SOMETHING
    words[at] = INCONSISTENT
    Atomics.and(words, index, ~FUTEX_OWNER_DIED)
    return -EOWNERDEAD
  }

  /** The lock is not recoverable. Wakes the next waiter, which gets the same error. */
  private refuse(owner: LockOwner): number {
    const { words, index } = this
    if (Atomics.compareExchange(words, index, owner.tid, 0) !== owner.tid) {
      Atomics.and(words, index, ~FUTEX_OWNER_DIED)
      this.unlockContended(owner)
    }
    clearPending(owner)
    return -ENOTRECOVERABLE
  }

  /** After a slow path: a robust lock is held, or no longer pending. */
  private finish(owner: LockOwner, result: number): number {
    if (!this.robust) return result
    if (result === 0) return this.finishLock(owner)
    clearPending(owner)
    return result
  }

  /** The wait was cancelled. If it was woken before, the next waiter gets its turn. */
  private giveUp(owner: LockOwner): void {
    if (!this.pi) this.passOn()
    if (this.robust) clearPending(owner)
  }

  /**
   * A waiter that may have been woken leaves. A wakeup in vain would cost the first waiter its place, so only
   * a free word is a reason for one.
   *
   *   unlocker            this waiter                       another owner
   *   --------            -----------                       -------------
   *   frees the word
   *   wakes this waiter                                     (A) takes the word, without WAITERS
   *                       leaves; (B) sets WAITERS
   *                                                         (C) unlocks: wakes the next waiter
   *
   * Without (B), (C) wakes none. If (A) comes after the waiter has left, the word was free, and (D) wakes.
   */
  passOn(): void {
    const { words, index } = this
    const { context } = this.fx
    for (;;) {
      const seen = Atomics.load(words, index)
      const holder = holderOf(seen)
      const marked = seen | FUTEX_WAITERS
      if (holder !== 0 && marked !== seen && Atomics.compareExchange(words, index, seen, marked) !== seen)
        continue // (B)
      // A holder that has ended may have done so before (B), and woke no waiter then.
      if (holder === 0 || findOwner(context, holder) === 0) wake(context, this.word, SHARED, 1, MATCH_ANY) // (D)
      return
    }
  }

  /** 0 or an error, without a wait, for a word that was not 0. */
  private tryContended(owner: LockOwner): number {
    const { words, index } = this
    if (holderOf(Atomics.load(words, index)) !== 0 && !this.markDead()) return -EBUSY
    if (this.pi) {
      if (takePendingLock(this.fx.context, owner, this.word)) return 0
      const waiterOptions = threadWaiter(undefined, owner)
      const result = lockPi(this.fx.context, waiterOptions, this.word, SHARED, Infinity, true)
      return result === -EAGAIN ? -EBUSY : (result as number)
    }
    for (;;) {
      const seen = Atomics.load(words, index)
      if ((seen & FUTEX_TID_MASK) !== 0) return -EBUSY
      if (Atomics.compareExchange(words, index, seen, seen | owner.tid) === seen) return 0
    }
  }

  /**
   * Takes the word of a lock that does not inherit, or sets WAITERS and returns the word to wait for. An
   * owner that has waited takes it with WAITERS, because there may be other waiters. OWNER_DIED stays until
   * finishLock has seen it.
   */
  private take(owner: LockOwner, waited: boolean): number {
    const { words, index } = this
    const flags = waited ? FUTEX_WAITERS : 0
    for (;;) {
      const seen = Atomics.load(words, index)
      const holder = seen & FUTEX_TID_MASK
      if (holder === 0) {
        if (Atomics.compareExchange(words, index, seen, seen | flags | owner.tid) === seen) return 0
        continue
      }
      if (holder === owner.tid) return -EDEADLK
      const marked = seen | FUTEX_WAITERS
      if (marked !== seen && Atomics.compareExchange(words, index, seen, marked) !== seen) continue
      // The owner may have ended before WAITERS was set, and then woke no waiter.
      if (findOwner(this.fx.context, holder) !== 0 || Atomics.load(words, index) !== marked) return marked
      if (!this.markDead()) return -ESRCH
    }
  }

  /**
   * Queues at the word, if it still is `expected`. -EAGAIN: check the word again.
   *
   *   waiter                                   recovery from the owner's death (recover.ts)
   *   ------                                   --------------------------------------------
   *   (A) queues                               (C) the owner's TID has no owner any more
   *   (B) does the TID have an owner?          (D) wakes the waiters at words with such a TID
   *
   * In every order, (B) sees (C) or (D) sees (A).
   */
  private prepareWait(waiterOptions: WaiterOptions, expected: number, deadline: number): Prepared {
    const { context } = this.fx
    const prepared = prepareWordWait(context, waiterOptions, this.word, SHARED, expected, deadline, MATCH_ANY) // (A)
    if (typeof prepared === 'number' || findOwner(context, expected & FUTEX_TID_MASK) !== 0) return prepared // (B)
    return finishCall(context, prepared, finishWait(context, prepared.waiters, -EAGAIN))
  }

  /** Unlocks a word with waiters. -EPERM: another owner holds it. */
  private unlockContended(owner: LockOwner): number {
    const { fx, word, words, index } = this
    if (this.pi && leavePendingWord(owner, word)) return 0
    if (fx.context.scheduler !== undefined && holderOf(Atomics.load(words, index)) === owner.tid)
      recordReleased(fx.context, this.tag, 0)
    if (this.pi) return unlockPi(fx.context, owner, word, SHARED, true)
    if ((Atomics.load(words, index) & FUTEX_TID_MASK) !== owner.tid) return -EPERM
    Atomics.exchange(words, index, 0)
    wake(fx.context, word, SHARED, 1, MATCH_ANY)
    return 0
  }

  private deadlineOf(timeout: number): number {
    if (timeout === Infinity) return Infinity
    if (Number.isNaN(timeout)) throw new RangeError('timeout: NaN is not a number of milliseconds')
    return deadlineOf(this.fx.context.now, timeout)
  }
}
