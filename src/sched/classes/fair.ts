import { assert } from '../../arena/assert.ts'
import { chargeRun } from '../core/account.ts'
import type { SchedClass } from './class.ts'
import { Entity, POLICY_YIELDED } from '../core/entity.ts'
import { fairOrder } from './fairtree.ts'
import { leastQueued } from './fifo.ts'
import { NICE_0_WEIGHT } from '../core/priority.ts'
import { ClassRq, RunQueue } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'

/** Covers the rounding of sums: without it the last eligible entity might be missed. */
const SLACK = 1e-12
const SLACK_MS = 1e-9

/**
 * The first request of a task, as a part of its slice: short enough that a short task need not wait for the
 * slices of others.
 */
const FIRST_REQUEST = 0.1

/**
 * The fair class: earliest eligible virtual deadline first (EEVDF).
 *
 * Each entity has a weight w (from nice) and a vruntime v, which advances by run time * 1024 / w while it
 * runs. The weighted average of all v is V: the vruntime of each if all had run in parallel, each at its
 * share. An entity's lag, V - v, is the time that it is owed. An entity with a lag of 0 or more is eligible:
 * v <= V. Each requests a slice at a time; the virtual deadline of a request is v + slice * 1024 / w. Of the
 * eligible entities the one with the earliest deadline runs: so CPU time is shared by weight, and an entity
 * with shorter requests is served sooner.
 *
 * Lag outlives a sleep: an entity that returns is placed as far from V as it was when it left. So a sleep
 * neither gains nor loses time; lag is kept within two slices.
 *
 * A task that has never run requests a tenth of its slice first. Most tasks are short: their deadline comes
 * before those of tasks that have computed for a while, and a long task is back among its equals after that
 * tenth.
 *
 * V is not stored: `weight` and `weightedSum` = sum of w * (v - base) over the queued entities are, and the
 * running one is added when asked. All of it is guarded by the run queue's lock.
 */
export const fairClass: SchedClass = {
  name: 'fair',

  enqueueTask(s, rq, se) {
    const { f64 } = s
    updateRunning(s, rq)
    const w = s.i32[se + Entity.weight]
    const W = totalWeight(s, rq)
    const average = averageVruntime(s, rq)
    let lag = f64[(se + Entity.lag) >> 1]
    // Adding it moves V towards it: to end up with this lag it is placed further away.
    if (W > 0) lag *= (W + w) / W
    f64[(se + Entity.vruntime) >> 1] = average - lag
    renewDeadline(s, se)
    if (s.i32[se + Entity.turns] === 0) {
      f64[(se + Entity.deadline) >> 1] =
        f64[(se + Entity.vruntime) >> 1] + FIRST_REQUEST * virtualSlice(s, se)
    }
    insert(s, rq, se)
  },

  dequeueTask(s, rq, se) {
    updateRunning(s, rq)
    keepLag(s, rq, se)
    leave(s, rq, se)
  },

  selectTaskRq(s, se, maskLow, maskHigh) {
    return leastQueued(s, se, maskLow, maskHigh)
  },

  pickNextTask(s, rq) {
    const { i32, f64 } = s
    updateRunning(s, rq)
    const average = averageVruntime(s, rq)
    const limit = average + Math.abs(average) * SLACK + SLACK_MS
    const root = rq + ClassRq.root
    let best = s.fairTree.earliestEligible(root, limit)
    const running = i32[rq + ClassRq.running]
    if (
      running !== 0 &&
      running === i32[i32[rq + ClassRq.queue] + RunQueue.contender] &&
      (i32[running + Entity.policy] & POLICY_YIELDED) === 0
    ) {
      const deadline = f64[(running + Entity.deadline) >> 1]
      if (f64[(running + Entity.vruntime) >> 1] <= limit) {
        if (best === 0 || deadline <= f64[(best + Entity.deadline) >> 1]) return running
      } else if (best === 0 && i32[rq + ClassRq.root] === 0) {
        return running
      }
    }
    // All eligible entities have yielded or left: the entity with the earliest deadline need not wait for
    // them.
    if (best === 0) best = s.fairTree.first(root)
    assert(best !== 0, 'picked from a fair level without tasks')
    return best
  },

  putPrevTask(s, rq, se) {
    const { i32 } = s
    updateRunning(s, rq)
    forget(s, rq, se)
    if ((i32[se + Entity.policy] & POLICY_YIELDED) !== 0) {
      i32[se + Entity.policy] &= ~POLICY_YIELDED
      renewDeadline(s, se)
    }
    insert(s, rq, se)
  },

  setNextTask(s, rq, se) {
    const { i32, f64 } = s
    assert(i32[rq + ClassRq.leaving] === 0, 'a CPU switches away from one fair task at a time')
    updateRunning(s, rq)
    i32[rq + ClassRq.leaving] = i32[rq + ClassRq.running]
    remove(s, rq, se)
    i32[rq + ClassRq.running] = se
    if (f64[(se + Entity.vruntime) >> 1] >= f64[(se + Entity.deadline) >> 1]) renewDeadline(s, se)
  },

  taskTick(s, rq) {
    updateRunning(s, rq)
  },

  taskFork(s, _rq, se) {
    s.f64[(se + Entity.lag) >> 1] = 0
  },

  taskDead(s, rq, se) {
    updateRunning(s, rq)
    leave(s, rq, se)
  },

  yieldTask(s, _rq, se) {
    s.i32[se + Entity.policy] |= POLICY_YIELDED
  },

  reset(s, rq, running) {
    const { i32, f64 } = s
    i32[rq + ClassRq.root] = 0
    i32[rq + ClassRq.running] = running
    i32[rq + ClassRq.leaving] = 0
    f64[(rq + ClassRq.weight) >> 1] = 0
    f64[(rq + ClassRq.weightedSum) >> 1] = 0
    if (running !== 0) f64[(rq + ClassRq.base) >> 1] = f64[(running + Entity.vruntime) >> 1]
  },

  restore(s, rq, se) {
    insert(s, rq, se)
  },
}

