import { listFirst, ListHead, listIsEmpty, listRemove } from '../../arena/trees/list.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { publishQueue } from '../classes/classrq.ts'
import { describeError, drainEjected, eject, ejectReport, endIfLast } from './eject.ts'
import { Entity } from '../core/entity.ts'
import { keepsCpu, localIsEmpty, setSlice, setState, takeOut, toLocal, toPending } from './ext.ts'
import {
  EJECTED,
  ExtRecord,
  ExtRq,
  FLAGS_MASK,
  FLAGS_SHIFT,
  HELD,
  LEAVING,
  SEEN_MASK,
  SEEN_SHIFT,
  TASK_WORDS,
  UNTOLD,
} from './extlayout.ts'
import { checkPolicy, ENQUEUE_CAME, ENQUEUE_NEW, type Policy, type PolicySource } from './policy.ts'
import { PolicyContext } from './policycontext.ts'
import { EXT_MAJOR_PRIORITY } from '../core/priority.ts'
import { classRq, RunQueue } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'
import { SWITCH_EXITS, SWITCH_SLEEPS, SWITCH_YIELDS } from '../core/switch.ts'
import { TaskRecord } from '../core/taskrecord.ts'
import { lockTaskQueue } from '../core/taskqueue.ts'

/**
 * A CPU and its policy. The CPU loop calls these between switches, with no lock held; on a CPU without a
 * policy each costs the read of one field.
 *
 * A task that is queued while a CPU checks for work must not be missed:
 *
 *   CPU 0                                    CPU 1
 *   -----                                    -----
 *   dispatch: the queue is empty
 *                                            puts a task on the queue
 *                                            (A) searches for an idle CPU: CPU 0 is not published as one
 *   (B) switches to idle, and publishes it
 *   (C) calls the policy once more: finds
 *       the task, does not halt
 *
 * With (B) before (A), CPU 1 kicks CPU 0, and its halt ends immediately.
 */

/** Stands for a policy that could not be enabled. */
const failed: Policy = { name: 'failed', enqueue() {} }

/**
 * Enables the policy on this CPU. Called by the CPU itself, with no lock held. False: the policy has gone.
 */
export function enablePolicy(s: Scheduler, source: PolicySource): boolean {
  const { i32, ext } = s
  if (ext.policy !== null || !ext.isActive()) return false
  ext.generation = Atomics.load(i32, ext.record + ExtRecord.generation)
  Atomics.or(i32, ext.record + ExtRecord.enabled + (s.cpu >> 5), 1 << (s.cpu & 31))
  try {
    const policy = checkPolicy(source)
    const context = new PolicyContext(s)
    policy.enable?.(context)
    ext.slice = policy.slice ?? s.slice
    ext.policy = policy
    ext.context = context
    ext.selectCpu = policy.selectCpu === undefined ? null : askSelectCpu
  } catch (error) {
    eject(s, 'threw', `policy: enable threw ${describeError(error)}`)
    // It stays until the next switch, as any ejected policy: then its tasks can be moved.
    ext.policy = failed
    ext.context = new PolicyContext(s)
    return false
  }
  setAsks(s, 1)
  Atomics.notify(i32, ext.record + ExtRecord.enabled + (s.cpu >> 5))
  return true
}

/** Fetches a policy that this CPU has not seen, now or later. */
export function lookForPolicy(s: Scheduler): void {
  const { i32, ext } = s
  ext.generation = Atomics.load(i32, ext.record + ExtRecord.generation)
  if (ext.policy === null && ext.isActive()) ext.fetch?.(s)
}

/**
 * Before a switch: passes new tasks to the policy, and lets it dispatch if the local list is empty.
 */
export function beforeSwitch(s: Scheduler, why: number): void {
  const { i32, ext, queue } = s
  if (!ext.isActive()) {
    stopAsking(s)
    return
  }
  const { policy, context } = ext
  if (policy === null || context === null) return
  tellDequeued(s)
  tellPending(s)
  const current = i32[queue + RunQueue.current]
  const own = isSeen(s, current)
  const task = i32[current + Entity.task]
  const stays = why !== SWITCH_SLEEPS && why !== SWITCH_EXITS
  ext.leaves = own && why === SWITCH_YIELDS && policy.takesLast === true && !context.isPinned(task)
  try {
    if (own && s.ticks && stays) policy.tick?.(context, task)
    if (own && !stays) policy.stopping?.(context, task, false)
    if (localIsEmpty(s) && !(own && stays && why !== SWITCH_YIELDS && keepsCpu(s, current))) {
      if (i32[current + Entity.priority] >> 2 < EXT_MAJOR_PRIORITY && stays) return
      askForWork(s, own && stays ? task : 0)
    }
  } catch (error) {
    eject(s, 'threw', `policy: it threw ${describeError(error)}`, task)
    stopAsking(s)
  }
}

