import { assert } from '../../src/arena/assert.ts'
import { listFirst, ListHead, listNext } from '../../src/arena/trees/list.ts'
import { Entity } from '../../src/sched/core/entity.ts'
import { stateOf } from '../../src/sched/ext/ext.ts'
import {
  CURRENT,
  DispatchQueue,
  ExtRq,
  HELD,
  LOCAL,
  NONE,
  OUT,
  PENDING,
  QUEUED,
} from '../../src/sched/ext/extlayout.ts'
import { EXT_MAJOR_PRIORITY } from '../../src/sched/core/priority.ts'
import { ClassRq, classRq } from '../../src/sched/core/runqueue.ts'
import type { Scheduler } from '../../src/sched/core/scheduler.ts'

/**
 * What holds for the ext class whenever no CPU is inside a switch, a wakeup or a dispatch. A part of
 * checkInvariants.
 *
 *   [1] an entity that is queued at this level is PENDING, HELD, QUEUED or LOCAL; a running one is CURRENT; any
 *       other is OUT
 *   [2] the lists of each run queue hold exactly the entities that say so, and these belong to that CPU
 *   [3] each dispatch queue holds exactly the entities whose `extQueue` names it
 */
export function checkExt(s: Scheduler): void {
  const { i32, entities, ext } = s
  const onQueue = new Map<number, number>()
  const pending = new Int32Array(s.cpus)
  const local = new Int32Array(s.cpus)
  for (let se = entities.after(i32, 0); se !== 0; se = entities.after(i32, se)) {
    const state = stateOf(s, se)
    const queue = i32[se + Entity.extQueue]
    const queued = i32[se + Entity.onRq] === 1
    if (i32[se + Entity.priority] >> 2 !== EXT_MAJOR_PRIORITY) {
      assert(state === OUT && queue === 0, 'a task of another class is on a queue of the ext class')
      continue
    }
    assert((state === QUEUED) === (queue !== 0), 'a task does not know which dispatch queue it is on')
    assert(queued === (state >= PENDING && state <= LOCAL), 'a queued task is in none of the four places') // [1]
    if (i32[se + Entity.onCpu] === 0) assert(state !== CURRENT, 'a task that runs nowhere is the current one')
    if (queue !== 0) onQueue.set(queue, (onQueue.get(queue) ?? 0) + 1)
    if (state === PENDING) pending[i32[se + Entity.cpu]]++
    if (state === LOCAL) local[i32[se + Entity.cpu]]++
    assert(state !== HELD || ext.state() !== NONE, 'a task is held by a policy that is not loaded')
  }
  for (let cpu = 0; cpu < s.cpus; cpu++) {
    const rq = classRq(s.queueOf(cpu), EXT_MAJOR_PRIORITY)
    assert(listed(s, rq, rq + ExtRq.local, LOCAL) === local[cpu], 'a local list has lost or gained a task') // [2]
    assert(
      listed(s, rq, rq + ExtRq.pending, PENDING) === pending[cpu],
      'a pending list has lost or gained a task',
    )
  }
  for (let number = 0; number < ext.plan.queueCount; number++) {
    const queue = ext.queueAt(number)
    const found = countQueue(s, queue)
    assert(found === (onQueue.get(queue) ?? 0), 'a dispatch queue has lost or gained a task') // [3]
    assert(i32[queue + DispatchQueue.count] === found, 'a dispatch queue miscounts its tasks')
  }
}

function listed(s: Scheduler, rq: number, head: number, state: number): number {
  const { i32 } = s
  if (i32[head + ListHead.list] === 0) return 0
  let count = 0
  for (let node = listFirst(i32, head); node !== 0; node = listNext(i32, head, node)) {
    const se = node - Entity.links
    assert(stateOf(s, se) === state, 'a task is on a list that it does not name')
    assert(
      i32[se + Entity.cpu] === i32[rq + ClassRq.cpu],
      'a task is on the list of a CPU that is not its own',
    )
    count++
  }
  return count
}

function countQueue(s: Scheduler, queue: number): number {
  let count = 0
  s.ext.queues.find(queue, () => {
    count++
    return false
  })
  return count
}