/** When, on the machine's clock, the running entity will have used up its request. */
export function fairSliceEnd(s: Scheduler, se: number): number {
  const { i32, f64 } = s
  const left = f64[(se + Entity.deadline) >> 1] - f64[(se + Entity.vruntime) >> 1]
  return s.clock + (Math.max(0, left) * i32[se + Entity.weight]) / NICE_0_WEIGHT
}

/** V: the weighted average vruntime of the queued and the running entities; `base` when there are none. */
function averageVruntime(s: Scheduler, rq: number): number {
  const { i32, f64 } = s
  const base = f64[(rq + ClassRq.base) >> 1]
  let sum = f64[(rq + ClassRq.weightedSum) >> 1]
  let weight = f64[(rq + ClassRq.weight) >> 1]
  for (let at = rq + ClassRq.running; at <= rq + ClassRq.leaving; at++) {
    const se = i32[at]
    if (se === 0) continue
    const w = i32[se + Entity.weight]
    sum += w * (f64[(se + Entity.vruntime) >> 1] - base)
    weight += w
  }
  return weight > 0 ? base + sum / weight : base
}

function totalWeight(s: Scheduler, rq: number): number {
  const running = s.i32[rq + ClassRq.running]
  return s.f64[(rq + ClassRq.weight) >> 1] + (running === 0 ? 0 : s.i32[running + Entity.weight])
}

/** Updates the running entity's vruntime to the clock, and sets a new deadline when it has met its last. */
function updateRunning(s: Scheduler, rq: number): void {
  const { i32, f64 } = s
  const se = i32[rq + ClassRq.running]
  if (se === 0) return
  const ran = chargeRun(s, se)
  if (ran <= 0) return
  f64[(se + Entity.vruntime) >> 1] += (ran * NICE_0_WEIGHT) / i32[se + Entity.weight]
  if (f64[(se + Entity.vruntime) >> 1] >= f64[(se + Entity.deadline) >> 1]) renewDeadline(s, se)
}

function renewDeadline(s: Scheduler, se: number): void {
  const { f64 } = s
  f64[(se + Entity.deadline) >> 1] = f64[(se + Entity.vruntime) >> 1] + virtualSlice(s, se)
}

function virtualSlice(s: Scheduler, se: number): number {
  return (s.f64[(se + Entity.timeSlice) >> 1] * NICE_0_WEIGHT) / s.i32[se + Entity.weight]
}

/** Stores the entity's lag before it leaves. */
function keepLag(s: Scheduler, rq: number, se: number): void {
  const { f64 } = s
  const limit = 2 * virtualSlice(s, se)
  const lag = averageVruntime(s, rq) - f64[(se + Entity.vruntime) >> 1]
  f64[(se + Entity.lag) >> 1] = Math.max(-limit, Math.min(limit, lag))
}

function insert(s: Scheduler, rq: number, se: number): void {
  const { i32, f64 } = s
  const w = i32[se + Entity.weight]
  assert(w > 0, 'a fair entity has a weight')
  i32[se + fairOrder] = i32[rq + ClassRq.order]
  i32[rq + ClassRq.order] = (i32[rq + ClassRq.order] + 1) | 0
  f64[(rq + ClassRq.weight) >> 1] += w
  f64[(rq + ClassRq.weightedSum) >> 1] +=
    w * (f64[(se + Entity.vruntime) >> 1] - f64[(rq + ClassRq.base) >> 1])
  s.fairTree.insert(rq + ClassRq.root, se)
}

function remove(s: Scheduler, rq: number, se: number): void {
  const { i32, f64 } = s
  s.fairTree.remove(rq + ClassRq.root, se)
  const w = i32[se + Entity.weight]
  f64[(rq + ClassRq.weight) >> 1] -= w
  f64[(rq + ClassRq.weightedSum) >> 1] -=
    w * (f64[(se + Entity.vruntime) >> 1] - f64[(rq + ClassRq.base) >> 1])
  if (i32[rq + ClassRq.root] === 0) {
    // Nothing is queued: the sums start again, so that rounding errors last for one busy period at most.
    f64[(rq + ClassRq.base) >> 1] = f64[(se + Entity.vruntime) >> 1]
    f64[(rq + ClassRq.weight) >> 1] = 0
    f64[(rq + ClassRq.weightedSum) >> 1] = 0
  }
}

/** The entity does not run any more: it is the entity that a switch replaces, or the running one itself. */
function forget(s: Scheduler, rq: number, se: number): void {
  const { i32 } = s
  if (i32[rq + ClassRq.leaving] === se) i32[rq + ClassRq.leaving] = 0
  else if (i32[rq + ClassRq.running] === se) i32[rq + ClassRq.running] = 0
}

/**
 * The entity, running or queued, leaves this queue. V stays as it is when the last entity leaves.
 */
function leave(s: Scheduler, rq: number, se: number): void {
  const { i32, f64 } = s
  const average = averageVruntime(s, rq)
  if (s.fairTree.isQueued(se)) remove(s, rq, se)
  else forget(s, rq, se)
  if (i32[rq + ClassRq.root] === 0 && i32[rq + ClassRq.running] === 0) f64[(rq + ClassRq.base) >> 1] = average
  i32[se + Entity.policy] &= ~POLICY_YIELDED
}
