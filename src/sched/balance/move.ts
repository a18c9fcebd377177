import { assert } from '../../arena/assert.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { maskHas } from '../core/cpumask.ts'
import { Entity, POLICY_BOUND } from '../core/entity.ts'
import { isQueuedOn } from '../recovery/rebuild.ts'
import { RunQueue } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'
import { selectTaskRq } from '../core/selectcpu.ts'
import { switchToIdle, SWITCH_PREEMPTED } from '../core/switch.ts'
import { TaskRecord } from '../core/taskrecord.ts'
import { bindTask, unbindTask } from './affinity.ts'
import { lockBoth, moveQueued, unlockBoth } from './steal.ts'

/**
 * A started task moves. Its state (frames, values, task-locals) is data in the arena while it is `packed`,
 * and an object in the heap of one CPU otherwise. BOUND names that heap: `cpu`.
 *
 *   BOUND | packed | the state of a started task is
 *   ------+--------+---------------------------------------------------------------------------------------
 *     1   |   0    | [1] in the heap of its CPU alone. If that CPU dies, the task is lost
 *     1   |   1    | [2] in the arena. Its CPU has packed it and not yet unbound it, or has unpacked it and not
 *         |        |     yet run it. If that CPU dies, recovery unbinds it
 *     0   |   1    | [3] in the arena. Any CPU of its mask may take it, as if it had not started
 *     0   |   0    | [4] nowhere: the task has not started
 *
 *   its CPU                                         the CPU that takes it
 *   -------                                         ---------------------
 *   [1] the task has stopped, or sleeps
 *   (A) writes its state into the arena
 *   (B) packed = 1                 -> [2]
 *   (C) pi lock, queue lock:
 *       BOUND = 0, mask = allowed  -> [3]
 *   (D) if the task was running: switches to
 *       idle, which queues it here
 *   (E) both queue locks: moves it to
 *       another queue
 *                                                   picks it; its heap has no such task
 *                                                   (F) reads its state from the arena
 *                                                   (G) pi lock: BOUND = 1          -> [2]
 *                                                   (H) packed = 0                  -> [1]
 *                                                   (I) frees the state, and runs it
 *
 * Only the CPU of [1] runs the task, and it does (A) to (E) between two tasks: so the task does not run while
 * it is packed. Other threads wake, kill, stop, continue and change it at any step as usual: they act on its
 * records, which stay where they are. A wakeup before (C) queues it on its CPU, a wakeup after (C) on any CPU
 * of its mask. A sleeping task that is packed sleeps on, and its timer and its place in wait queues stay.
 *
 * (G) before (H): with (H) first, a CPU that died in between would leave [4], a task without a state.
 * (B) before (C): with (C) first, another CPU could take a task whose state is in this heap.
 * (A) before (B): as for (C).
 *
 * Lock order: pi lock, then run queue lock; two run queue locks by address. (A) and (F) hold no lock.
 */

/** `resume` of cpuLoop: the running task is packed and unbound, and leaves this CPU (D). */
export const MOVES = 6

/** Whether the state of the task is in the arena. */
export function isPacked(i32: Int32Array, task: number): boolean {
  return Atomics.load(i32, task + TaskRecord.packed) !== 0
}

/**
 * Asks a started task to move if it should: its CPU checks that (`shouldMove`) at its next interrupt, and
 * packs the task as soon as it can. From any thread.
 */
export function askToMove(s: Scheduler, task: number): void {
  const { i32 } = s
  Atomics.store(i32, task + TaskRecord.moveAsked, 1)
  const cpu = Atomics.load(i32, i32[task + TaskRecord.entity] + Entity.cpu)
  Atomics.store(i32, s.queueOf(cpu) + RunQueue.moveAsked, 1)
  s.resched(cpu)
}

/**
 * Whether a task that is bound to this CPU may not stay, because of its mask or because the CPU ends, and can
 * go somewhere else.
 */
export function shouldMove(s: Scheduler, task: number): boolean {
  const { i32, cpu, queue } = s
  const low = i32[task + TaskRecord.allowed]
  const high = i32[task + TaskRecord.allowed + 1]
  if (Atomics.load(i32, queue + RunQueue.online) === 0) return (s.activeHalf(0) | s.activeHalf(1)) !== 0
  return !maskHas(low, high, cpu) && ((low & s.activeHalf(0)) | (high & s.activeHalf(1))) !== 0
}