/** After a switch from `prev` to `current`: `prev` is passed to the policy again. */
export function afterSwitch(s: Scheduler, prev: number, current: number, why: number): void {
  const { i32, ext } = s
  const { policy, context } = ext
  ext.leaves = false
  if (policy === null || context === null) return
  if (!ext.isActive()) {
    leavePolicy(s)
    return
  }
  try {
    if (prev !== current && why !== SWITCH_SLEEPS && why !== SWITCH_EXITS && isSeen(s, prev))
      policy.stopping?.(context, i32[prev + Entity.task], true)
    tellPending(s)
    if (prev !== current) {
      context.turnStart = s.f64[(current + Entity.runTime) >> 1]
      if (isSeen(s, current)) policy.running?.(context, i32[current + Entity.task])
    }
  } catch (error) {
    eject(s, 'threw', `policy: it threw ${describeError(error)}`)
  }
  if (!ext.isActive()) leavePolicy(s)
}

/** This CPU is published as idle. (C) True: there is a task to run. */
export function workForIdle(s: Scheduler): boolean {
  const { ext } = s
  try {
    tellPending(s)
    if (localIsEmpty(s)) askForWork(s, 0)
  } catch (error) {
    eject(s, 'threw', `policy: dispatch threw ${describeError(error)}`)
  }
  if (ext.isActive()) return !localIsEmpty(s)
  leavePolicy(s)
  return ext.policy === null
}

/**
 * The CPU that the policy sends the current task to, which waits for a lock and can move; -1: none. No lock
 * is held.
 */
export function askMoveTo(s: Scheduler, task: number): number {
  const { ext } = s
  const { policy, context } = ext
  if (policy?.moveTo === undefined || context === null || !ext.isActive()) return -1
  if (!isSeen(s, s.i32[task + TaskRecord.entity])) return -1
  let target: number
  try {
    target = policy.moveTo(context, task)
  } catch (error) {
    eject(s, 'threw', `policy: moveTo threw ${describeError(error)}`, task)
    return -1
  }
  if (!Number.isInteger(target) || target < -1 || target >= s.cpus) {
    eject(s, 'misused', `policy: moveTo returned ${String(target)}; return a CPU, or -1`, task)
    return -1
  }
  return target >= 0 && ext.isActive() && context.mayMoveTo(task, target) ? target : -1
}

/** This CPU goes offline: it has no policy any more. */
export function cpuForgetsPolicy(s: Scheduler): void {
  if (s.ext.policy === null) return
  setAsks(s, 0)
  forgetPolicy(s)
}

/** The choice of selectCpu among these CPUs; -1: none. The task's pi lock is held. */
function askSelectCpu(s: Scheduler, se: number): number {
  const { i32, ext } = s
  const { policy, context } = ext
  if (policy?.selectCpu === undefined || context === null || !ext.isActive()) return -1
  const task = i32[se + Entity.task]
  context.selecting = task
  try {
    return policy.selectCpu(context, task, i32[se + Entity.cpu])
  } catch (error) {
    eject(s, 'threw', `policy: selectCpu threw ${describeError(error)}`, task)
    return -1
  } finally {
    context.selecting = 0
  }
}

function askForWork(s: Scheduler, previous: number): void {
  const { policy, context } = s.ext
  if (policy === null || context === null || !s.ext.isActive()) return
  if (policy.dispatch === undefined) context.consume(context.global)
  else policy.dispatch(context, s.cpu, previous)
}

/** Passes each task on the pending list to the policy's `enqueue`. */
function tellPending(s: Scheduler): void {
  const { i32, ext, queue, thread } = s
  const { policy, context } = ext
  const rq = classRq(queue, EXT_MAJOR_PRIORITY)
  const head = rq + ExtRq.pending
  if (policy === null || context === null) return
  // Tasks that are added during the loop are for the next call: so the loop ends.
  for (let left = -1; left !== 0; left--) {
    acquire(thread, queue + RunQueue.lock)
    if (left < 0) left = i32[head + ListHead.count]
    const node = left === 0 ? 0 : listFirst(i32, head)
    if (node === 0) {
      release(thread, queue + RunQueue.lock)
      return
    }
    const se = node - Entity.links
    let flags = (i32[se + Entity.extState] >>> FLAGS_SHIFT) & FLAGS_MASK
    const untold = (i32[se + Entity.extState] & UNTOLD) !== 0
    listRemove(i32, head, node)
    setState(s, se, HELD)
    if (noteSeen(s, se)) flags |= ENQUEUE_NEW
    i32[se + Entity.extState] &= ~UNTOLD
    release(thread, queue + RunQueue.lock)
    const task = i32[se + Entity.task]
    try {
      if (untold && (flags & ENQUEUE_NEW) === 0) policy.dequeue?.(context, task)
      policy.enqueue(context, task, flags)
    } catch (error) {
      eject(s, 'threw', `policy: enqueue threw ${describeError(error)}`, task)
      return
    }
    if (!ext.isActive()) return
  }
}

