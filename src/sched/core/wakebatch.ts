import { assert } from '../../arena/assert.ts'
import { acquire, release, tryAcquire } from '../../arena/sync/spinlock.ts'
import { bestReady } from '../classes/readymask.ts'
import { checkPreempt, enqueueLocked, enqueueSelected, mayPlace } from './enqueue.ts'
import { Entity, POLICY_WOKEN } from './entity.ts'
import { EXT_MAJOR_PRIORITY } from './priority.ts'
import { classRq, RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'
import { selectTaskRq } from './selectcpu.ts'
import { RUNNING, SLEEP_WOKEN, TaskRecord, WAKE_ANY, WAKENING } from './taskrecord.ts'
import { isCurrent, schedulerWakeup, waitOffCpu, wakeSelf } from './wakeup.ts'

/**
 * Wakes many tasks. Each is woken as by wakeup.ts, with the same steps in the same order, under its pi lock.
 * What they share: one reading of the clock, one kick and one check for preemption for each CPU, and the lock
 * of a run queue, which the waker keeps from one task to the next of the same CPU.
 *
 * A run queue's lock is inner to a pi lock, so the waker must not wait for a pi lock while it keeps one:
 *
 *   waker, keeps queue Q                       thread that changes task 2
 *   --------------------                       --------------------------
 *                                              pi lock of task 2
 *                                              wants Q
 *   (A) tries the pi lock of task 2: taken
 *   (B) unlocks Q, then waits for the pi lock
 *                                              locks Q, changes task 2, unlocks both
 *   locks the pi lock, then Q
 *
 * Nor may it wait for the end of a switch, (C) of wakeup.ts: the switch needs Q. (D) unlocks it first.
 *
 * A waker that dies holds what a waker of one task can hold, the pi lock of one task and one run queue: the
 * same repair serves (recovery.ts). The tasks that it had not reached sleep on. The caller's own structure
 * says which they are: for a futex, the waiters that are decided and not signalled (src/futex/recovery).
 */

/** Wakes the first `count` tasks of the list from any sleep. From any thread that holds no inner lock. */
export function wakeupAll(s: Scheduler, tasks: readonly number[], count: number = tasks.length): void {
  const { i32, thread } = s
  if (!s.turnsAreShort) s.readClock()
  s.holdKicks()
  let kept = 0
  for (let index = 0; index < count; index++) {
    const task = tasks[index]
    const se = i32[task + TaskRecord.entity]
    if (isCurrent(s, se)) {
      wakeSelf(s, task, WAKE_ANY, SLEEP_WOKEN)
      continue
    }
    if (kept === 0) acquire(thread, se + Entity.piLock)
    else if (!tryAcquire(thread, se + Entity.piLock)) {
      // (A) (B)
      kept = unlockKept(s, kept)
      acquire(thread, se + Entity.piLock)
    }
    kept = wakeKeeping(s, task, se, kept)
    release(thread, se + Entity.piLock)
  }
  unlockKept(s, kept)
  s.sendKicks()
}

/** Wakes one task, whose pi lock is held. Returns the run queue whose lock this thread keeps, or 0. */
function wakeKeeping(s: Scheduler, task: number, se: number, keeps: number): number {
  const { i32, thread } = s
  let kept = keeps
  if (i32[se + Entity.priority] >> 2 === EXT_MAJOR_PRIORITY) {
    // A policy chooses the CPU, and may take locks.
    kept = unlockKept(s, kept)
    schedulerWakeup(s, task, WAKE_ANY, SLEEP_WOKEN)
    return kept
  }
  const state = Atomics.load(i32, task + TaskRecord.state)
  if (((WAKE_ANY >>> state) & 1) === 0) return kept
  if (Atomics.compareExchange(i32, task + TaskRecord.state, state, WAKENING) !== state) return kept
  i32[task + TaskRecord.wakeReason] = SLEEP_WOKEN
  assert(Atomics.load(i32, se + Entity.onRq) === 0, 'a task that sleeps is on no queue')
  if (Atomics.load(i32, se + Entity.onCpu) !== 0) {
    kept = unlockKept(s, kept) // (D)
    waitOffCpu(s, se)
  }
  i32[se + Entity.woken]++
  const was = Atomics.compareExchange(i32, task + TaskRecord.state, WAKENING, RUNNING)
  assert(was === WAKENING, 'only the waker changes a claimed task')
  if (i32[task + TaskRecord.stopped] !== 0) return kept
  i32[se + Entity.policy] |= POLICY_WOKEN
  const queue = s.queueOf(selectTaskRq(s, se))
  if (queue !== kept) {
    unlockKept(s, kept)
    acquire(thread, queue + RunQueue.lock)
    kept = queue
  }
  if (mayPlace(s, queue, se)) {
    enqueueLocked(s, queue, se)
    return kept
  }
  kept = unlockKept(s, kept)
  enqueueSelected(s, se)
  return kept
}

/** Unlocks the run queue, after one check for preemption for all tasks that were put there. Returns 0. */
function unlockKept(s: Scheduler, queue: number): number {
  if (queue === 0) return 0
  const { i32 } = s
  const level = bestReady(i32, queue + RunQueue.readyMask)
  checkPreempt(s, queue, classRq(queue, level))
  release(s.thread, queue + RunQueue.lock)
  return 0
}
