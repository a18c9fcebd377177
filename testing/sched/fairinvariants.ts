import { assert } from '../../src/arena/assert.ts'
import { listFirst, listNext } from '../../src/arena/trees/list.ts'
import {
  fairList,
  isAlike,
  isOnFairList,
  latestOfFairList,
  listSlack,
} from '../../src/sched/classes/fairlist.ts'
import { Entity } from '../../src/sched/core/entity.ts'
import { FAIR_MAJOR_PRIORITY } from '../../src/sched/core/priority.ts'
import { ClassRq, classRq, RunQueue } from '../../src/sched/core/runqueue.ts'
import type { Scheduler } from '../../src/sched/core/scheduler.ts'

/**
 * What holds for the fair class whenever no CPU is inside a switch or a wakeup. A part of checkInvariants.
 *
 *   [1] the list holds entities that are alike, in order of deadline within the slack
 *   [2] every other queued entity is on the tree, which is in order of deadline
 *   [3] the sums are right
 */
export function checkFair(s: Scheduler): void {
  for (let cpu = 0; cpu < s.cpus; cpu++) {
    const rq = classRq(s.queueOf(cpu), FAIR_MAJOR_PRIORITY)
    checkSums(s, rq, [...listed(s, rq), ...inTree(s, s.i32[rq + ClassRq.root])])
    const current = s.i32[s.queueOf(cpu) + RunQueue.current]
    const runs = s.i32[current + Entity.priority] >> 2 === FAIR_MAJOR_PRIORITY
    assert(s.i32[rq + ClassRq.running] === (runs ? current : 0), 'the fair class does not know what runs')
    assert(s.i32[rq + ClassRq.leaving] === 0, 'a fair task leaves outside of a switch')
  }
}

/** [1] */
function listed(s: Scheduler, rq: number): number[] {
  const { i32, f64 } = s
  const head = fairList(rq)
  const found: number[] = []
  let latest = -Infinity
  for (let node = listFirst(i32, head); node !== 0; node = listNext(i32, head, node)) {
    const se = node - Entity.links
    const deadline = f64[(se + Entity.deadline) >> 1]
    assert(isOnFairList(s, rq, se) && isAlike(s, se), 'an entity of another kind is on the fair list')
    assert(deadline >= latest - listSlack(s), 'the fair list is out of order')
    latest = Math.max(latest, deadline)
    assert(latest <= latestOfFairList(s, rq), 'the latest deadline of the fair list is wrong')
    found.push(se)
  }
  return found
}

/** [2] */
function inTree(s: Scheduler, node: number): number[] {
  if (node === 0) return []
  const { i32, f64 } = s
  const before = inTree(s, i32[node + Entity.links])
  const after = inTree(s, i32[node + Entity.links + 1])
  const deadline = f64[(node + Entity.deadline) >> 1]
  assert(
    before.every(se => f64[(se + Entity.deadline) >> 1] <= deadline),
    'the fair tree is out of order',
  )
  assert(
    after.every(se => f64[(se + Entity.deadline) >> 1] >= deadline),
    'the fair tree is out of order',
  )
  return [...before, node, ...after]
}

/** [3] */
function checkSums(s: Scheduler, rq: number, queued: readonly number[]): void {
  const { i32, f64 } = s
  assert(i32[rq + ClassRq.taskCount] === queued.length, 'list and tree do not hold the tasks of the level')
  let weight = 0
  let sum = 0
  let size = 1
  for (const se of queued) {
    const w = i32[se + Entity.weight]
    weight += w
    const part = w * (f64[(se + Entity.vruntime) >> 1] - f64[(rq + ClassRq.base) >> 1])
    sum += part
    size += Math.abs(part)
  }
  assert(f64[(rq + ClassRq.weight) >> 1] === weight, 'the sum of weights is wrong')
  assert(Math.abs(f64[(rq + ClassRq.weightedSum) >> 1] - sum) < 1e-6 * size, 'the weighted sum is wrong')
}
