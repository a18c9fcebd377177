import { acquire, release } from '../../arena/sync/spinlock.ts'
import { publishCount, publishQueue, rqDequeueTask } from '../classes/classrq.ts'
import { Entity } from './entity.ts'
import { recordStop } from './events.ts'
import { enqueueSelected } from './enqueue.ts'
import { RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'
import { RUNNING, TaskRecord } from './taskrecord.ts'
import { lockTaskQueue } from './taskqueue.ts'
import { waitOffCpu } from './wakeup.ts'

/**
 * Stop and continue. STOPPED is a flag beside the state: a stopped task that is RUNNING is on no queue.
 *
 * Stop against a wakeup: both hold the pi lock, so one is done before the other starts. Stopped first, the
 * wakeup makes it RUNNING and leaves it off the queue; woken first, stop finds it on the queue and takes it
 * off.
 *
 * Stop against a switch: the flag is written under the lock of the run queue that the task is on or runs
 * from, and finish reads it under the same lock. Written first, finish does not put the task back; put back
 * first, it is on the queue when stop checks.
 *
 * Continue while the task is still on its CPU:
 *
 *   CPU 0: the task, stopped, switching out    CPU 1: continue, pi lock held
 *   ---------------------------------------    -----------------------------
 *   lock; STOPPED: it is not put back
 *   unlock
 *                                              lock; (A) it is no longer CPU 0's current task; unlock
 *                                              (B) waits while onCpu is 1
 *   onCpu = 0
 *                                              STOPPED cleared; RUNNING, so it is enqueued
 *
 * Without (B) it would be on a queue, and could run on CPU 2, while CPU 0 has not finished with it. If it is
 * still the current task at (A), its switch has not begun: clearing the flag is enough, and finish will put
 * it back.
 */

/**
 * Stops a task, from any thread: off its queue immediately, off its CPU at the next safepoint. False: it was
 * stopped already.
 */
export function schedulerStop(s: Scheduler, task: number): boolean {
  const { i32, thread } = s
  const se = i32[task + TaskRecord.entity]
  acquire(thread, se + Entity.piLock)
  const queue = lockTaskQueue(s, se)
  const stops = i32[task + TaskRecord.stopped] === 0
  if (stops) {
    i32[task + TaskRecord.stopped] = 1
    if (i32[s.recording] !== 0) recordStop(s, task, true)
    if (Atomics.load(i32, se + Entity.onRq) === 1) {
      const rq = i32[se + Entity.rq]
      s.readClock()
      rqDequeueTask(s, rq, se)
      Atomics.store(i32, se + Entity.onRq, 0)
      publishCount(s, rq, se)
      publishQueue(s, queue)
    } else if (i32[queue + RunQueue.current] === se) {
      s.resched(i32[queue + RunQueue.cpu])
    }
  }
  release(thread, queue + RunQueue.lock)
  release(thread, se + Entity.piLock)
  return stops
}

/** Continues a stopped task, from any thread. False: it was not stopped. */
export function schedulerContinue(s: Scheduler, task: number): boolean {
  const { i32, thread } = s
  const se = i32[task + TaskRecord.entity]
  acquire(thread, se + Entity.piLock)
  const continues = clearStopped(s, task, se)
  release(thread, se + Entity.piLock)
  return continues
}

function clearStopped(s: Scheduler, task: number, se: number): boolean {
  const { i32, thread } = s
  if (i32[task + TaskRecord.stopped] === 0) return false
  if (i32[s.recording] !== 0) recordStop(s, task, false)
  let queue = lockTaskQueue(s, se)
  const stillCurrent = i32[queue + RunQueue.current] === se
  if (stillCurrent) i32[task + TaskRecord.stopped] = 0 // (A)
  release(thread, queue + RunQueue.lock)
  if (stillCurrent) return true
  waitOffCpu(s, se) // (B)
  queue = lockTaskQueue(s, se)
  i32[task + TaskRecord.stopped] = 0
  release(thread, queue + RunQueue.lock)
  if (Atomics.load(i32, task + TaskRecord.state) === RUNNING) {
    s.readClock()
    enqueueSelected(s, se)
  }
  return true
}
