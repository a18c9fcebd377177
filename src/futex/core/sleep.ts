import type { FutexContext } from './context.ts'
import { napOf, timeLeft, wokeEarly } from './deadline.ts'
import { EFAULT, EINTR, ETIMEDOUT } from './errno.ts'
import { tellBlocked } from './events.ts'
import { answerCall, isCalled } from '../pi/pending.ts'
import { takeOff, wakeAll } from './queue.ts'
import type { LockOwner } from './owner.ts'
import { QUEUE_ENDED, PROMISE, QUEUE_RESTARTED, TASK, THREAD, Waiter, QUEUE_WOKEN } from './records.ts'
import type { WaiterOptions } from '../operations/waitwake.ts'

/**
 * The second half of a wait: three ways to sleep, one protocol. The sleeper clears its `signal`, looks at the
 * fate of its waiters, and sleeps at the signal:
 *
 *   sleeper                                  waker
 *   -------                                  -----
 *   (A) signal = 0                           (C) queue = QUEUE_WOKEN
 *   (B) looks at queue                       (D) signal = 1, notify
 *   sleeps while signal is 0
 *
 * (C) before (D): a signal that (A) wipes out is one whose fate (B) sees. A signal without a fate (a spurious
 * wakeup, or one meant for the slot's last life) sends the sleeper round once more. One that waits for a lock
 * may be called to it at (C) instead (pending.ts): it comes at (B), and if another was first it has no fate
 * yet, and sleeps on.
 */

/** A task, as a wait needs it: the scheduler's side of parking it (tasks.ts). */
export interface TaskWaiter {
  readonly task: number
  readonly priority: number
  /** What it is as an owner of locks; made at first use. */
  readonly owner: LockOwner
  /** What its coroutine yields to give the CPU up. */
  readonly suspended: number
  /** The futexes of the CPU that it is on now: it may have moved while it slept. */
  context(): FutexContext
  /**
   * The state says asleep, for at most `timeout` milliseconds. False: a signal or a kill is pending, and it
   * must not park.
   */
  beginPark(timeout: number): boolean
  /**
   * What it waits for has come between beginPark and the yield. False: a waker has claimed it, and it must
   * yield all the same.
   */
  cancelPark(): boolean
  /** After the switch. True: a signal or a kill ended the sleep. */
  endPark(): boolean
}

/** Ordinary threads and promises wait at this priority: that of an ordinary task. */
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

/** A wait for a lock that may turn out to be long: it is called upon every LOOK_MS, by who waits. */
export interface LongWait {
  look(context: FutexContext): void
}

/** Twice that, and a look, is how long a deadlock goes on before it is found. */
export const LOOK_MS = 250

/**
 * (B): whether the fate of one of the waiters is decided, in whatever way. A waiter that was called to its
 * lock comes for it first. No lock is held.
 */
export function hasFate(context: FutexContext, waiters: readonly number[]): boolean {
  const { i32 } = context
  // A wait at several words is none for a lock.
  if (isCalled(i32, waiters[0])) {
    answerCall(context, waiters[0])
    if (context.wakeQueue.length > 0) wakeAll(context)
  }
  return isDecided(i32, waiters)
}

function isDecided(i32: Int32Array, waiters: readonly number[]): boolean {
  for (let at = 0; at < waiters.length; at++) {
    const queue = Atomics.load(i32, waiters[at] + Waiter.queue)
    if (queue === QUEUE_WOKEN || queue === QUEUE_ENDED || queue === QUEUE_RESTARTED) return true
  }
  return false
}

/**
 * The wait was broken off by the death of another thread, and the call begins anew. Only a wait for a lock or
 * at an object ends so.
 */
export const RESTART = -512

/**
 * Ends a wait: every waiter leaves its queue, and is the caller's to free. Returns the index of the last one
 * that a wake had taken, else RESTART if one was sent round, else -EFAULT if a mapping went away, else
 * `otherwise`.
 */
export function finishWait(context: FutexContext, waiters: readonly number[], otherwise: number): number {
  const { i32 } = context
  let result = otherwise
  let gone = false
  for (let at = 0; at < waiters.length; at++) {
    const waiter = waiters[at]
    if (!takeOff(context, waiter)) {
      const fate = Atomics.load(i32, waiter + Waiter.queue)
      if (fate === QUEUE_WOKEN) {
        result = at
        gone = false
      } else if (fate === QUEUE_RESTARTED) {
        if (result < 0) result = RESTART
      } else if (result === otherwise) gone = true
    }
  }
  // A call that one of them had is the next waiter's.
  if (context.wakeQueue.length > 0) wakeAll(context)
  return gone ? -EFAULT : result
}

