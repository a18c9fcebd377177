import { assert } from '../../arena/assert.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { Entity } from './entity.ts'
import { RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'
import { SWITCH_SLEEPS } from './switch.ts'
import {
  INTERRUPTIBLE,
  SLEEP_KILLED,
  PENDING_KILL,
  PENDING_SIGNAL,
  RUNNING,
  SLEEP_SIGNALLED,
  TaskRecord,
  TIMER_KILLABLE,
  WAKE_ANY,
  WAKE_INTERRUPTIBLE,
  WAKE_KILLABLE,
  SLEEP_WOKEN,
} from './taskrecord.ts'
import { armTimer, cancelTimer } from './timer.ts'
import { wakeup } from './wakeup.ts'

/**
 * Going to sleep. The state says so before the lock that guards the condition is let go:
 *
 *   sleeper                                    who makes the event
 *   -------                                    -------------------
 *   lock(lk); the event has not come
 *   (A) state = INTERRUPTIBLE
 *   (B) unlock(lk)
 *                                              lock(lk); makes the event; finds the sleeper; unlock(lk)
 *                                              wakes it: its state is INTERRUPTIBLE
 *   switches away: finish, or the waker, puts it back
 *
 * With (B) before (A) the wakeup could find it RUNNING and do nothing, and the sleeper then sleeps for ever.
 *
 * Signals, which have no lock:
 *
 *   sleeper                                    who signals
 *   -------                                    -----------
 *   (A) state = INTERRUPTIBLE                  (C) pending |= SIGNAL
 *   (D) looks at pending                       (E) wakes it if its state is INTERRUPTIBLE
 *
 * Whichever way they fall together, (D) sees (C) or (E) sees (A). A sleeper that sees a signal at (D) takes
 * its state back by compare-exchange; if that fails, a waker has claimed it, and it must switch all the same.
 *
 * A task's code comes here on the CPU that runs it. After it has resumed it may be on another: the context
 * says which.
 */
export interface TaskContext {
  /** The scheduler of the CPU that runs the task now. */
  s: Scheduler
  readonly task: number
}

/**
 * Makes the current task's state say asleep; a timeout is in milliseconds from now. True: the caller switches
 * away (SWITCH_SLEEPS), then calls endSleep. False: a signal or a kill is pending, and it has not slept.
 */
export function beginSleep(s: Scheduler, task: number, state: number, timeout: number = Infinity): boolean {
  const { i32 } = s
  assert(i32[i32[s.queue + RunQueue.current] + Entity.task] === task, 'only the current task can go to sleep')
  assert(state > RUNNING && state <= TIMER_KILLABLE, 'a task sleeps in one of the four sleeping states')
  s.thread.sections++
  i32[task + TaskRecord.wakeReason] = SLEEP_WOKEN
  if (timeout !== Infinity) armTimer(s, task, s.readClock() + Math.max(0, timeout))
  Atomics.store(i32, task + TaskRecord.state, state) // (A)
  const reason = pendingReason(i32, task, state) // (D)
  const sleeps =
    reason === SLEEP_WOKEN || Atomics.compareExchange(i32, task + TaskRecord.state, state, RUNNING) !== state
  if (!sleeps) {
    i32[task + TaskRecord.wakeReason] = reason
    if (timeout !== Infinity) cancelTimer(s, task)
  }
  s.thread.sections--
  return sleeps
}

/**
 * After the switch: the task runs again. Says why: SLEEP_WOKEN, TIMED_OUT, SLEEP_SIGNALLED or SLEEP_KILLED.
 */
export function endSleep(s: Scheduler, task: number, timeout: number = Infinity): number {
  if (timeout !== Infinity) cancelTimer(s, task)
  return s.i32[task + TaskRecord.wakeReason]
}

/** What would interrupt a sleep in this state, or SLEEP_WOKEN. */
function pendingReason(i32: Int32Array, task: number, state: number): number {
  if (state !== INTERRUPTIBLE && state !== TIMER_KILLABLE) return SLEEP_WOKEN
  const pending = Atomics.load(i32, task + TaskRecord.pending)
  if ((pending & PENDING_KILL) !== 0) return SLEEP_KILLED
  return state === INTERRUPTIBLE && (pending & PENDING_SIGNAL) !== 0 ? SLEEP_SIGNALLED : SLEEP_WOKEN
}

/** Sleeps, letting go of a spin lock that it holds and taking it again afterwards. 0: no lock. */
export function* schedulerSleep(
  context: TaskContext,
  lock: number,
  state: number,
  timeout: number = Infinity,
): Generator<number, number, unknown> {
  const { task } = context
  if (!beginSleep(context.s, task, state, timeout)) return context.s.i32[task + TaskRecord.wakeReason]
  if (lock !== 0) release(context.s.thread, lock)
  yield SWITCH_SLEEPS
  const reason = endSleep(context.s, task, timeout)
  if (lock !== 0) acquire(context.s.thread, lock)
  return reason
}

/**
 * Sleeps on a channel until wakeupOnChannel names it. The lock, if there is one, guards the condition: it is
 * held from before the task is on the wait tree until its state says asleep.
 */
export function* sleepOnChannel(
  context: TaskContext,
  channel: number,
  lock: number,
  state: number,
  timeout: number = Infinity,
): Generator<number, number, unknown> {
  acquire(context.s.thread, context.s.sleepLock)
  return yield* sleepOnChannelLocked(context, channel, lock, state, timeout)
}

/** As sleepOnChannel, for who holds the sleep lock; it is released. */
export function* sleepOnChannelLocked(
  context: TaskContext,
  channel: number,
  lock: number,
  state: number,
  timeout: number = Infinity,
): Generator<number, number, unknown> {
  const { task } = context
  const { i32, waitTree, sleepLock } = context.s
  assert(channel !== 0, 'channel 0 means none')
  waitTree.add(task, channel, i32[i32[task + TaskRecord.entity] + Entity.priority])
  const sleeps = beginSleep(context.s, task, state, timeout)
  if (!sleeps) waitTree.take(task)
  else if (lock !== 0) release(context.s.thread, lock)
  release(context.s.thread, sleepLock)
  if (!sleeps) return i32[task + TaskRecord.wakeReason]
  yield SWITCH_SLEEPS
  const { s } = context
  acquire(s.thread, sleepLock)
  if (s.waitTree.isQueued(task)) s.waitTree.take(task)
  release(s.thread, sleepLock)
  const reason = endSleep(s, task, timeout)
  if (lock !== 0) acquire(s.thread, lock)
  return reason
}

/**
 * Wakes the tasks that sleep on a channel, best priority first, at most `limit`. Returns how many. From any
 * thread.
 */
export function wakeupOnChannel(s: Scheduler, channel: number, limit: number = Infinity): number {
  acquire(s.thread, s.sleepLock)
  let woken = 0
  while (woken < limit) {
    const task = s.waitTree.firstOn(channel)
    if (task === 0) break
    // One whose timer or signal came first is awake already, and does not count. It leaves the tree after it
    // has been woken, so that a waker that dies in between leaves no sleeper whom nobody finds; it cannot go
    // anywhere without the sleep lock.
    if (wakeup(s, task, WAKE_ANY)) woken++
    s.waitTree.take(task)
  }
  release(s.thread, s.sleepLock)
  return woken
}

/** A signal: ends an interruptible sleep, now or when it begins. From any thread. */
export function signalTask(s: Scheduler, task: number): boolean {
  Atomics.or(s.i32, task + TaskRecord.pending, PENDING_SIGNAL) // (C)
  return wakeup(s, task, WAKE_INTERRUPTIBLE, SLEEP_SIGNALLED) // (E)
}

/**
 * A kill: ends an interruptible or killable sleep, now or when it begins. What the task does then is its own
 * affair.
 */
export function killTask(s: Scheduler, task: number): boolean {
  Atomics.or(s.i32, task + TaskRecord.pending, PENDING_KILL) // (C)
  return wakeup(s, task, WAKE_KILLABLE, SLEEP_KILLED) // (E)
}

/** The task has seen to what was pending. Returns the PENDING_ bits that were set. */
export function takePending(i32: Int32Array, task: number): number {
  return Atomics.exchange(i32, task + TaskRecord.pending, 0)
}
