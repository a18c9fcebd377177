import { currentTask } from '../../kernel/cpu/taskwaiter.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import type { Futexes } from '../../futex/core/futexes.ts'
import { finishCall, type Prepared, type PreparedWait } from '../../futex/operations/call.ts'
import { EAGAIN, EINTR, EINVAL, ETIMEDOUT, FutexError } from '../../futex/core/errno.ts'
import { parkFor } from '../../futex/core/futexes.ts'
import { resumable } from '../../coroutine/core/generators.ts'
import { LockOwner } from '../../futex/core/owner.ts'
import { lockPi, unlockPi } from '../../futex/pi/pi.ts'
import { requeuePi, waitRequeuePi } from '../../futex/pi/pirequeue.ts'
import { finishWait, promiseWaiter, taskWaiter, threadWaiter } from '../../futex/core/sleep.ts'
import type { WaiterOptions } from '../../futex/operations/waitwake.ts'
import { checkSignal, deadlineIn, type FutexLockOptions, lockOptions } from './futexwait.ts'
import { lockWordOf, valueIn } from './futexword.ts'
import { refuseBlocking, refuseInTask } from '../wait/caller.ts'

/** The calls of `futex` that inherit priorities, where words are locks. */
export type FutexLockView = Int32Array | Uint32Array

/** Begins a wait for a lock, for the owner in `waiterOptions`: a result, or a wait. */
export type BeginLock = (futexes: Futexes, waiterOptions: WaiterOptions) => Prepared

export function lockOf(
  view: FutexLockView,
  index: number,
  options: FutexLockOptions,
  tries = false,
): BeginLock {
  return (futexes, waiterOptions) => {
    checkSignal('futex.lockPi', options.signal)
    const word = lockWordOf(futexes, 'futex.lockPi', view, index)
    const { context } = futexes
    const deadline = deadlineIn(context, 'futex.lockPi', options, lockOptions)
    return lockPi(context, waiterOptions, word, true, deadline, tries)
  }
}

/** Begins a wait at a word, from which `moveToLockOf` moves the waiter to its lock. */
export function waitForLockOf(
  view: FutexLockView,
  index: number,
  value: number,
  lockView: FutexLockView,
  lockIndex: number,
  options: FutexLockOptions,
): BeginLock {
  const what = 'futex.waitRequeuePi'
  return (futexes, waiterOptions) => {
    checkSignal(what, options.signal)
    const lock = lockWordOf(futexes, what, lockView, lockIndex)
    const word = lockWordOf(futexes, what, view, index)
    const { context } = futexes
    const deadline = deadlineIn(context, what, options, lockOptions)
    return waitRequeuePi(context, waiterOptions, word, lock, true, valueIn(view, what, value), deadline)
  }
}

/** In a task: 0, and the task holds the lock; or an error, negated. */
export function* lockInTask(
  what: string,
  begin: BeginLock,
  signal: AbortSignal | undefined,
): Generator<number, number, unknown> {
  const futexes = currentFutexes()
  const task = currentTask()
  if (task === null)
    throw new FutexError(EINVAL, what, 'no task of a kernel runs here: use the Sync or Async form')
  const prepared = begin(futexes, taskWaiter(task, task.owner))
  return typeof prepared === 'number' ? prepared : yield* parkFor(task, prepared, signal)
}

resumable(lockInTask)

/** The same for this thread; blocks it. */
export function lockOnThread(what: string, begin: BeginLock): number {
  refuseInTask(what)
  const futexes = currentFutexes()
  const prepared = begin(futexes, threadWaiter(undefined, futexes.self))
  if (typeof prepared === 'number') return prepared
  refuseToSleep(futexes, what, prepared)
  return futexes.blockFor(prepared)
}

/**
 * The same for async code, with a new owner. If the result is 0 the caller keeps the owner, and `unlockPi`
 * closes it.
 */
export async function lockAsPromise(
  begin: BeginLock,
  signal: AbortSignal | undefined,
): Promise<{ readonly result: number; readonly owner: LockOwner }> {
  const futexes = currentFutexes()
  const owner = futexes.makeOwner()
  let result = -EINTR
  try {
    const prepared = begin(futexes, promiseWaiter(undefined, owner))
    result = typeof prepared === 'number' ? prepared : await futexes.promiseFor(prepared, signal)
    return { result, owner }
  } finally {
    if (result !== 0) futexes.closeOwner(owner)
  }
}

/** Whether the caller has the lock; false: the time is over. */
export function locked(result: number, what: string, signal?: AbortSignal | undefined): boolean {
  if (result === 0) return true
  if (result === -ETIMEDOUT) return false
  if (result === -EINTR) signal?.throwIfAborted()
  throw new FutexError(-result, what)
}

/** The owner of the running task, or of the thread. */
function ownerHere(futexes: Futexes): LockOwner {
  return currentTask()?.owner ?? futexes.self
}

/** False: another owner holds it. */
export function tryLock(view: FutexLockView, index: number): boolean {
  const futexes = currentFutexes()
  const result = lockOf(view, index, {}, true)(futexes, threadWaiter(undefined, ownerHere(futexes))) as number
  return result === -EAGAIN ? false : locked(result, 'futex.tryLockPi')
}

export function unlock(view: FutexLockView, index: number, owner: LockOwner | undefined): void {
  const futexes = currentFutexes()
  const what = 'futex.unlockPi'
  const word = lockWordOf(futexes, what, view, index)
  if (owner !== undefined && !(owner instanceof LockOwner)) {
    const got = owner === null ? 'null, as of a wait that timed out,' : typeof owner
    throw new FutexError(
      EINVAL,
      what,
      `owner: ${got} is not an owner; give what lockPiAsync or waitRequeuePiAsync returned, or nothing`,
    )
  }
  const result = unlockPi(futexes.context, owner ?? ownerHere(futexes), word, true)
  if (result < 0) throw new FutexError(-result, what)
  if (owner !== undefined) futexes.closeOwner(owner)
}

/**
 * Gives a free lock to the first waiter, and moves up to `move` others to it. Returns how many in all, or an
 * error, negated.
 */
export function moveToLockOf(
  view: FutexLockView,
  index: number,
  lockView: FutexLockView,
  lockIndex: number,
  expected: number,
  move: number,
): number {
  const futexes = currentFutexes()
  const what = 'futex.cmpRequeuePi'
  const from = lockWordOf(futexes, what, view, index)
  const lock = lockWordOf(futexes, what, lockView, lockIndex)
  return requeuePi(futexes.context, from, lock, true, move, valueIn(view, what, expected))
}

/** Throws on a thread that must not block, after its waiter has left the queue. */
function refuseToSleep(futexes: Futexes, what: string, prepared: PreparedWait): void {
  if (futexes.mayBlock) return
  finishCall(futexes.context, prepared, finishWait(futexes.context, prepared.waiters, -EINTR))
  refuseBlocking(futexes, what)
}
