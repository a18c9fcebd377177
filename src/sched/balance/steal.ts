import { assert } from '../../arena/assert.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { publishCount, publishQueue, rqDequeueTask } from '../classes/classrq.ts'
import { maskHas } from '../core/cpumask.ts'
import { Entity } from '../core/entity.ts'
import { recordMigrate } from '../core/events.ts'
import { placeOn } from '../core/enqueue.ts'
import { IDLE_MAJOR_PRIORITY, PRIORITY_NONE } from '../core/priority.ts'
import { findPushable } from './pushable.ts'
import { RunQueue } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'

/**
 * Moving queued tasks between CPUs.
 *
 *   steal   an idle CPU takes half of the tasks that may run there, the best first, from the most loaded CPU
 *   pull    a CPU that is about to run a task takes a task that outranks it from another queue
 *   push    a CPU on whose queue such a task waits asks the CPU that runs the least important task to pull
 *
 * So of N + 1 FIFO tasks that may run on every CPU the N highest run on the N CPUs. A move holds both run
 * queue locks, the lower address first: at no time is a task on two queues or on none.
 */

/** The most tasks that an idle CPU takes in one step: both queues are locked during it. */
const STEAL_MOST = 16

/** Takes both run queue locks, in the order that never deadlocks. */
export function lockBoth(s: Scheduler, a: number, b: number): void {
  assert(a !== b, 'a task does not move to where it is')
  acquire(s.thread, Math.min(a, b) + RunQueue.lock)
  acquire(s.thread, Math.max(a, b) + RunQueue.lock)
}

export function unlockBoth(s: Scheduler, a: number, b: number): void {
  release(s.thread, a + RunQueue.lock)
  release(s.thread, b + RunQueue.lock)
}

/** Moves a queued entity, which is not on any CPU, from one run queue to another. Both are locked. */
export function moveQueued(s: Scheduler, se: number, from: number, to: number): void {
  const { i32 } = s
  const rq = i32[se + Entity.rq]
  rqDequeueTask(s, rq, se)
  publishCount(s, rq, se)
  publishQueue(s, from)
  if (i32[s.recording] !== 0) recordMigrate(s, se, i32[from + RunQueue.cpu], i32[to + RunQueue.cpu])
  placeOn(s, to, se)
}

/** Takes a task for this idle CPU from another. False: no task may run here. */
export function stealTask(s: Scheduler): boolean {
  return takeBest(s, IDLE_MAJOR_PRIORITY << 2, true)
}

/** Takes a task that outranks `priority` by its major level from another queue. */
export function pullTask(s: Scheduler, priority: number): boolean {
  return takeBest(s, priority, false)
}

function takeBest(s: Scheduler, priority: number, steals: boolean): boolean {
  const { i32, queue } = s
  // The chosen CPU may have no task for this one: each is tried once.
  let triedLow = 0
  let triedHigh = 0
  for (let tries = 0; tries < s.cpus; tries++) {
    const victim = chooseVictim(s, priority, triedLow, triedHigh)
    if (victim < 0) return false
    if (victim < 32) triedLow |= 1 << victim
    else triedHigh |= 1 << (victim - 32)
    const from = s.queueOf(victim)
    lockBoth(s, queue, from)
    const wanted = steals ? Math.min(STEAL_MOST, (i32[from + RunQueue.pushCount] + 1) >> 1) : 1
    const moved = i32[queue + RunQueue.online] === 0 ? 0 : moveBest(s, from, priority, wanted)
    if (steals) i32[queue + RunQueue.stolen] += moved
    unlockBoth(s, queue, from)
    if (moved > 0) return true
  }
  return false
}

/**
 * Moves up to so many tasks that outrank `priority` to this CPU's queue. Returns how many. Both queues are
 * locked.
 */
function moveBest(s: Scheduler, from: number, priority: number, most: number): number {
  const { i32, queue } = s
  for (let moved = 0; ; moved++) {
    const se = moved < most ? findPushable(s, from, s.cpu) : 0
    if (se === 0 || i32[se + Entity.priority] >> 2 >= priority >> 2) return moved
    moveQueued(s, se, from, queue)
  }
}

/** The CPU with the best task to take, if it outranks `priority`; among equals the most loaded one. Or -1. */
function chooseVictim(s: Scheduler, priority: number, triedLow: number, triedHigh: number): number {
  const { i32 } = s
  const low = s.pushCpusHalf(0) & ~triedLow
  const high = s.pushCpusHalf(1) & ~triedHigh
  let victim = -1
  let best = priority >> 2
  let load = 0
  for (let cpu = 0; cpu < s.cpus; cpu++) {
    if (cpu === s.cpu || !maskHas(low, high, cpu)) continue
    const from = s.queueOf(cpu)
    const offered = Atomics.load(i32, from + RunQueue.pushBest)
    if (offered === PRIORITY_NONE || offered >> 2 > best) continue
    const loaded = Atomics.load(i32, from + RunQueue.load)
    if (offered >> 2 < best || (victim >= 0 && loaded > load)) {
      victim = cpu
      best = offered >> 2
      load = loaded
    }
  }
  return victim
}

/**
 * After a switch that put `prev` back because another task outranks it: if `prev` outranks the task of
 * another CPU, and may run there, asks that CPU to reschedule, and it pulls `prev`.
 */
export function pushTask(s: Scheduler, prev: number): void {
  const { i32 } = s
  let target = -1
  let least = i32[prev + Entity.priority] >> 2
  const low = i32[prev + Entity.affinityMask] & s.activeHalf(0)
  const high = i32[prev + Entity.affinityMask + 1] & s.activeHalf(1)
  for (let cpu = 0; cpu < s.cpus; cpu++) {
    if (cpu === s.cpu || !maskHas(low, high, cpu)) continue
    const running = Atomics.load(i32, s.queueOf(cpu) + RunQueue.runningPriority) >> 2
    if (running > least) {
      target = cpu
      least = running
    }
  }
  if (target >= 0) s.resched(target)
}
