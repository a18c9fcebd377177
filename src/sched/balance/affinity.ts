import { assert } from '../../arena/assert.ts'
import { ListNode } from '../../arena/trees/list.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { publishQueue, rqDequeueTask, rqEnqueueTask } from '../classes/classrq.ts'
import { Entity, POLICY_BOUND, POLICY_PUSHABLE } from '../core/entity.ts'
import { EXT_MAJOR_PRIORITY } from '../core/priority.ts'
import { addPushable, notePushable, removePushable } from './pushable.ts'
import { RunQueue } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'
import { TaskRecord } from '../core/taskrecord.ts'
import { lockTaskQueue } from '../core/taskqueue.ts'

/**
 * Affinity: the CPUs that a task may run on. A change takes effect when the task is next woken (or stolen):
 * one that runs or waits stays on its CPU until it sleeps. A task that is bound to its CPU keeps its mask,
 * and the change counts when it is unbound (move.ts).
 *
 * The mask is two words, and a wakeup reads both:
 *
 *   setAffinity                                waker
 *   -----------                                -----
 *   low = 0
 *                                              reads 0, 0: no CPU at all, falls back to any
 *   high = CPU 40
 *
 * So it is written under the pi lock, which a waker holds while it selects, and under the run queue's lock,
 * which a stealing CPU holds while it searches for a task to take.
 */
export function setAffinity(s: Scheduler, task: number, low: number, high: number): void {
  const { i32, thread } = s
  if ((low | high) === 0) throw new RangeError('affinity: the mask is empty; give at least one CPU')
  const se = i32[task + TaskRecord.entity]
  acquire(thread, se + Entity.piLock)
  const queue = lockTaskQueue(s, se)
  storeMask(i32, task + TaskRecord.allowed, low, high)
  if ((i32[se + Entity.policy] & POLICY_BOUND) === 0) writeMask(s, queue, se, low, high)
  release(thread, queue + RunQueue.lock)
  release(thread, se + Entity.piLock)
}

/**
 * Binds the current task to this CPU until it ends: its coroutine lives in this CPU's heap from here on. Its
 * mask becomes this CPU, and no fallback moves it. Called by the CPU, when it starts the task.
 *
 * The run queue's lock is not needed: the current task is on no queue and no list, so no stealing CPU reads
 * its mask; a waker and a thread that changes the mask hold the pi lock. A policy is the exception: it may
 * write to a task that runs on another CPU.
 */
export function bindTask(s: Scheduler, task: number): void {
  const { i32, thread, queue, cpu } = s
  const se = i32[task + TaskRecord.entity]
  const isExt = i32[se + Entity.priority] >> 2 === EXT_MAJOR_PRIORITY
  acquire(thread, se + Entity.piLock)
  if (isExt) acquire(thread, queue + RunQueue.lock)
  assert(i32[queue + RunQueue.current] === se, 'a task is bound by the CPU that runs it')
  assert(i32[se + Entity.pushLinks + ListNode.list] === 0, 'a running task is on no list of pushable tasks')
  if ((i32[se + Entity.policy] & POLICY_BOUND) === 0) Atomics.add(i32, queue + RunQueue.bound, 1)
  i32[se + Entity.policy] = (i32[se + Entity.policy] | POLICY_BOUND) & ~POLICY_PUSHABLE
  storeMask(i32, se + Entity.affinityMask, cpu < 32 ? 1 << cpu : 0, cpu < 32 ? 0 : 1 << (cpu - 32))
  if (isExt) release(thread, queue + RunQueue.lock)
  release(thread, se + Entity.piLock)
}

/**
 * The opposite: no heap holds the task's coroutine any more, and it may run where the program allows. Called
 * by the CPU that it is bound to, or by the thread that recovers that CPU. The caller holds the pi lock.
 * Returns whether the task is queued.
 */
export function unbindTask(s: Scheduler, task: number): boolean {
  const { i32, thread } = s
  const se = i32[task + TaskRecord.entity]
  const queue = lockTaskQueue(s, se)
  if ((i32[se + Entity.policy] & POLICY_BOUND) !== 0) {
    const low = i32[task + TaskRecord.allowed]
    const high = i32[task + TaskRecord.allowed + 1]
    // The mask first: a thread that dies here leaves a bound task, and recovery unbinds it again.
    storeMask(i32, se + Entity.affinityMask, low, high)
    i32[se + Entity.policy] &= ~POLICY_BOUND
    Atomics.sub(i32, queue + RunQueue.bound, 1)
    writeMask(s, queue, se, low, high)
  }
  const isQueued = Atomics.load(i32, se + Entity.onRq) === 1
  release(thread, queue + RunQueue.lock)
  return isQueued
}

/** The mask has a CPU in it at every step. */
function storeMask(i32: Int32Array, mask: number, low: number, high: number): void {
  if (low !== 0) i32[mask] = low
  i32[mask + 1] = high
  if (low === 0) i32[mask] = low
}

function writeMask(s: Scheduler, queue: number, se: number, low: number, high: number): void {
  const { i32 } = s
  const queued = Atomics.load(i32, se + Entity.onRq) === 1
  if (queued) removePushable(s, queue, se)
  storeMask(i32, se + Entity.affinityMask, low, high)
  notePushable(s, se)
  if (queued && i32[se + Entity.priority] >> 2 === EXT_MAJOR_PRIORITY) {
    // Its queue may be one where it may not run now: its policy places it again.
    const rq = i32[se + Entity.rq]
    rqDequeueTask(s, rq, se)
    rqEnqueueTask(s, rq, se)
    publishQueue(s, queue)
  } else if (queued) {
    addPushable(s, queue, se)
    publishQueue(s, queue)
  }
}
