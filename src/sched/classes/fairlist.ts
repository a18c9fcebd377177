import { listFirst, ListNode, listPush, listRemove } from '../../arena/trees/list.ts'
import { Entity } from '../core/entity.ts'
import { NICE_0_WEIGHT } from '../core/priority.ts'
import { ClassRq } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'

/**
 * The list of a fair run queue, beside its tree. It holds entities that are alike: the default weight, the
 * default slice, and a request that has just begun. So the deadline of each is its vruntime plus the same
 * slice, and the order of deadlines is the order of vruntimes. An entity that yields goes to the end, and the
 * next one is at the front: O(1), where the tree needs O(log n).
 *
 * The list is in order within a slack, a 64th of a slice:
 *
 *   [1] every entity has a deadline of at least the latest deadline before it, minus the slack
 *   [2] an entity joins with a deadline of at most the average of those that joined, plus half the slack
 *   [3] an entity that yields keeps the time that it is owed, up to two slices
 *
 * So the first entity has the earliest deadline of the list, within the slack, and if any entity of the list
 * is eligible, the first one is within the slack. An entity that would break [1] or [2], an outlier, goes to
 * the tree: [2] keeps a single entity with long turns from making outliers of all others. Without [3], two
 * tasks that always yield to each other could move apart for as long as they run; if the one that is owed
 * time stopped yielding, the other one would have no turn for all that time.
 *
 * For [1] the list knows its latest deadline, or a later one that it had at most one round ago. It has two
 * parts, with the latest deadline of each: the entities from the marker on, and those before it. When the
 * marker comes to the front, its part is the older one, and the next entity that joins is the marker.
 */
const SLACK = 1 / 64

/** The weight of the newest deadline in the average of those that join. */
const CENTRE = 1 / 64

/** In milliseconds of virtual time. */
export function listSlack(s: Scheduler): number {
  return s.slice * SLACK
}

/** The list of a fair class run queue. */
export function fairList(rq: number): number {
  return rq + ClassRq.list
}

/** Whether an entity that is queued here is on the list. Else it is on the tree. */
export function isOnFairList(s: Scheduler, rq: number, se: number): boolean {
  return s.i32[se + Entity.links + ListNode.list] === fairList(rq)
}

/** Whether the entity is like those of the list: default weight, default slice, a request that begins. */
export function isAlike(s: Scheduler, se: number): boolean {
  const { i32, f64, slice } = s
  if (i32[se + Entity.weight] !== NICE_0_WEIGHT || f64[(se + Entity.timeSlice) >> 1] !== slice) return false
  return f64[(se + Entity.deadline) >> 1] === f64[(se + Entity.vruntime) >> 1] + slice
}

/** The latest deadline on the list, or a later one. The list is not empty. */
export function latestOfFairList({ f64 }: Scheduler, rq: number): number {
  const latest = f64[(rq + ClassRq.latest) >> 1]
  const newest = f64[(rq + ClassRq.newest) >> 1]
  return newest > latest ? newest : latest
}

/** Appends an entity that is alike. False: it is too early or too late for the list. */
export function joinFairList(s: Scheduler, rq: number, se: number): boolean {
  const { i32, f64 } = s
  const deadline = f64[(se + Entity.deadline) >> 1]
  const first = firstOfFairList(s, rq)
  if (first === 0) {
    f64[(rq + ClassRq.latest) >> 1] = deadline
    f64[(rq + ClassRq.centre) >> 1] = deadline
    i32[rq + ClassRq.marker] = 0
  } else {
    if (deadline < latestOfFairList(s, rq) - listSlack(s)) return false // [1]
    if (deadline > f64[(rq + ClassRq.centre) >> 1] + listSlack(s) / 2) return false // [2]
  }
  noteJoined(s, rq, se, deadline)
  listPush(i32, fairList(rq), se + Entity.links)
  return true
}

/** The entity goes to the end of the list. */
export function noteJoined({ i32, f64 }: Scheduler, rq: number, se: number, deadline: number): void {
  const newest = (rq + ClassRq.newest) >> 1
  const centre = (rq + ClassRq.centre) >> 1
  f64[centre] += (deadline - f64[centre]) * CENTRE
  if (i32[rq + ClassRq.marker] === 0) {
    i32[rq + ClassRq.marker] = se
    f64[newest] = deadline
  } else if (deadline > f64[newest]) {
    f64[newest] = deadline
  }
}

/** The entity leaves the list. If it is the marker, and the first one, all of the older part has left. */
export function noteLeft(s: Scheduler, rq: number, se: number, isFirst: boolean): void {
  const { i32, f64 } = s
  if (i32[rq + ClassRq.marker] !== se) return
  i32[rq + ClassRq.marker] = 0
  f64[(rq + ClassRq.latest) >> 1] = isFirst ? f64[(rq + ClassRq.newest) >> 1] : latestOfFairList(s, rq)
}

export function leaveFairList(s: Scheduler, rq: number, se: number): void {
  noteLeft(s, rq, se, firstOfFairList(s, rq) === se)
  listRemove(s.i32, fairList(rq), se + Entity.links)
}

/** The first entity of the list, or 0. */
export function firstOfFairList(s: Scheduler, rq: number): number {
  const first = listFirst(s.i32, fairList(rq))
  return first === 0 ? 0 : first - Entity.links
}
