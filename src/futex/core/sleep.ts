import type { FutexContext } from './context.ts'
import { sleepMs, timeLeft, wokeEarly } from './deadline.ts'
import { EFAULT, EINTR, ETIMEDOUT } from './errno.ts'
import { recordBlocked } from './events.ts'
import { type SleepEnd, sleepHere, wakeHere } from './sleephere.ts'
import { tryToTake, isCalled } from '../pi/pending.ts'
import { isDecided, takeOff, wakeAll } from './queue.ts'
import type { LockOwner } from './owner.ts'
import { PROMISE, QUEUE_RESTARTED, QUEUE_WOKEN, TASK, THREAD, Waiter } from './records.ts'
import type { WaiterOptions } from '../operations/waitwake.ts'

/**
 * The second half of a wait: three ways to sleep, one protocol. The sleeper clears its `signal`, checks
 * whether its waiters are decided, and sleeps at the signal:
 *
 *   sleeper                                  waker
 *   -------                                  -----
 *   (A) signal = 0                           (C) queue = QUEUE_WOKEN
 *   (B) reads queue                          (D) signal = 1, notify
 *   sleeps while signal is 0
 *
 * (C) before (D): if (A) erases a signal, (B) sees its outcome. After a signal without an outcome (a spurious
 * wakeup, or one for an earlier life of the slot) the sleeper repeats (A). A waiter for a lock may be called
 * at (C) instead (pending.ts): it tries to take the lock at (B), and if another owner was first, it has no
 * outcome yet and sleeps on.
 */

/** A task as a waiter: the scheduler's side of parking it (schedtaskwaiter.ts). */
export interface TaskWaiter {
  readonly task: number
  readonly priority: number
  /** The task as an owner of locks; created at first use. */
  readonly owner: LockOwner
  /** The value that its coroutine yields to give up the CPU. */
  readonly suspended: number
  /** The futex context of the CPU that it is on now: it may have moved while it slept. */
  context(): FutexContext
  /**
   * Marks the task as asleep, for at most `timeout` milliseconds. False: a kill is pending, and
   * it must not park.
   */
  beginPark(timeout: number): boolean
  /**
   * Undoes beginPark, because the wait ended before the yield. False: a waker has claimed the task, and it
   * must yield anyway.
   */
  cancelPark(): boolean
  /** Called after the switch. True: a kill ended the sleep. */
  endPark(): boolean
  /**
   * The task should go to another CPU, and its call can begin again there: the wait ends with LEAVES. A
   * waiter record belongs to the CPU that made it, so a task is on no queue while it moves.
   */
  leaves(): boolean
  /** `leaves` may become true at a yield, because of the lock that the task waits for. */
  readonly mayFollow: boolean
}

/** The waiting priority of ordinary threads and promises: that of an ordinary task. */
export const ORDINARY_PRIORITY: number = 32 << 2

export function threadWaiter(priority: number = ORDINARY_PRIORITY, owner?: LockOwner): WaiterOptions {
  return { kind: THREAD, task: 0, priority, owner }
}

export function promiseWaiter(priority: number = ORDINARY_PRIORITY, owner?: LockOwner): WaiterOptions {
  return { kind: PROMISE, task: 0, priority, owner }
}

export function taskWaiter(parking: TaskWaiter, owner?: LockOwner): WaiterOptions {
  return { kind: TASK, task: parking.task, priority: parking.priority, owner }
}

/** A wait for a lock that may become long: the sleeper calls it every DEADLOCK_CHECK_MS. */
export interface LongWait {
  checkDeadlock(context: FutexContext): void
}

/** A deadlock is found after at most three times this time. */
export const DEADLOCK_CHECK_MS = 250

/**
 * (B): whether one of the waiters is decided. A waiter that was called to its lock tries to take it first. No
 * lock is held.
 */
export function isWaitOver(context: FutexContext, waiters: readonly number[]): boolean {
  const { i32 } = context
  // A wait at several words is never a wait for a lock.
  if (isCalled(i32, waiters[0])) {
    tryToTake(context, waiters[0])
    if (context.wakeQueue.length > 0) wakeAll(context)
  }
  return isOneDecided(i32, waiters)
}

function isOneDecided(i32: Int32Array, waiters: readonly number[]): boolean {
  for (let at = 0; at < waiters.length; at++) {
    if (isDecided(Atomics.load(i32, waiters[at] + Waiter.queue))) return true
  }
  return false
}

/**
 * The wait was interrupted by the death of another thread, and the call restarts. Only a wait for a lock or
 * at an object ends so.
 */
export const RESTART = -512

/** The waiter has left, and its call begins again on another CPU (`TaskWaiter.leaves`). */
export const LEAVES = -513

/**
 * Ends a wait: every waiter leaves its queue, and the caller frees it. Returns the index of the last woken
 * waiter, else RESTART if one has to restart, else -EFAULT if a mapping was unmapped, else `otherwise`.
 */
export function finishWait(context: FutexContext, waiters: readonly number[], otherwise: number): number {
  const { i32 } = context
  let result = otherwise
  let gone = false
  for (let at = 0; at < waiters.length; at++) {
    const waiter = waiters[at]
    if (!takeOff(context, waiter)) {
      const end = Atomics.load(i32, waiter + Waiter.queue)
      if (end === QUEUE_WOKEN) {
        result = at
        gone = false
      } else if (end === QUEUE_RESTARTED) {
        if (result < 0) result = RESTART
      } else if (result === otherwise) gone = true
    }
  }
  // If one of them had been called, the call passes to the next waiter.
  if (context.wakeQueue.length > 0) wakeAll(context)
  return gone ? -EFAULT : result
}