/**
 * (B), (C) The state of the task, which this CPU has stopped, is in the arena: the heap forgets it from here
 * on. Called by its CPU, with no lock held. Returns whether the task is queued, here: then `pushAway`
 * follows.
 */
export function releasePacked(s: Scheduler, task: number): boolean {
  const { i32, thread } = s
  const se = i32[task + TaskRecord.entity]
  Atomics.store(i32, task + TaskRecord.moveAsked, 0)
  Atomics.store(i32, task + TaskRecord.packed, 1) // (B)
  acquire(thread, se + Entity.piLock)
  assert((i32[se + Entity.policy] & POLICY_BOUND) !== 0, 'only a started task is packed')
  assert(Atomics.load(i32, se + Entity.cpu) === s.cpu, 'a task is packed by the CPU that it is bound to')
  const isQueued = unbindTask(s, task) // (C)
  release(thread, se + Entity.piLock)
  return isQueued
}

/** (G), (H) This CPU runs the packed task, and has read its state. Afterwards the state can be freed. */
export function takePacked(s: Scheduler, task: number): void {
  const { i32 } = s
  assert(isPacked(i32, task), 'only a packed task is taken')
  bindTask(s, task) // (G)
  Atomics.store(i32, task + TaskRecord.packed, 0) // (H)
}

/**
 * (D), (E) The current task, which is packed and unbound, leaves this CPU: to `target`, or, if that is -1 or
 * not possible, to the CPU that the scheduler selects. No lock is held.
 */
export function sendAway(s: Scheduler, target: number): void {
  const se = s.i32[s.queue + RunQueue.current]
  switchToIdle(s, SWITCH_PREEMPTED) // (D)
  pushAway(s, se, target)
}

/**
 * (E) for an entity that is queued here. Another CPU may take it at any time, and it may end there: then this
 * finds no such entity on this queue, or another task in its record, which may move as well.
 */
export function pushAway(s: Scheduler, se: number, target: number): void {
  const { thread, queue } = s
  acquire(thread, queue + RunQueue.lock)
  let to = -1
  if (mayLeave(s, se)) to = mayTake(s, se, target) ? target : selectTaskRq(s, se)
  release(thread, queue + RunQueue.lock)
  if (to < 0 || to === s.cpu) return
  const there = s.queueOf(to)
  lockBoth(s, queue, there)
  if (mayLeave(s, se) && mayTake(s, se, to)) moveQueued(s, se, queue, there) // (E)
  unlockBoth(s, queue, there)
}

function mayLeave(s: Scheduler, se: number): boolean {
  // `cpu` first: on the queue of another CPU, only that CPU's lock guards onRq.
  if (Atomics.load(s.i32, se + Entity.cpu) !== s.cpu) return false
  return isQueuedOn(s, se, s.cpu) && (s.i32[se + Entity.policy] & POLICY_BOUND) === 0
}

function mayTake(s: Scheduler, se: number, cpu: number): boolean {
  const { i32 } = s
  if (cpu < 0 || cpu === s.cpu || i32[s.queueOf(cpu) + RunQueue.online] === 0) return false
  return maskHas(i32[se + Entity.affinityMask], i32[se + Entity.affinityMask + 1], cpu)
}

/**
 * Recovery: the tasks in [2] of a dead CPU are in [3] from here on. It may be called before any lock of that
 * CPU is broken, but not before its own run queue is closed.
 */
export function unbindPacked(s: Scheduler, dead: number): void {
  const { i32, thread, tasks } = s
  for (let task = tasks.after(i32, 0); task !== 0; task = tasks.after(i32, task)) {
    if (!tasks.isPublished(i32, task) || !isPacked(i32, task)) continue
    const se = i32[task + TaskRecord.entity]
    if (Atomics.load(i32, se + Entity.cpu) !== dead) continue
    acquire(thread, se + Entity.piLock)
    if (isPacked(i32, task)) unbindTask(s, task)
    release(thread, se + Entity.piLock)
  }
}
