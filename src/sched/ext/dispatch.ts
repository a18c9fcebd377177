import { assert } from '../../arena/assert.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { publishCount, publishQueue, rqDequeueTask, rqEnqueueTask } from '../classes/classrq.ts'
import { lowestCpu, maskHas } from '../core/cpumask.ts'
import { Entity, POLICY_BOUND } from '../core/entity.ts'
import { setSlice, setState, stateOf, takeOut, toLocal } from './ext.ts'
import { DIRECT, DispatchQueue, FRONT, HELD, OUT, QUEUED } from './extlayout.ts'
import { checkPreempt } from '../core/enqueue.ts'
import { EXT_MAJOR_PRIORITY } from '../core/priority.ts'
import { classRq, RunQueue } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'
import { lockBoth, unlockBoth } from '../balance/steal.ts'

/**
 * Moves a task to a local list: from HELD, or from a dispatch queue. The task may belong to another CPU's run
 * queue: then both run queues are locked, lower address first, and it changes its run queue. It is never on
 * two queues nor on none:
 *
 *   CPU 0, consumes                          CPU 1, consumes the same queue
 *   ---------------                          ------------------------------
 *   queue lock: finds the task;
 *   (A) reads its CPU; unlock
 *                                            (A) the same
 *   (B) locks both run queues; it is still
 *       on that queue and still its CPU's
 *   takes it over; unlocks
 *                                            (B) locks both: it has left that queue; starts again
 */

/**
 * Whether the entity may run on the CPU: by its mask, or on any CPU when none of its mask is active. Exact
 * under the entity's run queue lock.
 */
export function mayRunOn(s: Scheduler, se: number, cpu: number): boolean {
  const { i32 } = s
  const low = i32[se + Entity.affinityMask]
  const high = i32[se + Entity.affinityMask + 1]
  if (maskHas(low, high, cpu)) return true
  if ((i32[se + Entity.policy] & POLICY_BOUND) !== 0) return false
  return ((low & s.activeHalf(0)) | (high & s.activeHalf(1))) === 0
}

/**
 * Moves the first task that may run on this CPU to its local list. Called by the CPU, with no lock held.
 * False: no task may.
 */
export function consumeFirst(s: Scheduler, queue: number): boolean {
  const { i32, thread } = s
  const accepts = (se: number): boolean => mayRunOn(s, se, s.cpu)
  while (Atomics.load(i32, queue + DispatchQueue.count) !== 0) {
    acquire(thread, queue + DispatchQueue.lock)
    const se = s.ext.queues.find(queue, accepts)
    const home = se === 0 ? -1 : Atomics.load(i32, se + Entity.cpu) // (A)
    release(thread, queue + DispatchQueue.lock)
    if (se === 0) return false
    const from = s.queueOf(home)
    lockHomes(s, from, s.queue)
    const still =
      stateOf(s, se) === QUEUED &&
      i32[se + Entity.extQueue] === queue &&
      Atomics.load(i32, se + Entity.cpu) === home // (B)
    const takes = still && takesTasks(s, s.queue, se) && mayRunOn(s, se, s.cpu)
    if (takes) {
      takeOut(s, classRq(from, EXT_MAJOR_PRIORITY), se, false)
      changeOver(s, se, from, s.queue, false)
    }
    unlockHomes(s, from, s.queue)
    if (takes) return true
    if (still) return false
  }
  return false
}

/**
 * Puts a task that the policy holds on the local list of a CPU; -1: of its own. Returns the state that the
 * task was in: with any but HELD, nothing was done. Called by a CPU, with no lock held.
 */
export function giveLocal(s: Scheduler, se: number, cpu: number, slice: number, front: boolean): number {
  const { i32 } = s
  for (;;) {
    const home = Atomics.load(i32, se + Entity.cpu)
    const target = targetOf(s, se, cpu, home)
    const from = s.queueOf(home)
    const to = s.queueOf(target)
    lockHomes(s, from, to)
    if (Atomics.load(i32, se + Entity.cpu) !== home) {
      unlockHomes(s, from, to)
      continue
    }
    const state = stateOf(s, se)
    if (state === HELD) {
      setSlice(s, se, slice)
      setState(s, se, OUT)
      // A CPU that has just gone takes no more tasks: the task stays where it is.
      changeOver(s, se, from, takesTasks(s, to, se) ? to : from, front)
    }
    unlockHomes(s, from, to)
    return state
  }
}

/** The CPU of the local list: the task's own, unless its mask has changed since. */
function targetOf(s: Scheduler, se: number, cpu: number, home: number): number {
  const { i32 } = s
  if (cpu >= 0) return cpu
  if (mayRunOn(s, se, home)) return home
  const low = i32[se + Entity.affinityMask] & s.activeHalf(0)
  const high = i32[se + Entity.affinityMask + 1] & s.activeHalf(1)
  return (low | high) === 0 ? home : lowestCpu(low, high)
}

function takesTasks(s: Scheduler, queue: number, se: number): boolean {
  return s.i32[queue + RunQueue.online] !== 0 || (s.i32[se + Entity.policy] & POLICY_BOUND) !== 0
}

/**
 * Moves an entity that is on no list to the local list and the run queue of `to`. Both run queues are locked.
 */
function changeOver(s: Scheduler, se: number, from: number, to: number, front: boolean): void {
  const { i32 } = s
  assert(
    stateOf(s, se) === OUT && i32[se + Entity.onCpu] === 0,
    'an entity that changes its run queue is on no list and no CPU',
  )
  const rq = classRq(to, EXT_MAJOR_PRIORITY)
  if (from === to) {
    toLocal(s, rq, se, front)
  } else {
    const was = i32[se + Entity.rq]
    rqDequeueTask(s, was, se)
    publishCount(s, was, se)
    publishQueue(s, from)
    if (i32[se + Entity.turns] !== 0) {
      i32[se + Entity.moved]++
      i32[to + RunQueue.moved]++
    }
    i32[se + Entity.extState] |= front ? DIRECT | FRONT : DIRECT
    rqEnqueueTask(s, rq, se)
    publishCount(s, rq, se)
  }
  publishQueue(s, to)
  checkPreempt(s, to, rq, se)
}

function lockHomes(s: Scheduler, from: number, to: number): void {
  if (from === to) acquire(s.thread, from + RunQueue.lock)
  else lockBoth(s, from, to)
}

function unlockHomes(s: Scheduler, from: number, to: number): void {
  if (from === to) release(s.thread, from + RunQueue.lock)
  else unlockBoth(s, from, to)
}
