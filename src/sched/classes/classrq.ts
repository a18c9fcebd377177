import { assert } from '../../arena/assert.ts'
import { Entity } from '../core/entity.ts'
import { EXT_MAJOR_PRIORITY, PRIORITY_NONE } from '../core/priority.ts'
import { addPushable, bestPushable, removePushable } from '../balance/pushable.ts'
import { bestReady, clearReady, setReady } from './readymask.ts'
import { ClassRq, classRq, RunQueue } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'

/**
 * The rest of the scheduler calls the operations of a class through these functions, which keep the counts,
 * the ready mask and the list of pushable tasks up to date. The lock of the run queue is held in all of them.
 */

/** The class run queue of an entity's priority on this run queue. */
export function classRqFor(s: Scheduler, queue: number, se: number): number {
  return classRq(queue, s.i32[se + Entity.priority] >> 2)
}

/** Queues an entity that is on no CPU. Sets `rq`; the caller has set onRq. */
export function rqEnqueueTask(s: Scheduler, rq: number, se: number): void {
  const { i32 } = s
  i32[se + Entity.rq] = rq
  const cpu = i32[rq + ClassRq.cpu]
  if (i32[se + Entity.cpu] !== cpu) Atomics.store(i32, se + Entity.cpu, cpu)
  s.classes[i32[rq + ClassRq.classId]].enqueueTask(s, rq, se)
  countIn(s, rq, se)
}

/**
 * Recovery: puts an entity on an empty or rebuilt queue; at its old place if its class can find it
 * (`restore`).
 */
export function rqRestoreTask(s: Scheduler, rq: number, se: number): void {
  const { i32 } = s
  i32[se + Entity.rq] = rq
  const schedClass = s.classes[i32[rq + ClassRq.classId]]
  if (schedClass.restore === undefined) schedClass.enqueueTask(s, rq, se)
  else schedClass.restore(s, rq, se)
  countIn(s, rq, se)
}

/** Removes an entity that is queued here. The caller clears onRq. */
export function rqDequeueTask(s: Scheduler, rq: number, se: number): void {
  const { i32 } = s
  assert(i32[se + Entity.rq] === rq, 'dequeued an entity from a queue that it is not on')
  s.classes[i32[rq + ClassRq.classId]].dequeueTask(s, rq, se)
  countOut(s, rq, se)
}

/** The current entity sleeps, stops or moves: its class forgets it. It is not queued. */
export function rqDropCurrent(s: Scheduler, rq: number, se: number): void {
  s.classes[s.i32[rq + ClassRq.classId]].dequeueTask(s, rq, se)
}

/** The entity that should run next: queued still, or the contender. Constant time in the number of tasks. */
export function rqPickNextTask(s: Scheduler, queue: number): number {
  const { i32 } = s
  const level = bestReady(i32, queue + RunQueue.readyMask)
  const contender = i32[queue + RunQueue.contender]
  if (contender !== 0 && i32[contender + Entity.priority] >> 2 < level) return contender
  return s.classes[level].pickNextTask(s, classRq(queue, level))
}

/** Takes the picked entity out of its queue: it is the current entity. */
export function rqSetNextTask(s: Scheduler, rq: number, se: number): void {
  s.classes[s.i32[rq + ClassRq.classId]].setNextTask(s, rq, se)
  countOut(s, rq, se)
}

/** Puts the old entity back. */
export function rqPutPrevTask(s: Scheduler, rq: number, se: number): void {
  const { i32 } = s
  i32[se + Entity.rq] = rq
  s.classes[i32[rq + ClassRq.classId]].putPrevTask(s, rq, se)
  countIn(s, rq, se)
}

function countIn(s: Scheduler, rq: number, se: number): void {
  const { i32 } = s
  const queue = i32[rq + ClassRq.queue]
  // Tasks at the ext level may still wait for their policy: that class marks the level as ready itself.
  if (i32[rq + ClassRq.taskCount]++ === 0 && i32[rq + ClassRq.classId] !== EXT_MAJOR_PRIORITY) {
    setReady(i32, queue + RunQueue.readyMask, i32[rq + ClassRq.classId])
  }
  i32[rq + ClassRq.counts + (i32[se + Entity.priority] & 3)]++
  i32[queue + RunQueue.taskCount]++
  addPushable(s, queue, se)
}

function countOut(s: Scheduler, rq: number, se: number): void {
  const { i32 } = s
  const queue = i32[rq + ClassRq.queue]
  removePushable(s, queue, se)
  const left = --i32[rq + ClassRq.taskCount]
  assert(left >= 0, 'a class run queue cannot hold fewer than no tasks')
  if (left === 0 && i32[rq + ClassRq.classId] !== EXT_MAJOR_PRIORITY) {
    clearReady(i32, queue + RunQueue.readyMask, i32[rq + ClassRq.classId])
  }
  i32[rq + ClassRq.counts + (i32[se + Entity.priority] & 3)]--
  i32[queue + RunQueue.taskCount]--
}

/** Publishes how many tasks wait where this entity is, or was, queued. Stores only what has changed. */
export function publishCount(s: Scheduler, rq: number, se: number): void {
  const { i32 } = s
  const minor = i32[se + Entity.priority] & 3
  const count = i32[rq + ClassRq.counts + minor]
  const at = rq + ClassRq.published + minor
  if (i32[at] !== count) Atomics.store(i32, at, count)
}

/** Publishes what runs here, how many wait, and the best task to take. Stores only what has changed. */
export function publishQueue(s: Scheduler, queue: number): void {
  const { i32 } = s
  const current = i32[queue + RunQueue.current]
  // The task that runs, or is about to: a better queued task has requested a reschedule already.
  let priority = i32[current + Entity.priority]
  const level = bestReady(i32, queue + RunQueue.readyMask)
  if (level < priority >> 2) priority = level << 2
  if (i32[queue + RunQueue.runningPriority] !== priority) {
    Atomics.store(i32, queue + RunQueue.runningPriority, priority)
  }
  const load = i32[queue + RunQueue.taskCount] + (current === i32[queue + RunQueue.idle] ? 0 : 1)
  if (i32[queue + RunQueue.load] !== load) Atomics.store(i32, queue + RunQueue.load, load)
  const pushable = i32[queue + RunQueue.pushCount] !== 0
  const best = pushable ? bestPushable(s, queue) : PRIORITY_NONE
  const was = i32[queue + RunQueue.pushBest]
  if (was === best) return
  Atomics.store(i32, queue + RunQueue.pushBest, best)
  if ((was === PRIORITY_NONE) === pushable) s.setPushCpu(i32[queue + RunQueue.cpu], pushable)
}
