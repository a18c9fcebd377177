import { countTime, QUEUE_WAIT, SPAWN_TO_START, WAKEUP_LATENCY } from '../../arena/rings/histogram.ts'
import { Entity, POLICY_WOKEN } from './entity.ts'
import { ClassRq, RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'

/**
 * Accounting, for each task and each CPU. The exact figures are plain words that the run queue's lock guards.
 * Any thread may read the published figures without a lock. They are stored when a task leaves its CPU and
 * its times have moved by PUBLISH_EVERY since. So a reader is behind by that time at most, and by the current
 * turn. A task that ends publishes nothing: its last figures are copied from the exact ones.
 *
 * A time is microseconds in two words, high and low. The high word stands on both sides of the low one:
 *
 *   writer                          reader
 *   ------                          ------
 *   (A) store(high)                 (D) load(check)
 *   (B) store(low)                  (E) load(low)
 *   (C) store(check)                (F) load(high); if it is not what (D) saw, low belongs to neither: 0
 *
 * (D) sees the new high word only after (B); (F) sees the old one only before it. The high word changes once
 * in 71 minutes, so (A) and (C) are rare. A reader never waits for (C): the writer may have died before it.
 * Then the time stands at the new high word until it is published again, when a writer sees that (C) is
 * missing.
 */
const PUBLISH_EVERY_US = 100
const LOW_SPAN = 0x1_0000_0000

export interface TaskAccount {
  /** Milliseconds on a CPU. */
  readonly runTime: number
  /** Milliseconds runnable without running. */
  readonly waitTime: number
  readonly switches: number
  readonly preemptions: number
  readonly migrations: number
  readonly wakeups: number
}

export interface CpuAccount {
  /** Milliseconds that it ran tasks. */
  readonly busyTime: number
  readonly switches: number
  readonly preemptions: number
  /** Tasks that came from other CPUs; `steals` of them were taken by this one. */
  readonly migrations: number
  readonly wakeups: number
  readonly steals: number
  /** Started tasks that this CPU has packed and sent to others. */
  readonly moves: number
  /** Queued tasks and the running one, now. */
  readonly load: number
}

/** A task's figures, from any thread. */
export function taskAccount(i32: Int32Array, se: number): TaskAccount {
  return {
    runTime: readTime(i32, se + Entity.runTimeHigh),
    waitTime: readTime(i32, se + Entity.waitTimeHigh),
    switches: Atomics.load(i32, se + Entity.switches),
    preemptions: Atomics.load(i32, se + Entity.preemptions),
    migrations: Atomics.load(i32, se + Entity.migrations),
    wakeups: Atomics.load(i32, se + Entity.wakeups),
  }
}

/** A CPU's figures, from any thread. */
export function cpuAccount(i32: Int32Array, queue: number): CpuAccount {
  return {
    busyTime: readTime(i32, queue + RunQueue.busyTimeHigh),
    switches: Atomics.load(i32, queue + RunQueue.switches),
    preemptions: Atomics.load(i32, queue + RunQueue.preemptions),
    migrations: Atomics.load(i32, queue + RunQueue.migrations),
    wakeups: Atomics.load(i32, queue + RunQueue.wakeups),
    steals: Atomics.load(i32, queue + RunQueue.steals),
    moves: Atomics.load(i32, queue + RunQueue.sends),
    load: Atomics.load(i32, queue + RunQueue.load),
  }
}

/**
 * Charges the running entity, and its CPU, up to the clock. Returns the milliseconds since it was last
 * charged.
 */
export function chargeRun(s: Scheduler, se: number): number {
  const { i32, f64 } = s
  const ran = s.clock - f64[(se + Entity.execStart) >> 1]
  if (!(ran > 0)) return 0
  f64[(se + Entity.runTime) >> 1] += ran
  f64[(se + Entity.execStart) >> 1] = s.clock
  f64[(i32[i32[se + Entity.rq] + ClassRq.queue] + RunQueue.busyTime) >> 1] += ran
  return ran
}

/** The entity waits to run from now on. */
export function startWait(s: Scheduler, se: number): void {
  s.f64[(se + Entity.execStart) >> 1] = s.clock
}

/** A task that is queued for the first time has waited since it was made (arrivals.ts). */
export function waitsSinceSpawn(s: Scheduler, se: number): void {
  s.f64[(se + Entity.execStart) >> 1] = Math.min(s.clock, s.f64[(se + Entity.startTime) >> 1])
}

/** It runs now: the wait is over. */
export function endWait(s: Scheduler, se: number): void {
  const { f64 } = s
  const waited = s.clock - f64[(se + Entity.execStart) >> 1]
  if (waited === 0) return
  if (waited > 0) countWait(s, se, waited)
  f64[(se + Entity.execStart) >> 1] = s.clock
}

/** Waits that end before the clock is read again (cpuloop.ts) are not counted. */
function countWait(s: Scheduler, se: number, waited: number): void {
  const { i32, f64, histograms, cpu } = s
  f64[(se + Entity.waitTime) >> 1] += waited
  countTime(i32, histograms, cpu, QUEUE_WAIT, waited)
  if ((i32[se + Entity.policy] & POLICY_WOKEN) === 0) return
  i32[se + Entity.policy] &= ~POLICY_WOKEN
  countTime(i32, histograms, cpu, WAKEUP_LATENCY, waited)
  if (i32[se + Entity.turns] !== 0) return
  countTime(i32, histograms, cpu, SPAWN_TO_START, s.clock - f64[(se + Entity.startTime) >> 1])
}

/** Publishes an entity's figures if they have moved far enough. */
export function publishTask(s: Scheduler, se: number): void {
  const { i32, f64 } = s
  const ran = f64[(se + Entity.runTime) >> 1] * 1000
  const waited = f64[(se + Entity.waitTime) >> 1] * 1000
  const moved = ran + waited - (i32[se + Entity.runTimeLow] + i32[se + Entity.waitTimeLow])
  if ((moved | 0) >= 0 && (moved | 0) < PUBLISH_EVERY_US) return
  storeTime(i32, se + Entity.runTimeHigh, ran)
  storeTime(i32, se + Entity.waitTimeHigh, waited)
  storeCount(i32, se + Entity.switches, i32[se + Entity.turns])
  storeCount(i32, se + Entity.preemptions, i32[se + Entity.preempted])
  storeCount(i32, se + Entity.migrations, i32[se + Entity.moved])
  storeCount(i32, se + Entity.wakeups, i32[se + Entity.woken])
}

/** Publishes a CPU's figures: all of them when it goes idle, else if they have moved far enough. */
export function publishCpu(s: Scheduler, queue: number, idle: boolean): void {
  const { i32, f64 } = s
  const us = f64[(queue + RunQueue.busyTime) >> 1] * 1000
  if (!idle && ((us - i32[queue + RunQueue.busyTimeLow]) | 0) < PUBLISH_EVERY_US) return
  storeTime(i32, queue + RunQueue.busyTimeHigh, us)
  storeCount(i32, queue + RunQueue.switches, i32[queue + RunQueue.turns])
  storeCount(i32, queue + RunQueue.preemptions, i32[queue + RunQueue.preempted])
  storeCount(i32, queue + RunQueue.migrations, i32[queue + RunQueue.moved])
  storeCount(i32, queue + RunQueue.wakeups, i32[queue + RunQueue.woken])
  storeCount(i32, queue + RunQueue.steals, i32[queue + RunQueue.stolen])
}

function storeCount(i32: Int32Array, at: number, count: number): void {
  if (i32[at] !== count) Atomics.store(i32, at, count)
}

/** Three words that stand together: high, low, check. */
function storeTime(i32: Int32Array, at: number, us: number): void {
  const high = Math.floor(us / LOW_SPAN)
  const low = us | 0
  if (high === i32[at + 2]) {
    if (low !== i32[at + 1]) Atomics.store(i32, at + 1, low)
    return
  }
  Atomics.store(i32, at, high) // (A)
  Atomics.store(i32, at + 1, low) // (B)
  Atomics.store(i32, at + 2, high) // (C)
}

/** Milliseconds. */
function readTime(i32: Int32Array, at: number): number {
  const check = Atomics.load(i32, at + 2) // (D)
  const low = Atomics.load(i32, at + 1) // (E)
  const high = Atomics.load(i32, at) // (F)
  return (high * LOW_SPAN + (high === check ? low >>> 0 : 0)) / 1000
}