/** Calls `dequeue` for tasks that left while the policy had them. */
function tellDequeued(s: Scheduler): void {
  const { i32, ext, thread, entities } = s
  const { policy, context } = ext
  if (Atomics.load(i32, ext.record + ExtRecord.dequeues) === 0 || policy === null || context === null) return
  Atomics.store(i32, ext.record + ExtRecord.dequeues, 0)
  const { start, words } = ext.plan.dequeued
  for (let at = start; at < start + words; at++) {
    if (i32[at] === 0) continue
    for (let bits = Atomics.exchange(i32, at, 0); bits !== 0; bits &= bits - 1) {
      const index = ((at - start) << 5) + (31 - Math.clz32(bits & -bits))
      const se = entities.pointerAt(index)
      if (!entities.isPublished(i32, se)) continue
      const queue = lockTaskQueue(s, se)
      const untold = (i32[se + Entity.extState] & UNTOLD) !== 0
      i32[se + Entity.extState] &= ~UNTOLD
      release(thread, queue + RunQueue.lock)
      if (!untold) continue
      try {
        policy.dequeue?.(context, i32[se + Entity.task])
      } catch (error) {
        eject(s, 'threw', `policy: dequeue threw ${describeError(error)}`, i32[se + Entity.task])
        return
      }
    }
  }
}

/** Whether the policy sees this entity for the first time: then its words are zeroed. */
function noteSeen(s: Scheduler, se: number): boolean {
  const { i32, ext } = s
  const generation = ext.generation & SEEN_MASK
  if (((i32[se + Entity.extState] >>> SEEN_SHIFT) & SEEN_MASK) === generation) return false
  i32[se + Entity.extState] =
    (i32[se + Entity.extState] & ~(SEEN_MASK << SEEN_SHIFT)) | (generation << SEEN_SHIFT)
  const at = ext.plan.taskWords.start + i32[i32[se + Entity.task] + TaskRecord.slot] * TASK_WORDS
  i32.fill(0, at, at + TASK_WORDS)
  return true
}

/** An entity of the ext class that this policy knows. */
function isSeen(s: Scheduler, se: number): boolean {
  const { i32, ext } = s
  return (
    i32[se + Entity.priority] >> 2 === EXT_MAJOR_PRIORITY &&
    ((i32[se + Entity.extState] >>> SEEN_SHIFT) & SEEN_MASK) === (ext.generation & SEEN_MASK)
  )
}

/** The policy has been ejected: this CPU runs its tasks in turn. */
function stopAsking(s: Scheduler): void {
  if (s.i32[classRq(s.queue, EXT_MAJOR_PRIORITY) + ExtRq.asks] !== 0) setAsks(s, 0)
}

/**
 * Then it helps to drain, and calls the policy's `exit`. Not between a task's sleep and its switch: a waker
 * may hold the pi lock that draining needs, and wait for that switch.
 */
function leavePolicy(s: Scheduler): void {
  const { ext } = s
  stopAsking(s)
  if (ext.state() === EJECTED) drainEjected(s)
  if (ext.state() === LEAVING) forgetPolicy(s)
}

function forgetPolicy(s: Scheduler): void {
  const { i32, ext } = s
  const { policy, context } = ext
  ext.policy = null
  ext.context = null
  ext.selectCpu = null
  ext.slice = s.slice
  try {
    if (policy !== null && context !== null) policy.exit?.(context, ejectReport(s))
  } catch {
    // The policy ends: an exception changes nothing.
  }
  Atomics.and(i32, ext.record + ExtRecord.enabled + (s.cpu >> 5), ~(1 << (s.cpu & 31)))
  endIfLast(s)
}

/** From now on this CPU calls its policy, or runs its tasks in turn: its waiting tasks change lists. */
function setAsks(s: Scheduler, asks: 0 | 1): void {
  const { i32, thread, queue } = s
  const rq = classRq(queue, EXT_MAJOR_PRIORITY)
  const from = rq + (asks === 0 ? ExtRq.pending : ExtRq.local)
  acquire(thread, queue + RunQueue.lock)
  i32[rq + ExtRq.asks] = asks
  while (i32[from + ListHead.list] !== 0 && !listIsEmpty(i32, from)) {
    const se = listFirst(i32, from) - Entity.links
    takeOut(s, rq, se, false)
    setSlice(s, se, 0)
    if (asks === 0) toLocal(s, rq, se, false)
    else toPending(s, rq, se, ENQUEUE_CAME)
  }
  publishQueue(s, queue)
  release(thread, queue + RunQueue.lock)
}
