import { assert } from '../../arena/assert.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { startWait, waitsSinceSpawn } from './account.ts'
import { classRqFor, publishCount, publishQueue, rqEnqueueTask } from '../classes/classrq.ts'
import { maskHas } from './cpumask.ts'
import { Entity, POLICY_BOUND } from './entity.ts'
import { recordWakeup } from './events.ts'
import { EXT_MAJOR_PRIORITY } from './priority.ts'
import { ClassRq, RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'
import { isComing, selectTaskRq } from './selectcpu.ts'
import { armTick } from './tick.ts'

/**
 * Puts a task that has become runnable on a queue.
 *
 * A CPU may go offline between the choice and the enqueue:
 *
 *   enqueuer                                CPU that goes offline
 *   --------                                ---------------------
 *   select: CPU 1 is active
 *                                           (A) lock; online = 0, active bit cleared; unlock
 *                                           (B) lock; moves what is queued; unlock
 *   lock
 *   (C) reads `online`: 0, so it unlocks
 *       and chooses again
 *   unlock
 *
 * If (C) came before (A), the task would be on the queue when (B) moves it. Without (C) it would stay on the
 * queue of a CPU that does not run. When no CPU is active at all, it is queued anyway: the first CPU that
 * comes online sets its active bit, and then searches the queues of the offline CPUs (hotplug.ts).
 */

/** Selects and enqueues. The pi lock is held and no run queue lock; the task is RUNNING, and off its CPU. */
export function enqueueSelected(s: Scheduler, se: number): void {
  while (!enqueueOn(s, s.queueOf(selectTaskRq(s, se)), se));
}

/**
 * The same on this CPU's own queue, for a new task of no policy; the CPU switches next, and picks then.
 * False: it may not run here.
 */
export function enqueueHere(s: Scheduler, queue: number, se: number): boolean {
  const { i32 } = s
  const [low, high] = [i32[se + Entity.affinityMask], i32[se + Entity.affinityMask + 1]]
  if (!maskHas(low, high, i32[queue + RunQueue.cpu])) return false
  if (i32[se + Entity.priority] >> 2 === EXT_MAJOR_PRIORITY) return false
  return enqueueOn(s, queue, se, true)
}

/** False: the queue's CPU has gone. */
function enqueueOn(s: Scheduler, queue: number, se: number, arrives = false): boolean {
  const { thread } = s
  acquire(thread, queue + RunQueue.lock)
  const places = mayPlace(s, queue, se)
  if (places) {
    const rq = enqueueLocked(s, queue, se)
    if (arrives) waitsSinceSpawn(s, se)
    else checkPreempt(s, queue, rq, se)
  }
  release(thread, queue + RunQueue.lock)
  return places
}

/** Enqueues a task that was woken on this queue, which is locked. Returns its class run queue. */
export function enqueueLocked(s: Scheduler, queue: number, se: number): number {
  const { i32 } = s
  assert(Atomics.load(i32, se + Entity.onCpu) === 0, 'enqueued an entity that is on a CPU')
  assert(Atomics.load(i32, se + Entity.onRq) === 0, 'enqueued an entity that is on a queue')
  const last = i32[se + Entity.cpu]
  // `cpu` first: onRq and cpu together say which queue it is on, at every step (recovery.ts).
  if (last !== i32[queue + RunQueue.cpu]) Atomics.store(i32, se + Entity.cpu, i32[queue + RunQueue.cpu])
  Atomics.store(i32, se + Entity.onRq, 1) // (D) of wakeup.ts
  i32[queue + RunQueue.woken]++
  if (i32[s.recording] !== 0) recordWakeup(s, queue, se)
  placeOn(s, queue, se, last, false)
  return i32[se + Entity.rq]
}

/** (C) Whether this queue's CPU will run what is put here. Its lock is held. */
export function mayPlace(s: Scheduler, queue: number, se: number): boolean {
  if (s.i32[queue + RunQueue.online] !== 0) return true
  if ((s.i32[se + Entity.policy] & POLICY_BOUND) !== 0) return true
  if ((s.activeHalf(0) | s.activeHalf(1)) === 0) return true
  // It waits for this CPU, which is being started; if that CPU dies first, an idle CPU takes it (hotplug.ts).
  return !mayRunNow(s, se) && isComing(s, s.i32[queue + RunQueue.cpu])
}

/** Whether a CPU of its mask is active. */
function mayRunNow(s: Scheduler, se: number): boolean {
  const { i32 } = s
  return (
    ((i32[se + Entity.affinityMask] & s.activeHalf(0)) |
      (i32[se + Entity.affinityMask + 1] & s.activeHalf(1))) !==
    0
  )
}

/**
 * Enqueues an entity whose onRq this thread has just set, and preempts the task that runs there if it is
 * outranked. The queue is locked. `last`: the CPU that it was on before.
 */
export function placeOn(
  s: Scheduler,
  queue: number,
  se: number,
  last: number = s.i32[se + Entity.cpu],
  preempts = true,
): void {
  const { i32 } = s
  const rq = classRqFor(s, queue, se)
  if (last !== i32[queue + RunQueue.cpu] && i32[se + Entity.turns] !== 0) {
    i32[se + Entity.moved]++
    i32[queue + RunQueue.moved]++
  }
  startWait(s, se)
  rqEnqueueTask(s, rq, se)
  publishCount(s, rq, se)
  publishQueue(s, queue)
  if (preempts) checkPreempt(s, queue, rq, se)
}

/**
 * Wakeup preemption: a task that outranks the running one requests a reschedule there. `se` is the task; 0:
 * several tasks were put at this level, and any of them may.
 */
export function checkPreempt(s: Scheduler, queue: number, rq: number, se: number = 0): void {
  const { i32 } = s
  const cpu = i32[queue + RunQueue.cpu]
  const current = i32[queue + RunQueue.current]
  if (current === i32[queue + RunQueue.idle]) {
    // Also this CPU itself: it may be halted while a callback of its event loop wakes a task.
    s.kick(cpu)
    return
  }
  const level = i32[rq + ClassRq.classId]
  const running = i32[current + Entity.priority] >> 2
  if (level < running || (level === running && outranks(s, rq, se, current))) {
    s.resched(cpu)
  } else if (level === running) {
    armTick(s, queue)
  }
}

/** Whether this task, or for 0 any task of the level, should run instead of the current one. */
function outranks(s: Scheduler, rq: number, se: number, current: number): boolean {
  const best = s.classes[s.i32[rq + ClassRq.classId]].pickNextTask(s, rq)
  return se === 0 ? best !== current : best === se
}