/** Blocks the thread. `deadline`: see deadline.ts. Returns as finishWait. */
export function sleepThread(
  context: FutexContext,
  waiters: readonly number[],
  deadline: number,
  long: LongWait | null = null,
): number {
  const { i32 } = context
  const step = stepOf(context, long)
  const signal = waiters[0] + Waiter.signal
  for (;;) {
    Atomics.store(i32, signal, 0) // (A)
    if (isWaitOver(context, waiters)) return finishWait(context, waiters, -ETIMEDOUT) // (B)
    const left = timeLeft(context.now, deadline)
    if (left <= 0) return finishWait(context, waiters, -ETIMEDOUT)
    const nap = sleepMs(deadline, left)
    if (sleepAt(context, signal, Math.min(nap, step))) continue
    if (step < nap) long?.checkDeadlock(context)
    else if (!wokeEarly(context.now, deadline, left)) return finishWait(context, waiters, -ETIMEDOUT)
  }
}

function stepOf({ detectsDeadlocks }: FutexContext, long: LongWait | null): number {
  return long !== null && detectsDeadlocks ? DEADLOCK_CHECK_MS : Infinity
}

const MEANWHILE_MS = 20

/** False: the time is over. */
function sleepAt({ i32, thread }: FutexContext, signal: number, ms: number): boolean {
  const { rescuer } = thread
  if (rescuer?.serveWhileBlocked === undefined) return Atomics.wait(i32, signal, 0, ms) !== 'timed-out'
  for (let left = ms; left > 0; left -= MEANWHILE_MS) {
    if (Atomics.wait(i32, signal, 0, Math.min(left, MEANWHILE_MS)) !== 'timed-out') return true
    rescuer.serveWhileBlocked()
  }
  return false
}

/** How many promises of this thread wait, and the handle that keeps the process alive for all of them. */
let waitingPromises = 0
let handle: ReturnType<typeof setInterval> | undefined

/** Keeps the process alive while a promise waits, until `endKeepAlive`: `Atomics.waitAsync` does not. */
export function keepAlive(): void {
  if (waitingPromises++ === 0) handle = setInterval(() => undefined, 0x7fff_ffff)
}

export function endKeepAlive(): void {
  if (--waitingPromises === 0) clearInterval(handle)
}

/** Waits as a promise. `abort` cancels it: the promise rejects with the signal's reason. */
export async function sleepPromise(
  context: FutexContext,
  waiters: readonly number[],
  deadline: number,
  abort: AbortSignal | undefined,
): Promise<number> {
  const { i32 } = context
  const signal = waiters[0] + Waiter.signal
  keepAlive()
  const onAbort = (): void => {
    Atomics.store(i32, signal, 1)
    wakeHere(context, waiters[0])
  }
  abort?.addEventListener('abort', onAbort)
  try {
    for (;;) {
      Atomics.store(i32, signal, 0) // (A)
      if (isWaitOver(context, waiters)) return finishWait(context, waiters, -ETIMEDOUT) // (B)
      if (abort?.aborted) {
        const result = finishWait(context, waiters, -EINTR)
        // A wake that came first counts: its waker has counted it.
        if (result === -EINTR) throw abort.reason
        return result
      }
      const left = timeLeft(context.now, deadline)
      if (left <= 0) return finishWait(context, waiters, -ETIMEDOUT)
      const nap = sleepMs(deadline, left)
      const end = await new Promise<SleepEnd>(wake => sleepHere(context, waiters[0], nap, wake))
      const isOver = end === 'timed-out'
      if (isOver && !wokeEarly(context.now, deadline, left)) return finishWait(context, waiters, -ETIMEDOUT)
    }
  } finally {
    endKeepAlive()
    abort?.removeEventListener('abort', onAbort)
  }
}

/**
 * Parks the task: the value that it yields says so to its CPU. An abort ends the wait like a kill: -EINTR.
 * If an error is thrown into the task (a cancel or a kill while it is parked), the task leaves its queues and
 * the error goes on. A waiter that is QUEUE_WOKEN then had been woken before, and the caller must pass that
 * on.
 */
export function* sleepTask(
  task: TaskWaiter,
  waiters: readonly number[],
  deadline: number,
  abort: AbortSignal | undefined,
  long: LongWait | null = null,
): Generator<number, number, unknown> {
  let otherwise = -ETIMEDOUT
  const step = stepOf(task.context(), long)
  const onAbort = (): void => task.context().wakeTask(task.task)
  abort?.addEventListener('abort', onAbort)
  let parked = false
  let thrownInto = true
  try {
    for (;;) {
      const { i32, now } = task.context()
      if (isWaitOver(task.context(), waiters)) break
      if (abort?.aborted) {
        otherwise = -EINTR
        break
      }
      if (task.leaves()) {
        otherwise = LEAVES
        break
      }
      const left = timeLeft(now, deadline)
      if (left <= 0) break
      const nap = sleepMs(deadline, left)
      if (!task.beginPark(Math.min(nap, step))) {
        otherwise = -EINTR
        break
      }
      recordBlocked(task.context(), waiters[0])
      // The task is marked asleep: a later wake finds that mark, and an earlier one is seen here.
      if ((isOneDecided(i32, waiters) || isCalled(i32, waiters[0])) && task.cancelPark()) continue
      parked = true
      yield task.suspended
      parked = false
      if (task.endPark()) {
        otherwise = -EINTR
        break
      }
      if (step < nap && !isWaitOver(task.context(), waiters)) long?.checkDeadlock(task.context())
    }
    thrownInto = false
  } finally {
    abort?.removeEventListener('abort', onAbort)
    if (thrownInto) {
      if (parked) task.endPark()
      finishWait(task.context(), waiters, -EINTR)
    }
  }
  return finishWait(task.context(), waiters, otherwise)
}
