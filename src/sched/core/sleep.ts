import { assert } from '../../arena/assert.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { Entity } from './entity.ts'
import { RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'
import { SWITCH_SLEEPS } from './switch.ts'
import {
  INTERRUPTIBLE,
  isSleeping,
  SLEEP_KILLED,
  PENDING_KILL,
  RUNNING,
  TaskRecord,
  WAKE_ANY,
  WAKE_INTERRUPTIBLE,
  SLEEP_WOKEN,
} from './taskrecord.ts'
import { armTimer, cancelTimer } from './timer.ts'
import { wakeup } from './wakeup.ts'

/**
 * Going to sleep. The state says so before the lock that guards the condition is released:
 *
 *   sleeper                                    waker
 *   -------                                    -----
 *   lock(lk); the event has not come
 *   (A) state = INTERRUPTIBLE
 *   (B) unlock(lk)
 *                                              lock(lk); makes the event; finds the sleeper; unlock(lk)
 *                                              wakes it: its state is INTERRUPTIBLE
 *   switches away: finish, or the waker, puts it back
 *
 * With (B) before (A) the wakeup could find it RUNNING and do nothing, and the sleeper then sleeps for ever.
 *
 * A kill, which takes no lock:
 *
 *   sleeper                                    killer
 *   -------                                    ------
 *   (A) state = INTERRUPTIBLE                  (C) pending |= PENDING_KILL
 *   (D) reads pending                          (E) wakes it if its state is INTERRUPTIBLE
 *
 * In every order, (D) sees (C) or (E) sees (A). A sleeper that sees a kill at (D) takes its state back by
 * compare-exchange; if that fails, a waker has claimed it, and it must still switch.
 *
 * The functions of this file run on the CPU that runs the task. After the switch the task may be on another
 * CPU: the context says which.
 */
export interface TaskContext {
  /** The scheduler of the CPU that runs the task now. */
  s: Scheduler
  readonly task: number
}

/**
 * Makes the current task's state say asleep; a timeout is in milliseconds from now. True: the caller switches
 * away (SWITCH_SLEEPS), then calls endSleep. False: a kill is pending, and it has not slept.
 */
export function beginSleep(s: Scheduler, task: number, state: number, timeout: number = Infinity): boolean {
  const { i32 } = s
  assert(i32[i32[s.queue + RunQueue.current] + Entity.task] === task, 'only the current task can go to sleep')
  assert(isSleeping(state), 'a task sleeps in one of the sleeping states')
  s.thread.sections++
  i32[task + TaskRecord.wakeReason] = SLEEP_WOKEN
  if (timeout !== Infinity) armTimer(s, task, s.readClock() + Math.max(0, timeout))
  Atomics.store(i32, task + TaskRecord.state, state) // (A)
  const killed =
    state === INTERRUPTIBLE && (Atomics.load(i32, task + TaskRecord.pending) & PENDING_KILL) !== 0 // (D)
  const sleeps = !killed || Atomics.compareExchange(i32, task + TaskRecord.state, state, RUNNING) !== state
  if (!sleeps) {
    i32[task + TaskRecord.wakeReason] = SLEEP_KILLED
    if (timeout !== Infinity) cancelTimer(s, task)
  }
  s.thread.sections--
  return sleeps
}

/** After the switch: the task runs again. Returns why: SLEEP_WOKEN, SLEEP_TIMED_OUT or SLEEP_KILLED. */
export function endSleep(s: Scheduler, task: number, timeout: number = Infinity): number {
  if (timeout !== Infinity) cancelTimer(s, task)
  return s.i32[task + TaskRecord.wakeReason]
}

/**
 * Sleeps on a channel until wakeupOnChannel names it. `unlock`, where given, releases the lock that guards
 * the condition; the caller takes it again afterwards.
 *
 *   sleeper, holds that lock                   waker
 *   ------------------------                   -----
 *   the condition does not hold
 *   (F) is on the wait tree
 *   (G) unlock
 *                                              lock; makes the condition hold; unlock
 *                                              (H) takes the sleeper off the tree; it is not asleep yet
 *   (I) it is off the tree: does not sleep
 *
 * Were (G) before (F), (H) would not find the sleeper, and it would sleep on.
 */
export function* sleepOnChannel(
  context: TaskContext,
  channel: number,
  state: number,
  timeout: number = Infinity,
  unlock?: () => void,
): Generator<number, number, unknown> {
  const { task, s } = context
  const { i32, thread, waitTree, sleepLock } = s
  assert(channel !== 0, 'channel 0 means none')
  acquire(thread, sleepLock)
  waitTree.add(task, channel, i32[i32[task + TaskRecord.entity] + Entity.priority]) // (F)
  release(thread, sleepLock)
  try {
    unlock?.() // (G)
    acquire(thread, sleepLock)
    if (!waitTree.isQueued(task)) i32[task + TaskRecord.wakeReason] = SLEEP_WOKEN
    const sleeps = waitTree.isQueued(task) && beginSleep(s, task, state, timeout) // (I)
    release(thread, sleepLock)
    if (!sleeps) return i32[task + TaskRecord.wakeReason]
    yield SWITCH_SLEEPS
    return endSleep(context.s, task, timeout)
  } finally {
    leaveWaitTree(context.s, task)
  }
}

function leaveWaitTree({ thread, waitTree, sleepLock }: Scheduler, task: number): void {
  acquire(thread, sleepLock)
  if (waitTree.isQueued(task)) waitTree.take(task)
  release(thread, sleepLock)
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
    // A task whose timer or kill came first is awake already, and does not count. It leaves the tree after it
    // has been woken: a waker that dies in between leaves every sleeper on the tree.
    if (wakeup(s, task, WAKE_ANY)) woken++
    s.waitTree.take(task)
  }
  release(s.thread, s.sleepLock)
  return woken
}

/** A kill: ends an interruptible sleep, now or when it begins. What the task does then is its own affair. */
export function killTask(s: Scheduler, task: number): boolean {
  Atomics.or(s.i32, task + TaskRecord.pending, PENDING_KILL) // (C)
  return wakeup(s, task, WAKE_INTERRUPTIBLE, SLEEP_KILLED) // (E)
}

/** The task takes the kill that was pending, so that it can sleep again. */
export function takePending(i32: Int32Array, task: number): void {
  Atomics.store(i32, task + TaskRecord.pending, 0)
}
