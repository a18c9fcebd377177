import { assert } from '../../arena/assert.ts'
import { ListNode } from '../../arena/trees/list.ts'
import { chargeTurn, eligibleLimit, startTurn } from '../classes/fair.ts'
import { fairList, latestOfFairList, listSlack, noteJoined, noteLeft } from '../classes/fairlist.ts'
import { isBestReady } from '../classes/readymask.ts'
import { Entity, POLICY_PUSHABLE } from './entity.ts'
import { FAIR_MAJOR_PRIORITY, NICE_0_WEIGHT } from './priority.ts'
import { ClassRq, RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'
import { TURN_CHARGED } from './turnlength.ts'

const { next, prev: before, list } = ListNode

/**
 * A yield in the fair class, in one function: the running entity goes to the end of the list (fairlist.ts),
 * and the first one of the list runs. It does what yield, pick, set-next and put-previous of fair.ts do, in
 * their order; of the counts, masks and published words none changes.
 *
 * Returns the entity that is the current one now, or 0: the caller takes the slow path. The run queue is
 * locked.
 */
export function rotateFair(s: Scheduler, queue: number, prev: number): number {
  const { i32, f64, slice } = s
  const rq = i32[prev + Entity.rq]
  const head = fairList(rq)
  const first = i32[head + next]
  if (first === head || !isBestReady(i32, queue + RunQueue.readyMask, FAIR_MAJOR_PRIORITY)) return 0
  const se = first - Entity.links
  // Tasks that another CPU could take are on a second list.
  if (((i32[prev + Entity.policy] | i32[se + Entity.policy]) & POLICY_PUSHABLE) !== 0) return 0
  if (i32[prev + Entity.weight] !== NICE_0_WEIGHT || f64[(prev + Entity.timeSlice) >> 1] !== slice) return 0
  if (i32[rq + ClassRq.running] !== prev) return 0

  // yield: the turn is charged, and a new request begins.
  let vruntime = chargeTurn(s, rq, prev)
  const slack = listSlack(s)
  const base = f64[(rq + ClassRq.base) >> 1]
  const queuedSum = f64[(rq + ClassRq.weightedSum) >> 1]
  const weight = f64[(rq + ClassRq.weight) >> 1] + NICE_0_WEIGHT
  const average = base + (queuedSum + NICE_0_WEIGHT * (vruntime - base)) / weight
  if (vruntime < average - 2 * slice) vruntime = average - 2 * slice // [3] of fairlist.ts
  const nextVruntime = f64[(se + Entity.vruntime) >> 1]
  const latest = latestOfFairList(s, rq)
  const second = i32[first + next]
  const deadline = vruntime + slice
  // With one other task there is no choice.
  if (second !== head || i32[rq + ClassRq.root] !== 0) {
    if (
      nextVruntime > average + slack ||
      (second !== head &&
        (deadline < latest - slack || // [1]
          deadline > f64[(rq + ClassRq.centre) >> 1] + slack / 2)) || // [2]
      (i32[rq + ClassRq.root] !== 0 && treeIsFirst(s, rq, average, se))
    ) {
      s.turn = TURN_CHARGED
      return 0
    }
  }

  const last = prev + Entity.links
  assert(
    i32[first + list] === head && i32[last + list] === 0,
    'the next entity is queued here, the old one nowhere',
  )
  // set-next: out of the list.
  noteLeft(s, rq, se, true)
  i32[first + list] = 0
  const tail = second === head ? head : i32[head + before]
  i32[head + next] = second
  i32[second + before] = head
  i32[queue + RunQueue.current] = se
  i32[rq + ClassRq.running] = se
  startTurn(s, rq, se)
  // put-previous: at the end. Its epoch is the head's: no fair list is ever spliced.
  f64[(prev + Entity.vruntime) >> 1] = vruntime
  f64[(prev + Entity.deadline) >> 1] = deadline
  f64[(rq + ClassRq.weightedSum) >> 1] = queuedSum + NICE_0_WEIGHT * (vruntime - nextVruntime)
  if (second === head) {
    f64[(rq + ClassRq.latest) >> 1] = deadline
    f64[(rq + ClassRq.centre) >> 1] = deadline
  }
  noteJoined(s, rq, prev, deadline)
  i32[last + ListNode.epoch] = i32[head + ListNode.epoch]
  i32[last + list] = head
  i32[last + next] = head
  i32[last + before] = tail
  i32[tail + next] = last
  i32[head + before] = last
  return se
}

/** Whether an entity of the tree comes before the first one of the list. */
function treeIsFirst(s: Scheduler, rq: number, average: number, se: number): boolean {
  const best = s.fairTree.earliestEligible(rq + ClassRq.root, eligibleLimit(average))
  return best !== 0 && s.f64[(best + Entity.deadline) >> 1] <= s.f64[(se + Entity.deadline) >> 1]
}
