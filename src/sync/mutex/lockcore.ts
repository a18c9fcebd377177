import type { FutexContext } from '../../futex/core/context.ts'
import type { LockOwner } from '../../futex/core/owner.ts'
import type { LEAVES, LongWait } from '../../futex/core/sleep.ts'
import type { ObjectWords } from '../wait/objectwords.ts'
import type { ParkingQueue } from '../wait/queue.ts'
import type { WaitOptions } from '../wait/waiting.ts'

export type Protocol = 'none' | 'inherit' | 'handoff'

/**
 * The lock that a Mutex contains: its holder, and how a caller waits for it. Mutex adds the public verbs,
 * recursion, tokens and debug mode, and Condition its queues; both use this interface only.
 *
 *   protocol    robust   core                            a waiter sleeps
 *   --------    ------   ----                            ---------------
 *   none        no       ParkingLock (parkinglock.ts)    on the mutex's parking queue
 *   none        yes      FutexLock (futexlock.ts)        at the futex of a word
 *   inherit     either   FutexLock                       at the futex of a word, and lends its priority
 *   handoff     either   HandoffLock (handofflock.ts)    as FutexLock, after it has yielded to the holder
 *
 * `what` is the caller's verb, for messages. `long` searches for deadlocks while the wait lasts.
 */
export interface LockCore {
  /** The last holder died with the lock, and `makeConsistent` has not been called since. */
  readonly ownerDied: boolean
  /** Where a notifier may queue the waiters of a condition; null: at the word that `aim` names. */
  readonly parking: (ObjectWords & { readonly queue: ParkingQueue }) | null

  /** The TID of the holder, or 0. */
  holder(): number
  /**
   * The caller takes it. False: another owner has it, or this one. Throws when the mutex has been disposed
   * of.
   */
  tryLockHere(): boolean
  /** The same for an owner that the caller names. */
  tryLock(owner: LockOwner): boolean
  /** As tryLock, before a wait: spins where that may help. `blocks`: a thread would block, not a task. */
  tryLockSoon(owner: LockOwner, blocks: boolean): boolean
  /** These three wait. False: the time is over. */
  lockTask(
    what: string,
    owner: LockOwner,
    options: WaitOptions | undefined,
    long: LongWait | null,
  ): Generator<number, boolean | typeof LEAVES, unknown>
  lockSync(what: string, owner: LockOwner, options: WaitOptions | undefined, long: LongWait | null): boolean
  lockAsync(what: string, owner: LockOwner, options: WaitOptions | undefined): Promise<boolean>
  /** The caller unlocks it. False: the caller does not hold it. */
  unlockHere(): boolean
  unlock(owner: LockOwner): boolean
  /** Throws unless this owner holds the lock and was told that the last holder died. */
  makeConsistent(owner: LockOwner): void

  /** Says in a waiter of a condition to which word a notifier may move it. */
  aim(context: FutexContext, waiter: number, owner: LockOwner): void
  /** After a wait at a condition: true: this owner has the lock, because it is free or was given to it. */
  tryRelock(owner: LockOwner): boolean
  /**
   * This owner waited for the lock after a wait at a condition, and has it: unlocking wakes the next waiter.
   */
  relocked(): void
  /** A notified waiter does not lock again: the next waiter is woken in its place. */
  passOn(): void

  /** The mutex is about to be sent to other threads. */
  announce(): void
  /** No thread may use the mutex any more. Throws while it is held. */
  dispose(): void
}
