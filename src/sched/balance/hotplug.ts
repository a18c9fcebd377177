import { assert } from '../../arena/assert.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { takeArrivals } from '../core/arrivals.ts'
import { publishQueue } from '../classes/classrq.ts'
import { maskHas } from '../core/cpumask.ts'
import { Entity, POLICY_BOUND } from '../core/entity.ts'
import { recordCpu } from '../core/events.ts'
import { isQueuedOn } from '../recovery/rebuild.ts'
import { RunQueue } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'
import { selectTaskRq } from '../core/selectcpu.ts'
import { lockBoth, moveQueued, unlockBoth } from './steal.ts'
import { switchToIdle } from '../core/switch.ts'
import { adoptTimers } from '../core/timer.ts'

/**
 * CPUs come and go while tasks run. `online` in the run queue and the CPU's bit in the active mask change
 * together, under the run queue's lock; enqueue.ts shows why no task is ever put on the queue of a CPU that
 * has gone.
 *
 *   comes  online; then takes the tasks on the queues of CPUs that are gone (no CPU was active when they were
 *          queued), and those that wait on other queues only because this CPU was offline
 *   goes   not online; switches to idle; then moves the queued tasks to other CPUs (selectcpu.ts)
 *   died   recovery.ts: as goes, by another thread
 *
 * A task that is bound to the CPU stays on its queue: its coroutine is in that CPU's heap.
 */

/** This CPU takes tasks from now on. Called by the CPU itself, before anything else. */
export function cpuOnline(s: Scheduler): void {
  const { i32, thread, queue } = s
  assert(queue !== 0, 'a CPU brings itself online')
  s.readClock()
  acquire(thread, queue + RunQueue.lock)
  // Under the lock: a CPU that adopts the callbacks of this one holds it while it checks that this one is
  // gone.
  s.rcu.online(thread)
  assert(i32[queue + RunQueue.online] === 0, 'a CPU comes online once')
  i32[queue + RunQueue.online] = 1
  i32[queue + RunQueue.current] = i32[queue + RunQueue.idle]
  i32[queue + RunQueue.contender] = 0
  s.f64[(queue + RunQueue.tickAt) >> 1] = 0
  s.setActive(s.cpu, true)
  publishQueue(s, queue)
  if (i32[s.recording] !== 0) recordCpu(s, s.cpu, true, 0)
  release(thread, queue + RunQueue.lock)
  // Another CPU may be in the middle of adopting them.
  acquire(thread, queue + RunQueue.timerLock)
  s.nextTimer = s.timers[s.cpu].next()
  release(thread, queue + RunQueue.timerLock)
  for (let cpu = 0; cpu < s.cpus; cpu++) {
    if (cpu === s.cpu || isOnline(s, cpu)) continue
    drainQueue(s, cpu)
    adoptTimers(s, cpu)
  }
  takeMisplaced(s)
}

/**
 * Takes the tasks that wait for this CPU on other queues: their mask has this CPU, and not the one of their
 * queue. No CPU steals such a task, because it is on no list of pushable tasks. Under both queue locks a
 * queued task keeps its queue and its mask.
 */
function takeMisplaced(s: Scheduler): void {
  const { i32, entities, queue } = s
  for (let se = entities.after(i32, 0); se !== 0; se = entities.after(i32, se)) {
    const cpu = Atomics.load(i32, se + Entity.cpu)
    if (cpu === s.cpu || cpu < 0 || cpu >= s.cpus || !isMisplaced(s, se, cpu)) continue
    const from = s.queueOf(cpu)
    lockBoth(s, from, queue)
    if (isMisplaced(s, se, cpu)) moveQueued(s, se, from, queue)
    unlockBoth(s, from, queue)
  }
}

function isMisplaced(s: Scheduler, se: number, cpu: number): boolean {
  const { i32 } = s
  const low = i32[se + Entity.affinityMask]
  const high = i32[se + Entity.affinityMask + 1]
  return (
    isQueuedOn(s, se, cpu) &&
    Atomics.load(i32, se + Entity.onCpu) === 0 &&
    (i32[se + Entity.policy] & POLICY_BOUND) === 0 &&
    maskHas(low, high, s.cpu) &&
    !maskHas(low, high, cpu)
  )
}

