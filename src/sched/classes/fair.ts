import { assert } from '../../arena/assert.ts'
import { initList, ListNode } from '../../arena/trees/list.ts'
import { chargeRun } from '../core/account.ts'
import type { SchedClass } from './class.ts'
import { Entity, POLICY_YIELDED } from '../core/entity.ts'
import {
  fairList,
  firstOfFairList,
  isAlike,
  isOnFairList,
  joinFairList,
  leaveFairList,
  listSlack,
} from './fairlist.ts'
import { fairOrder } from './fairtree.ts'
import { leastQueued } from './fifo.ts'
import { NICE_0_WEIGHT } from '../core/priority.ts'
import { ClassRq, RunQueue } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'
import { LONG_TURN_MS, TURN_CHARGED, TURN_ESTIMATED, TURN_MEASURED } from '../core/turnlength.ts'

/** Covers the rounding of sums: without it the last eligible entity might be missed. */
const SLACK = 1e-12
const SLACK_MS = 1e-9

/** The weight of the newest measured turn in the average of a task's turns. A long turn is taken as it is. */
const NEWEST = 1 / 64

/** A turn that is so many times as long as the average was disturbed, and counts for that much. */
const DISTURBED = 4

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
    insert(s, rq, se, false)
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
    const limit = eligibleLimit(averageVruntime(s, rq))
    const best = earliestEligible(s, rq, limit)
    const running = i32[rq + ClassRq.running]
    if (
      running !== 0 &&
      running === i32[i32[rq + ClassRq.queue] + RunQueue.contender] &&
      (i32[running + Entity.policy] & POLICY_YIELDED) === 0
    ) {
      const deadline = f64[(running + Entity.deadline) >> 1]
      if (f64[(running + Entity.vruntime) >> 1] <= limit) {
        if (best === 0 || deadline <= f64[(best + Entity.deadline) >> 1]) return running
      } else if (best === 0 && hasNoneQueued(s, rq)) {
        return running
      }
    }
    // All eligible entities have yielded or left: the entity with the earliest deadline need not wait for
    // them.
    return best !== 0 ? best : earliestOfAll(s, rq)
  },

  putPrevTask(s, rq, se) {
    const { i32, f64 } = s
    updateRunning(s, rq)
    const average = averageVruntime(s, rq)
    forget(s, rq, se)
    const yields = (i32[se + Entity.policy] & POLICY_YIELDED) !== 0
    if (yields) {
      i32[se + Entity.policy] &= ~POLICY_YIELDED
      // [3] of fairlist.ts
      const least = average - 2 * virtualSlice(s, se)
      if (f64[(se + Entity.vruntime) >> 1] < least) f64[(se + Entity.vruntime) >> 1] = least
      renewDeadline(s, se)
    }
    insert(s, rq, se, yields)
  },

  setNextTask(s, rq, se) {
    const { i32, f64 } = s
    assert(i32[rq + ClassRq.leaving] === 0, 'a CPU switches away from one fair task at a time')
    updateRunning(s, rq)
    if (i32[rq + ClassRq.running] === 0) f64[(rq + ClassRq.chargedTo) >> 1] = s.clock
    i32[rq + ClassRq.leaving] = i32[rq + ClassRq.running]
    remove(s, rq, se)
    i32[rq + ClassRq.running] = se
    startTurn(s, rq, se)
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

  yieldTask(s, rq, se) {
    s.i32[se + Entity.policy] |= POLICY_YIELDED
    if (s.i32[rq + ClassRq.running] !== se) return
    if (chargeTurn(s, rq, se) >= s.f64[(se + Entity.deadline) >> 1]) renewDeadline(s, se)
    s.turn = TURN_MEASURED
  },

  reset(s, rq, running) {
    const { i32, f64 } = s
    i32[rq + ClassRq.root] = 0
    initList(i32, fairList(rq))
    i32[rq + ClassRq.marker] = 0
    i32[rq + ClassRq.running] = running
    i32[rq + ClassRq.leaving] = 0
    f64[(rq + ClassRq.weight) >> 1] = 0
    f64[(rq + ClassRq.weightedSum) >> 1] = 0
    if (running !== 0) f64[(rq + ClassRq.base) >> 1] = f64[(running + Entity.vruntime) >> 1]
  },

  restore(s, rq, se) {
    insert(s, rq, se, false)
  },
}

/**
 * The running entity yields: charges the turn that it ends (turnclock.ts). Returns its vruntime. The run
 * queue is locked.
 */
export function chargeTurn(s: Scheduler, rq: number, se: number): number {
  const { i32, f64, turn } = s
  const chargedTo = (rq + ClassRq.chargedTo) >> 1
  const at = (se + Entity.vruntime) >> 1
  if (turn === TURN_CHARGED) return f64[at]
  const turnTime = (se + Entity.turnTime) >> 1
  let ran = f64[turnTime]
  if (turn === TURN_MEASURED) {
    const average = ran
    ran = s.clock - f64[chargedTo]
    if (!(ran > 0)) return f64[at]
    if (ran >= LONG_TURN_MS || average === 0) f64[turnTime] = ran
    else f64[turnTime] = average + (Math.min(ran, DISTURBED * average) - average) * NEWEST
  }
  f64[chargedTo] = turn === TURN_ESTIMATED ? f64[chargedTo] + ran : s.clock
  const weight = i32[se + Entity.weight]
  return (f64[at] += weight === NICE_0_WEIGHT ? ran : (ran * NICE_0_WEIGHT) / weight)
}