/** Blocks the thread. `deadline` as deadline.ts has them. Returns as finishWait. */
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
    if (hasFate(context, waiters)) return finishWait(context, waiters, -ETIMEDOUT) // (B)
    const left = timeLeft(context.now, deadline)
    if (left <= 0) return finishWait(context, waiters, -ETIMEDOUT)
    const nap = napOf(deadline, left)
    if (sleepAt(context, signal, Math.min(nap, step))) continue
    if (step < nap) long?.look(context)
    else if (!wokeEarly(context.now, deadline, left)) return finishWait(context, waiters, -ETIMEDOUT)
  }
}

function stepOf({ looksForDeadlocks }: FutexContext, long: LongWait | null): number {
  return long !== null && looksForDeadlocks ? LOOK_MS : Infinity
}

const MEANWHILE_MS = 20

/** False: the time is over. */
function sleepAt({ i32, thread }: FutexContext, signal: number, ms: number): boolean {
  const { serveWhileBlocked } = thread
  if (serveWhileBlocked === null) return Atomics.wait(i32, signal, 0, ms) !== 'timed-out'
  for (let left = ms; left > 0; left -= MEANWHILE_MS) {
    if (Atomics.wait(i32, signal, 0, Math.min(left, MEANWHILE_MS)) !== 'timed-out') return true
    serveWhileBlocked()
  }
  return false
}

/**
 * Keeps the process alive while a promise waits: `Atomics.waitAsync` alone does not. Returns what ends that.
 */
export function keepAlive(): () => void {
  const timer = setInterval(() => undefined, 0x7fff_ffff)
  return () => clearInterval(timer)
}

/** A promise; cancelled by `abort`, and then the promise rejects with the signal's reason. */
export async function sleepPromise(
  context: FutexContext,
  waiters: readonly number[],
  deadline: number,
  abort: AbortSignal | undefined,
): Promise<number> {
  const { i32 } = context
  const signal = waiters[0] + Waiter.signal
  const release = keepAlive()
  const onAbort = (): void => {
    Atomics.store(i32, signal, 1)
    Atomics.notify(i32, signal)
  }
  abort?.addEventListener('abort', onAbort)
  try {
    for (;;) {
      Atomics.store(i32, signal, 0) // (A)
      if (hasFate(context, waiters)) return finishWait(context, waiters, -ETIMEDOUT) // (B)
      if (abort?.aborted) {
        const result = finishWait(context, waiters, -EINTR)
        // A wake that came first counts: its waker was told that it woke someone.
        if (result === -EINTR) throw abort.reason
        return result
      }
      const left = timeLeft(context.now, deadline)
      if (left <= 0) return finishWait(context, waiters, -ETIMEDOUT)
      // Whole milliseconds, as its timer has them: with a fraction, the rest of it would be spent in turns of
      // the loop.
      const waiting = Atomics.waitAsync(i32, signal, 0, Math.ceil(napOf(deadline, left)))
      const isOver = waiting.async && (await waiting.value) === 'timed-out'
      if (isOver && !wokeEarly(context.now, deadline, left)) return finishWait(context, waiters, -ETIMEDOUT)
    }
  } finally {
    release()
    abort?.removeEventListener('abort', onAbort)
  }
}

/**
 * Parks the task; what it yields tells its CPU so. An abort ends the wait as a signal does: -EINTR. Thrown
 * into (a cancel or a kill that arrives while it is parked), the task leaves its queues and the throw goes
 * on; a waiter that says QUEUE_WOKEN afterwards had been woken before, which is then the caller's to pass on.
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
      if (hasFate(task.context(), waiters)) break
      if (abort?.aborted) {
        otherwise = -EINTR
        break
      }
      const left = timeLeft(now, deadline)
      if (left <= 0) break
      const nap = napOf(deadline, left)
      if (!task.beginPark(Math.min(nap, step))) {
        otherwise = -EINTR
        break
      }
      tellBlocked(task.context(), waiters[0])
      // The state says asleep: a wake from here on finds it so, and one that came before is seen now.
      if ((isDecided(i32, waiters) || isCalled(i32, waiters[0])) && task.cancelPark()) continue
      parked = true
      yield task.suspended
      parked = false
      if (task.endPark()) {
        otherwise = -EINTR
        break
      }
      if (step < nap && !hasFate(task.context(), waiters)) long?.look(task.context())
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
