import { assert } from '../../arena/assert.ts'
import { pause } from '../../arena/sync/pause.ts'
import { acquire, holds, release, STUCK_MS } from '../../arena/sync/spinlock.ts'
import { Entity, POLICY_WOKEN } from './entity.ts'
import { enqueueHere, enqueueSelected } from './enqueue.ts'
import { RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'
import { RUNNING, TaskRecord, WAKE_ANY, WAKENING, SLEEP_WOKEN } from './taskrecord.ts'

/**
 * Wakeup: moves a sleeping task to a queue, exactly once, whatever other threads do to the task.
 *
 *   1. pi lock                               one waker, stopper, booster of a task at a time
 *   2. (A) state: asleep -> WAKENING         compare-exchange; not asleep: nothing to do
 *   3. (C) onRq, then wait for onCpu         in this order; switch.ts writes them in the other
 *   4. state: WAKENING -> RUNNING            compare-exchange
 *   5. (D) select; lock; onRq = 1;           not if STOPPED: continue will
 *      enqueue; unlock
 *   6. pi unlock
 *
 * Two wakers:                                      A waker and a sleeper:
 *
 *   CPU 1                   CPU 2                    sleeper                 waker
 *   -----                   -----                    -------                 -----
 *   (A) asleep -> WAKENING                                                   state is RUNNING: nothing to do
 *                           (A) it is WAKENING,      state = INTERRUPTIBLE
 *                               or RUNNING: returns  switches away
 *   enqueues
 *
 * The sleeper is on some wait queue, under that queue's lock, before its state says asleep. So a later event
 * finds it there, and the sleeper saw an earlier event under the same lock.
 *
 * The design claims the state, (A), after the wait for onCpu. Then this can happen, and does in a check:
 *
 *   the task                                  waker
 *   --------                                  -----
 *   RUNNING on CPU 0                          onRq is 0
 *   preempted: onRq = 1, onCpu = 0            sees onCpu 0, goes on
 *   picked again: onCpu = 1, onRq = 0
 *   state = INTERRUPTIBLE, still on CPU 0     asleep -> WAKENING succeeds; onRq = 1: enqueued while on a CPU
 *
 * Claimed first, the task cannot move: it is leaving its CPU, or has left it, until the waker stores RUNNING.
 * So onRq and onCpu are read only while no thread writes them except the switch that (C) waits for.
 *
 * The design warns of a task lock that the waker holds at (C) and the switch needs. There is no task lock
 * here: the words of a record are claimed by compare-exchange, or guarded by the pi lock or a run queue's.
 */

/**
 * Wakes a task from any sleep. Returns whether this call did it. From any thread that holds no inner lock.
 */
export function wakeupTask(s: Scheduler, task: number): boolean {
  return wakeup(s, task, WAKE_ANY)
}

/** Wakes a task if its state is one of `states` (WAKE_ bits). `reason`: what its sleep returns. */
export function wakeup(s: Scheduler, task: number, states: number, reason: number = SLEEP_WOKEN): boolean {
  const { i32, thread } = s
  const se = i32[task + TaskRecord.entity]
  // A self-wakeup takes no lock: another waker may hold it while it waits for this CPU to switch.
  if (isCurrent(s, se)) return wakeSelf(s, task, states, reason)
  s.holdKicks()
  acquire(thread, se + Entity.piLock) // 1
  const woke = schedulerWakeup(s, task, states, reason)
  release(thread, se + Entity.piLock) // 6
  s.sendKicks()
  return woke
}

/**
 * As wakeup, for a caller that holds the task's pi lock, and no run queue lock.
 * `here`: the caller's own queue, where the task goes if it may; the caller has read the clock and switches
 * next. 0: selects a queue.
 */
export function schedulerWakeup(
  s: Scheduler,
  task: number,
  states: number,
  reason: number,
  here: number = 0,
): boolean {
  const { i32, thread } = s
  const se = i32[task + TaskRecord.entity]
  if (thread.debug) assert(holds(thread, se + Entity.piLock), 'a wakeup holds the pi lock')
  const state = Atomics.load(i32, task + TaskRecord.state)
  if (((states >>> state) & 1) === 0) return false
  if (Atomics.compareExchange(i32, task + TaskRecord.state, state, WAKENING) !== state) return false // (A) 2
  i32[task + TaskRecord.wakeReason] = reason
  finishWakeup(s, task, se, here)
  return true
}

/** Steps 3 to 5, for a task that this thread has made WAKENING. */
export function finishWakeup(s: Scheduler, task: number, se: number, here: number = 0): void {
  const { i32 } = s
  assert(Atomics.load(i32, se + Entity.onRq) === 0, 'a task that sleeps is on no queue') // (C) 3
  waitOffCpu(s, se)
  // Before 4: otherwise a waker that dies in between leaves a task that runs and was never woken, which
  // recovery takes for a task that was not started.
  i32[se + Entity.woken]++
  const was = Atomics.compareExchange(i32, task + TaskRecord.state, WAKENING, RUNNING) // 4
  assert(was === WAKENING, 'only the waker changes a claimed task')
  if (i32[task + TaskRecord.stopped] !== 0) return
  if (here === 0 && !s.turnsAreShort) s.readClock()
  i32[se + Entity.policy] |= POLICY_WOKEN
  if (here === 0 || !enqueueHere(s, here, se)) enqueueSelected(s, se) // (D) 5
}

/**
 * A wakeup from an interrupt on the CPU that runs the task, after its state says asleep and before its
 * switch: only the state is set back. The switch re-reads it, and keeps the task or puts it back.
 */
export function wakeSelf(s: Scheduler, task: number, states: number, reason: number): boolean {
  const { i32 } = s
  const state = Atomics.load(i32, task + TaskRecord.state)
  if (((states >>> state) & 1) === 0) return false
  if (Atomics.compareExchange(i32, task + TaskRecord.state, state, RUNNING) !== state) return false
  i32[task + TaskRecord.wakeReason] = reason
  return true
}

/** Whether this thread is the CPU that runs the entity. Exact: only this CPU changes that. */
export function isCurrent(s: Scheduler, se: number): boolean {
  return s.queue !== 0 && s.i32[s.queue + RunQueue.current] === se
}

/**
 * (C) Waits until the switch away from this task has ended. For as long as it takes: a bounded wait would
 * leave a task that is RUNNING and nowhere. No run queue lock is held.
 *
 * Where CPUs share a core, this thread may have displaced the CPU that switches: after `thread.spins` reads
 * it sleeps.
 *
 *   the switch                                 waiter
 *   ----------                                 ------
 *   (E) onCpu = 0                              (G) awaited++
 *   (H) awaited is not 0: notifies             sleeps while onCpu is 1
 *
 * (E) before (H), and (G) before the sleep: the switch sees the waiter, or the waiter sees onCpu 0.
 */
export function waitOffCpu(s: Scheduler, se: number): void {
  const { i32, thread } = s
  for (let spin = 0; spin < thread.spins; spin++) {
    if (Atomics.load(i32, se + Entity.onCpu) === 0) return
    pause()
  }
  const { rescuer } = thread
  if (!thread.mayBlock) {
    while (Atomics.load(i32, se + Entity.onCpu) !== 0) {
      if (rescuer !== null) rescuer.repairDead(Atomics.load(i32, se + Entity.cpu), 0)
      pause()
    }
    return
  }
  Atomics.add(i32, se + Entity.awaited, 1) // (G)
  while (Atomics.load(i32, se + Entity.onCpu) !== 0) {
    // A thread that can see deaths checks from time to time whether the CPU that should switch is alive.
    if (rescuer === null) Atomics.wait(i32, se + Entity.onCpu, 1)
    else if (Atomics.wait(i32, se + Entity.onCpu, 1, STUCK_MS) === 'timed-out')
      rescuer.repairDead(Atomics.load(i32, se + Entity.cpu), 0)
  }
  Atomics.sub(i32, se + Entity.awaited, 1)
}