/** The entity runs now, on this CPU. If its turns have been long, this one is measured. */
export function startTurn(s: Scheduler, rq: number, se: number): void {
  const { f64 } = s
  if (f64[(se + Entity.turnTime) >> 1] < LONG_TURN_MS || !s.turnsAreShort) return
  if (s.i32[rq + ClassRq.queue] !== s.queue) return
  s.measuresTurn = true
  f64[(rq + ClassRq.chargedTo) >> 1] = s.readClock()
}

/** The vruntime up to which an entity is eligible. `average` is V. */
export function eligibleLimit(average: number): number {
  return average + Math.abs(average) * SLACK + SLACK_MS
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
  chargeRun(s, se)
  const ran = s.clock - f64[(rq + ClassRq.chargedTo) >> 1]
  if (!(ran > 0)) return
  f64[(rq + ClassRq.chargedTo) >> 1] = s.clock
  f64[(se + Entity.vruntime) >> 1] += (ran * NICE_0_WEIGHT) / i32[se + Entity.weight]
  if (f64[(se + Entity.vruntime) >> 1] >= f64[(se + Entity.deadline) >> 1]) renewDeadline(s, se)
}

/** The eligible entity with the earliest deadline, of the tree and the list; 0: none is eligible. */
function earliestEligible(s: Scheduler, rq: number, limit: number): number {
  const { f64 } = s
  const ofTree = s.fairTree.earliestEligible(rq + ClassRq.root, limit)
  const ofList = firstOfFairList(s, rq)
  if (ofList === 0 || f64[(ofList + Entity.vruntime) >> 1] > limit + listSlack(s)) return ofTree
  return earlier(s, ofTree, ofList)
}

function earliestOfAll(s: Scheduler, rq: number): number {
  const best = earlier(s, s.fairTree.first(rq + ClassRq.root), firstOfFairList(s, rq))
  assert(best !== 0, 'picked from a fair level without tasks')
  return best
}

/** The entity with the earlier deadline. One of them may be 0. */
function earlier({ f64 }: Scheduler, ofTree: number, ofList: number): number {
  if (ofTree === 0) return ofList
  if (ofList === 0) return ofTree
  return f64[(ofTree + Entity.deadline) >> 1] <= f64[(ofList + Entity.deadline) >> 1] ? ofTree : ofList
}

function hasNoneQueued(s: Scheduler, rq: number): boolean {
  return s.i32[rq + ClassRq.root] === 0 && firstOfFairList(s, rq) === 0
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

/** Queues the entity: on the list if it may join it, else on the tree. */
function insert(s: Scheduler, rq: number, se: number, yields: boolean): void {
  const { i32, f64 } = s
  const w = i32[se + Entity.weight]
  assert(w > 0, 'a fair entity has a weight')
  f64[(rq + ClassRq.weight) >> 1] += w
  f64[(rq + ClassRq.weightedSum) >> 1] +=
    w * (f64[(se + Entity.vruntime) >> 1] - f64[(rq + ClassRq.base) >> 1])
  if (isAlike(s, se)) {
    if (joinFairList(s, rq, se)) return
    if (yields) unblockList(s, rq, f64[(se + Entity.deadline) >> 1])
  }
  insertInTree(s, rq, se)
}

function insertInTree(s: Scheduler, rq: number, se: number): void {
  const { i32 } = s
  i32[se + fairOrder] = i32[rq + ClassRq.order]
  i32[rq + ClassRq.order] = (i32[rq + ClassRq.order] + 1) | 0
  s.fairTree.insert(rq + ClassRq.root, se)
}

/**
 * An entity that yields is too early for the whole list: the list was begun by entities that are ahead of the
 * others. Moves two of them to the tree: soon the list is empty, and starts again.
 */
function unblockList(s: Scheduler, rq: number, deadline: number): void {
  for (let moved = 0; moved < 2; moved++) {
    const se = firstOfFairList(s, rq)
    if (se === 0 || s.f64[(se + Entity.deadline) >> 1] <= deadline + listSlack(s)) return
    leaveFairList(s, rq, se)
    insertInTree(s, rq, se)
  }
}

function remove(s: Scheduler, rq: number, se: number): void {
  const { i32, f64 } = s
  if (isOnFairList(s, rq, se)) leaveFairList(s, rq, se)
  else s.fairTree.remove(rq + ClassRq.root, se)
  const w = i32[se + Entity.weight]
  f64[(rq + ClassRq.weight) >> 1] -= w
  f64[(rq + ClassRq.weightedSum) >> 1] -=
    w * (f64[(se + Entity.vruntime) >> 1] - f64[(rq + ClassRq.base) >> 1])
  if (hasNoneQueued(s, rq)) {
    // The sums start again, so that rounding errors last for one busy period at most.
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
  if (i32[se + Entity.links + ListNode.list] !== 0) remove(s, rq, se)
  else forget(s, rq, se)
  if (hasNoneQueued(s, rq) && i32[rq + ClassRq.running] === 0) f64[(rq + ClassRq.base) >> 1] = average
  i32[se + Entity.policy] &= ~POLICY_YIELDED
}
