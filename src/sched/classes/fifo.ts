import { assert } from '../../arena/assert.ts'
import {
  initList,
  listFirst,
  ListHead,
  listIsEmpty,
  listPush,
  listRemove,
  listUnshift,
} from '../../arena/trees/list.ts'
import type { SchedClass } from './class.ts'
import { Entity, POLICY_ROUND_ROBIN, POLICY_YIELDED } from '../core/entity.ts'
import { lowestCpu, maskHas } from '../core/cpumask.ts'
import { MINOR_LEVELS } from '../core/priority.ts'
import { ClassRq, classRq, RunQueue } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'

/**
 * The FIFO class: a major level is four sub-queues, one for each minor priority, and a mask of those with
 * tasks. The next task is the first of the lowest of them. A task runs until it blocks, yields or is
 * outranked; a round robin task also yields to its equals when its slice ends.
 *
 * A preempted task goes back to the head, because its turn is not over, and continues with the rest of its
 * slice. A task that yielded, or whose slice ended, goes to the tail, and gets a whole slice next time.
 */
export const fifoClass: SchedClass = {
  name: 'fifo',

  enqueueTask(s, rq, se) {
    if ((s.i32[se + Entity.policy] & POLICY_ROUND_ROBIN) !== 0) endRound(s, se)
    link(s, rq, se, false)
  },

  dequeueTask(s, rq, se) {
    if (isQueued(s, se)) unlink(s, rq, se)
  },

  /**
   * 1. Prefer the current CPU, for its caches: the waker's, or where the task ran last.
   * 2. If the sub-queue of that CPU is empty, use it.
   * 3. Otherwise the CPU with the fewest tasks in that sub-queue.
   */
  selectTaskRq(s, se, maskLow, maskHigh) {
    return leastQueued(s, se, maskLow, maskHigh)
  },

  pickNextTask(s, rq) {
    const { i32 } = s
    const mask = i32[rq + ClassRq.subqueueMask]
    assert(mask !== 0, 'picked from a FIFO level without tasks')
    const minor = 31 - Math.clz32(mask & -mask)
    const contender = i32[i32[rq + ClassRq.queue] + RunQueue.contender]
    if (contender !== 0 && i32[contender + Entity.rq] === rq) {
      const rank = i32[contender + Entity.priority] & 3
      if (rank < minor || (rank === minor && (i32[contender + Entity.policy] & POLICY_YIELDED) === 0)) {
        return contender
      }
    }
    return listFirst(i32, subqueue(rq, minor)) - Entity.links
  },

  putPrevTask(s, rq, se) {
    const { i32 } = s
    const policy = i32[se + Entity.policy]
    const isPreempted = (policy & POLICY_YIELDED) === 0
    if ((policy & POLICY_ROUND_ROBIN) !== 0) {
      if (isPreempted) leaveRound(s, se)
      else endRound(s, se)
    }
    link(s, rq, se, isPreempted)
    i32[se + Entity.policy] = policy & ~POLICY_YIELDED
  },

  setNextTask(s, rq, se) {
    unlink(s, rq, se)
    if ((s.i32[se + Entity.policy] & POLICY_ROUND_ROBIN) !== 0) startRound(s, se)
  },

  taskTick(s, rq, se) {
    const { i32, f64 } = s
    if ((i32[se + Entity.policy] & POLICY_ROUND_ROBIN) === 0) return
    if (s.clock < f64[(se + Entity.deadline) >> 1]) return
    f64[(se + Entity.deadline) >> 1] = s.clock + f64[(se + Entity.timeSlice) >> 1]
    if (i32[rq + ClassRq.counts + (i32[se + Entity.priority] & 3)] !== 0)
      i32[se + Entity.policy] |= POLICY_YIELDED
  },

  taskFork() {
    // A FIFO task has no state to start with.
  },

  taskDead() {
    // It was taken out when it was set to run.
  },

  yieldTask(s, _rq, se) {
    s.i32[se + Entity.policy] |= POLICY_YIELDED
  },

  reset(s, rq) {
    const { i32 } = s
    i32[rq + ClassRq.subqueueMask] = 0
    for (let minor = 0; minor < MINOR_LEVELS; minor++) {
      if (i32[subqueue(rq, minor) + ListHead.list] !== 0) initList(i32, subqueue(rq, minor))
    }
  },
}

/**
 * Round robin: the entity runs now, for the rest of its slice, or for a whole one. While it runs,
 * `deadline` is when the slice ends; while it is queued, how many milliseconds are left, 0 for a whole slice.
 */
export function startRound(s: Scheduler, se: number): void {
  const { f64 } = s
  const left = f64[(se + Entity.deadline) >> 1]
  f64[(se + Entity.deadline) >> 1] = s.clock + (left > 0 ? left : f64[(se + Entity.timeSlice) >> 1])
}

/** Round robin: its turn is over, and it gets a whole slice next time. */
export function endRound(s: Scheduler, se: number): void {
  s.f64[(se + Entity.deadline) >> 1] = 0
}

/** Round robin: it was preempted before its slice had ended. */
function leaveRound(s: Scheduler, se: number): void {
  s.f64[(se + Entity.deadline) >> 1] = Math.max(0, s.f64[(se + Entity.deadline) >> 1] - s.clock)
}

/** The rule of selectTaskRq, for any class that counts its tasks by minor priority. */
export function leastQueued(s: Scheduler, se: number, maskLow: number, maskHigh: number): number {
  const { i32 } = s
  const priority = i32[se + Entity.priority]
  const at = ClassRq.published + (priority & 3)
  let near = s.cpu
  if (near < 0 || !maskHas(maskLow, maskHigh, near)) near = i32[se + Entity.cpu]
  if (!maskHas(maskLow, maskHigh, near)) near = lowestCpu(maskLow, maskHigh)
  let best = near
  let fewest = Atomics.load(i32, classRq(s.queueOf(near), priority >> 2) + at)
  if (fewest === 0) return near
  for (let cpu = 0; cpu < s.cpus; cpu++) {
    if (cpu === near || !maskHas(maskLow, maskHigh, cpu)) continue
    const count = Atomics.load(i32, classRq(s.queueOf(cpu), priority >> 2) + at)
    if (count < fewest) {
      best = cpu
      fewest = count
    }
  }
  return best
}

/** The list of the tasks of a minor priority. */
export function subqueue(rq: number, minor: number): number {
  return rq + ClassRq.subqueues + minor * ListHead.words
}

function isQueued(s: Scheduler, se: number): boolean {
  return s.i32[se + Entity.links + ListHead.list] !== 0
}

function link(s: Scheduler, rq: number, se: number, first: boolean): void {
  const { i32 } = s
  const minor = i32[se + Entity.priority] & 3
  const head = subqueue(rq, minor)
  if ((i32[rq + ClassRq.subqueueMask] & (1 << minor)) === 0) {
    if (i32[head + ListHead.list] === 0) initList(i32, head)
    i32[rq + ClassRq.subqueueMask] |= 1 << minor
  }
  if (first) listUnshift(i32, head, se + Entity.links)
  else listPush(i32, head, se + Entity.links)
}

function unlink(s: Scheduler, rq: number, se: number): void {
  const { i32 } = s
  const minor = i32[se + Entity.priority] & 3
  const head = subqueue(rq, minor)
  listRemove(i32, head, se + Entity.links)
  if (listIsEmpty(i32, head)) i32[rq + ClassRq.subqueueMask] &= ~(1 << minor)
}