export function isOnline(s: Scheduler, cpu: number): boolean {
  return s.isActive(cpu)
}

/** This CPU takes no more tasks, and moves its queued ones. Called by the CPU; `why`: see `schedule`. */
export function cpuOffline(s: Scheduler, why: number): void {
  closeQueue(s, s.cpu)
  switchToIdle(s, why)
  drainQueue(s, s.cpu)
  takeArrivals(s, s.cpu) // (G) of arrivals.ts
}

/** The last call of a CPU: other CPUs adopt its timers and callbacks. */
export function cpuGone(s: Scheduler): void {
  s.rcu.offline(s.i32, s.cpu)
  s.nextTimer = Infinity
  for (let cpu = 0; cpu < s.cpus; cpu++) {
    if (cpu !== s.cpu && isOnline(s, cpu)) {
      s.resched(cpu)
      return
    }
  }
}

/** Adopts the timers and RCU callbacks of CPUs that are gone. Called by an online CPU, before it halts. */
export function adoptFromGone(s: Scheduler): void {
  const { i32 } = s
  for (let cpu = 0; cpu < s.cpus; cpu++) {
    if (cpu === s.cpu || isOnline(s, cpu)) continue
    adoptTimers(s, cpu)
    if (s.rcu.queued(i32, cpu) !== 0) adoptCallbacks(s, cpu)
    if (Atomics.load(i32, s.queueOf(cpu) + RunQueue.load) !== 0) drainQueue(s, cpu)
  }
}

/**
 * Under the run queue's lock of the CPU that is gone: so only one CPU adopts, and that CPU does not come back
 * in between.
 */
export function adoptCallbacks(s: Scheduler, gone: number): void {
  const { i32, thread } = s
  const queue = s.queueOf(gone)
  acquire(thread, queue + RunQueue.lock)
  if (i32[queue + RunQueue.online] === 0 && s.rcu.isOffline(i32, gone)) s.rcu.adopt(thread, gone)
  release(thread, queue + RunQueue.lock)
}

function closeQueue(s: Scheduler, cpu: number): void {
  const { i32, thread } = s
  const queue = s.queueOf(cpu)
  acquire(thread, queue + RunQueue.lock)
  i32[queue + RunQueue.online] = 0 // (A) of enqueue.ts
  s.setActive(cpu, false)
  release(thread, queue + RunQueue.lock)
}

/**
 * Moves the queued tasks of an offline CPU to online CPUs: (B) of enqueue.ts. Visits all entities instead of
 * the queue, so that it needs no operation of the classes. Returns how many moved.
 */
export function drainQueue(s: Scheduler, cpu: number): number {
  const { i32, entities } = s
  s.readClock()
  let moved = 0
  const queue = s.queueOf(cpu)
  for (let se = entities.after(i32, 0); se !== 0; se = entities.after(i32, se)) {
    while (isQueuedOn(s, se, cpu)) {
      const target = chooseTarget(s, se, queue, cpu)
      if (target < 0) break
      const to = s.queueOf(target)
      lockBoth(s, queue, to)
      const still = isQueuedOn(s, se, cpu) && i32[to + RunQueue.online] !== 0
      if (still) moveQueued(s, se, queue, to)
      unlockBoth(s, queue, to)
      if (still) moved++
    }
  }
  return moved
}

/** The CPU for a task that is queued on a CPU that is gone; -1: it stays. */
function chooseTarget(s: Scheduler, se: number, queue: number, cpu: number): number {
  const { i32, thread } = s
  acquire(thread, queue + RunQueue.lock)
  let target = -1
  if (
    isQueuedOn(s, se, cpu) &&
    i32[queue + RunQueue.online] === 0 &&
    (i32[se + Entity.policy] & POLICY_BOUND) === 0
  ) {
    target = selectTaskRq(s, se)
  }
  release(thread, queue + RunQueue.lock)
  return target === cpu ? -1 : target
}
