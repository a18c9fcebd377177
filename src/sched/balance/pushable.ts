import { assert } from '../../arena/assert.ts'
import { listFirst, listIsEmpty, listNext, ListNode, listPush, listRemove } from '../../arena/trees/list.ts'
import { Entity, POLICY_BOUND, POLICY_PUSHABLE } from '../core/entity.ts'
import { EXT_MAJOR_PRIORITY, MAJOR_LEVELS } from '../core/priority.ts'
import { bestReady, clearReady, isReady, setReady } from '../classes/readymask.ts'
import { pushList, RunQueue } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'

/**
 * The tasks of a run queue that another CPU could take: queued, and allowed on more than one CPU. They are on
 * a separate list for each level, so that a stealing CPU finds the best one without passing a hundred
 * thousand that cannot move. A started task is bound to its CPU, and is never on this list. The run queue's
 * lock is held in all functions.
 */

/** Sets the entity's bit PUSHABLE from its mask. Called after each change of either. */
export function notePushable(s: Scheduler, se: number): void {
  const { i32 } = s
  const low = i32[se + Entity.affinityMask]
  const high = i32[se + Entity.affinityMask + 1]
  const several = (low !== 0 && high !== 0) || (low & (low - 1)) !== 0 || (high & (high - 1)) !== 0
  const policy = i32[se + Entity.policy] & ~POLICY_PUSHABLE
  i32[se + Entity.policy] = several && (policy & POLICY_BOUND) === 0 ? policy | POLICY_PUSHABLE : policy
}

/** The entity has been queued here. */
export function addPushable(s: Scheduler, queue: number, se: number): void {
  const { i32 } = s
  if ((i32[se + Entity.policy] & POLICY_PUSHABLE) === 0) return
  const level = i32[se + Entity.priority] >> 2
  // A policy places its own tasks.
  if (level === EXT_MAJOR_PRIORITY && s.ext.isActive()) return
  listPush(i32, pushList(queue, level), se + Entity.pushLinks)
  setReady(i32, queue + RunQueue.pushMask, level)
  i32[queue + RunQueue.pushCount]++
}

/** The entity leaves this queue, or is no longer pushable. Does nothing if it is not on the list. */
export function removePushable(s: Scheduler, queue: number, se: number): void {
  const { i32 } = s
  if (i32[se + Entity.pushLinks + ListNode.list] === 0) return
  const level = i32[se + Entity.priority] >> 2
  const list = pushList(queue, level)
  listRemove(i32, list, se + Entity.pushLinks)
  if (listIsEmpty(i32, list)) clearReady(i32, queue + RunQueue.pushMask, level)
  i32[queue + RunQueue.pushCount]--
  assert(i32[queue + RunQueue.pushCount] >= 0, 'pushable tasks are counted')
}

/** The major priority of the best pushable task, as a priority with minor 0. There must be one. */
export function bestPushable(s: Scheduler, queue: number): number {
  return bestReady(s.i32, queue + RunQueue.pushMask) << 2
}

/**
 * The best task here that may run on `cpu` and is completely off its last one, or 0. Visits only pushable
 * tasks. An entity whose onCpu is still 1 was put back by a switch that has not ended: its CPU will clear the
 * word, so no other CPU may set it yet.
 */
export function findPushable(s: Scheduler, queue: number, cpu: number): number {
  const { i32 } = s
  const half = cpu >> 5
  const bit = 1 << (cpu & 31)
  for (let level = 0; level < MAJOR_LEVELS; level++) {
    if (!isReady(i32, queue + RunQueue.pushMask, level)) continue
    const list = pushList(queue, level)
    let best = 0
    for (let node = listFirst(i32, list); node !== 0; node = listNext(i32, list, node)) {
      const se = node - Entity.pushLinks
      if ((i32[se + Entity.affinityMask + half] & bit) === 0) continue
      if (Atomics.load(i32, se + Entity.onCpu) !== 0) continue
      if (best === 0 || i32[se + Entity.priority] < i32[best + Entity.priority]) best = se
      // No other task of this level can be better: the search need not pass thousands of equals.
      if (i32[best + Entity.priority] === level << 2) return best
    }
    if (best !== 0) return best
  }
  return 0
}
