import type { LockOwner } from '../core/owner.ts'
import type { LongWait, TaskWaiter } from '../core/sleep.ts'

/**
 * A lock in shared memory as one thread sees it: `WordMutex`, or the hand-off shim around one. Results are 0,
 * or an error, negated. An owner waits for one lock at a time.
 */
export interface OwnedLock {
  /** Whether no owner holds it now. */
  looksFree(): boolean
  isHeldBy(owner: LockOwner): boolean
  /** 0, -EBUSY, -EOWNERDEAD, -ENOTRECOVERABLE. */
  tryLock(owner: LockOwner): number
  /** Blocks the thread. 0, -EOWNERDEAD, -ENOTRECOVERABLE, -ETIMEDOUT, -EDEADLK, -ESRCH. */
  lockSync(owner: LockOwner, timeoutMs?: number, long?: LongWait | null): number
  /** As lockSync, as a promise; an abort rejects with the signal's reason. */
  lockAsync(owner: LockOwner, timeoutMs?: number, signal?: AbortSignal): Promise<number>
  /**
   * As lockSync, in a task; a signal or a kill ends it with -EINTR, and `parking.leaves` with LEAVES. An
   * exception thrown into the parked task leaves it. `once`: ends with -EBUSY when the task was woken and
   * another owner was first.
   */
  lockTask(
    parking: TaskWaiter,
    timeoutMs?: number,
    signal?: AbortSignal,
    long?: LongWait | null,
    once?: boolean,
  ): Generator<number, number, unknown>
  /** 0, or -EPERM: this owner does not hold it. */
  unlock(owner: LockOwner): number
  /** The data that it guards is consistent again. 0, or -EINVAL: this owner was not told of a death. */
  makeConsistent(owner: LockOwner): number
  /** A notifier or an unlocker made this owner the holder while it slept. Results as of lockSync. */
  granted(owner: LockOwner): number
}
