import { currentTask } from '../../kernel/cpu/taskwaiter.ts'
import { type Ambient, ambient } from '../../futex/core/ambient.ts'
import { finishCall, type Prepared, type PreparedWait } from '../../futex/operations/call.ts'
import { EAGAIN, EINTR, EINVAL, ETIMEDOUT, FutexError } from '../../futex/core/errno.ts'
import { parkFor } from '../../futex/core/futexes.ts'
import { resumable } from '../../coroutine/core/generators.ts'
import type { LockOwner } from '../../futex/core/owner.ts'
import { lockPi, unlockPi } from '../../futex/pi/pi.ts'
import { requeuePi, waitRequeuePi } from '../../futex/pi/pirequeue.ts'
import { finishWait, promiseWaiter, taskWaiter, threadWaiter } from '../../futex/core/sleep.ts'
import type { WaiterOptions } from '../../futex/operations/waitwake.ts'
import { deadlineIn, type FutexWaitOptions } from './futexwait.ts'
import { lockWordOf, valueIn } from './futexword.ts'
import { refuseBlocking, refuseInTask } from '../wait/caller.ts'

/** The calls of `futex` that inherit priorities, where words are locks. */
export type FutexLockView = Int32Array | Uint32Array

/** Begins a wait for a lock, for the owner in `waiterOptions`: a result, or a wait. */
export type BeginLock = (here: Ambient, waiterOptions: WaiterOptions) => Prepared

export function lockOf(
  view: FutexLockView,
  index: number,
  options: FutexWaitOptions,
  tries = false,
): BeginLock {
  return (here, waiterOptions) => {
    options.signal?.throwIfAborted()
    const word = lockWordOf(here, 'futex.lockPi', view, index)
    const { context } = here.futexes
    return lockPi(context, waiterOptions, word, true, deadlineIn(context, 'futex.lockPi', options), tries)
  }
}

/** Begins a wait at a word, from which `moveToLockOf` moves the waiter to its lock. */
export function waitForLockOf(
  view: FutexLockView,
  index: number,
  value: number,
  lockView: FutexLockView,
  lockIndex: number,
  options: FutexWaitOptions,
): BeginLock {
  const what = 'futex.waitRequeuePi'
  return (here, waiterOptions) => {
    options.signal?.throwIfAborted()
    const lock = lockWordOf(here, what, lockView, lockIndex)
    const word = lockWordOf(here, what, view, index)
    const { context } = here.futexes
    const deadline = deadlineIn(context, what, options)
    return waitRequeuePi(context, waiterOptions, word, lock, true, valueIn(view, what, value), deadline)
  }
}

/** In a task: 0, and the task holds the lock; or an error, negated. */
export function* lockInTask(
  what: string,
  begin: BeginLock,
  signal: AbortSignal | undefined,
): Generator<number, number, unknown> {
  const here = ambient()
  const task = currentTask()
  if (task === null)
    throw new FutexError(EINVAL, what, 'no task of a kernel runs here: use the Sync or Async form')
  const prepared = begin(here, taskWaiter(task, task.owner))
  return typeof prepared === 'number' ? prepared : yield* parkFor(task, prepared, signal)
}

resumable(lockInTask)

/** The same for this thread; blocks it. */
export function lockOnThread(what: string, begin: BeginLock): number {
  refuseInTask(what)
  const here = ambient()
  const prepared = begin(here, threadWaiter(undefined, here.futexes.self))
  if (typeof prepared === 'number') return prepared
  refuseToSleep(here, what, prepared)
  return here.futexes.blockFor(prepared)
}

/** The same for async code, with a new owner. If the result is 0 the caller keeps the owner, and `unlockPi` closes it. */
export async function lockAsPromise(
  begin: BeginLock,
  signal: AbortSignal | undefined,
): Promise<{ readonly result: number; readonly owner: LockOwner }> {
  const here = ambient()
  const { futexes } = here
  const owner = futexes.makeOwner()
  let result = -EINTR
  try {
    const prepared = begin(here, promiseWaiter(undefined, owner))
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
function ownerHere(here: Ambient): LockOwner {
  return currentTask()?.owner ?? here.futexes.self
}

/** False: another owner holds it. */
export function tryLock(view: FutexLockView, index: number): boolean {
  const here = ambient()
  const result = lockOf(view, index, {}, true)(here, threadWaiter(undefined, ownerHere(here))) as number
  return result === -EAGAIN ? false : locked(result, 'futex.tryLockPi')
}

export function unlock(view: FutexLockView, index: number, owner: LockOwner | undefined): void {
  const here = ambient()
  const what = 'futex.unlockPi'
  const word = lockWordOf(here, what, view, index)
  const result = unlockPi(here.futexes.context, owner ?? ownerHere(here), word, true)
  if (result < 0) throw new FutexError(-result, what)
  if (owner !== undefined) here.futexes.closeOwner(owner)
}

/** Gives a free lock to the first waiter, and moves up to `move` others to it. Returns how many in all, or an error, negated. */
export function moveToLockOf(
  view: FutexLockView,
  index: number,
  lockView: FutexLockView,
  lockIndex: number,
  expected: number,
  move: number,
): number {
  const here = ambient()
  const what = 'futex.cmpRequeuePi'
  const from = lockWordOf(here, what, view, index)
  const lock = lockWordOf(here, what, lockView, lockIndex)
  return requeuePi(here.futexes.context, from, lock, true, move, valueIn(view, what, expected))
}

/** Throws on a thread that must not block, after its waiter has left the queue. */
function refuseToSleep(here: Ambient, what: string, prepared: PreparedWait): void {
  if (here.futexes.mayBlock) return
  finishCall(here.futexes.context, prepared, finishWait(here.futexes.context, prepared.waiters, -EINTR))
  refuseBlocking(here, what)
}
