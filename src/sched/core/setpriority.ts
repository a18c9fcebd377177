import { assert } from '../../arena/assert.ts'
import { acquire, holds, release } from '../../arena/sync/spinlock.ts'
import { chargeRun } from './account.ts'
import {
  classRqFor,
  publishCount,
  publishQueue,
  rqDequeueTask,
  rqDropCurrent,
  rqEnqueueTask,
} from '../classes/classrq.ts'
import { Entity } from './entity.ts'
import { recordPriority } from './events.ts'
import { checkPreempt } from './enqueue.ts'
import { IDLE_MAJOR_PRIORITY, weightOfNice } from './priority.ts'
import { ClassRq, RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'
import { TaskRecord } from './taskrecord.ts'
import { lockTaskQueue } from './taskqueue.ts'

/**
 * A task's priority can change while it is queued, runs or sleeps, from any thread: under its pi lock and the
 * lock of its run queue together.
 *
 *   queued    leaves its class run queue and joins the new one, at the tail
 *   runs      its old class forgets it, the new class takes it as current; then, if a queued task outranks it
 *             now, requests a reschedule
 *   neither   the word alone changes
 */

const ANY_LEVEL = -1

/**
 * Changes the task's own priority. A task that inherits a higher priority keeps that. No lock is held.
 */
export function setPriority(s: Scheduler, task: number, priority: number): void {
  setPriorityFrom(s, task, ANY_LEVEL, priority)
}

/** The same, only if the task's own priority is at this level. Returns whether it was. */
export function setPriorityFrom(s: Scheduler, task: number, level: number, priority: number): boolean {
  const { i32, thread } = s
  const se = i32[task + TaskRecord.entity]
  acquire(thread, se + Entity.piLock)
  const there = level === ANY_LEVEL || i32[se + Entity.basePriority] >> 2 === level
  if (there) {
    i32[se + Entity.basePriority] = priority
    setEffectivePriority(s, task, Math.min(priority, i32[se + Entity.inherited]))
  }
  release(thread, se + Entity.piLock)
  // It may wait for a lock in a queue ordered by priority, and the lock's owner may inherit from it.
  if (there && Atomics.load(i32, task + TaskRecord.owner) !== 0) s.lockHooks?.priorityChanged(task)
  return there
}

/**
 * Sets the inherited priority, or PRIORITY_NONE: the task is scheduled by the better of it and its own. The
 * caller holds the pi lock.
 */
export function setInherited(s: Scheduler, task: number, inherited: number): void {
  const { i32 } = s
  const se = i32[task + TaskRecord.entity]
  i32[se + Entity.inherited] = inherited
  setEffectivePriority(s, task, Math.min(i32[se + Entity.basePriority], inherited))
}

/** Changes the priority that the task is scheduled by: inheritance. The caller holds the pi lock. */
function setEffectivePriority(s: Scheduler, task: number, priority: number): void {
  const { i32, thread } = s
  const se = i32[task + TaskRecord.entity]
  assert(holds(thread, se + Entity.piLock), 'a priority is changed under the pi lock')
  assert(priority >= 0 && priority >> 2 < IDLE_MAJOR_PRIORITY, 'a task has a priority above idle')
  if (i32[se + Entity.priority] === priority) return
  change(s, se, priority, i32[se + Entity.weight])
}

/**
 * Recovery: a thread that changed the task may have died in the middle. Schedules the task by its own words
 * again. The caller holds the pi lock.
 */
export function mendPriority(s: Scheduler, task: number): void {
  const { i32 } = s
  const se = i32[task + TaskRecord.entity]
  const priority = Math.min(i32[se + Entity.basePriority], i32[se + Entity.inherited])
  const weight = weightOfNice(i32[se + Entity.nice])
  if (i32[se + Entity.priority] !== priority || i32[se + Entity.weight] !== weight)
    change(s, se, priority, weight)
}

/** Changes the task's nice, and with it its weight in the fair class. */
export function setNice(s: Scheduler, task: number, nice: number): void {
  const { i32, thread } = s
  const weight = weightOfNice(nice)
  const se = i32[task + TaskRecord.entity]
  acquire(thread, se + Entity.piLock)
  i32[se + Entity.nice] = nice
  change(s, se, i32[se + Entity.priority], weight)
  release(thread, se + Entity.piLock)
}

function change(s: Scheduler, se: number, priority: number, weight: number): void {
  const { i32, thread } = s
  s.readClock()
  if (i32[s.recording] !== 0) recordPriority(s, se, i32[se + Entity.priority], priority)
  const queue = lockTaskQueue(s, se)
  if (Atomics.load(i32, se + Entity.onRq) === 1) {
    const was = i32[se + Entity.rq]
    rqDequeueTask(s, was, se)
    publishCount(s, was, se)
    i32[se + Entity.priority] = priority
    i32[se + Entity.weight] = weight
    const rq = classRqFor(s, queue, se)
    rqEnqueueTask(s, rq, se)
    publishCount(s, rq, se)
    publishQueue(s, queue)
    checkPreempt(s, queue, rq, se)
  } else if (i32[queue + RunQueue.current] === se) {
    changeCurrent(s, queue, se, priority, weight)
  } else {
    i32[se + Entity.priority] = priority
    i32[se + Entity.weight] = weight
  }
  release(thread, queue + RunQueue.lock)
}

function changeCurrent(s: Scheduler, queue: number, se: number, priority: number, weight: number): void {
  const { i32 } = s
  const lowered = priority > i32[se + Entity.priority]
  rqDropCurrent(s, i32[se + Entity.rq], se)
  chargeRun(s, se)
  i32[se + Entity.priority] = priority
  i32[se + Entity.weight] = weight
  const rq = classRqFor(s, queue, se)
  i32[se + Entity.rq] = rq
  const schedClass = s.classes[i32[rq + ClassRq.classId]]
  schedClass.enqueueTask(s, rq, se)
  schedClass.setNextTask(s, rq, se)
  publishQueue(s, queue)
  // A task that outranks it now may wait here or on another CPU: the reschedule checks both.
  if (lowered) s.resched(i32[queue + RunQueue.cpu])
}
