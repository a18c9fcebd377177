import { assert } from '../../arena/assert.ts'
import { ListHead, ListNode } from '../../arena/trees/list.ts'
import { Entity, POLICY_PUSHABLE } from './entity.ts'
import { isBestReady } from '../classes/readymask.ts'
import { ClassRq, RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'

const { next, prev: before, list } = ListNode

/**
 * The most frequent switch, in one function: a FIFO task yields to the next task of its own sub-queue. Pick,
 * set-next and put-previous together rotate that list: no count, no mask and no published word changes. It
 * does what the three operations of fifo.ts do, in their order.
 *
 * Returns the entity that is the current one now, or 0: the caller takes the slow path. The run queue is
 * locked.
 */
export function rotateFifo(s: Scheduler, queue: number, prev: number): number {
  const { i32 } = s
  const rq = i32[prev + Entity.rq]
  const priority = i32[prev + Entity.priority]
  const minor = priority & 3
  if (!isBestReady(i32, queue + RunQueue.readyMask, priority >> 2)) return 0
  // Its sub-queue is the best of the level.
  if ((i32[rq + ClassRq.subqueueMask] & ((2 << minor) - 1)) !== 1 << minor) return 0
  const head = rq + ClassRq.subqueues + minor * ListHead.words
  const first = i32[head + next]
  const se = first - Entity.links
  // Tasks that another CPU could take are on a second list.
  if (((i32[prev + Entity.policy] | i32[se + Entity.policy]) & POLICY_PUSHABLE) !== 0) return 0

  const last = prev + Entity.links
  assert(
    i32[first + list] === head && i32[last + list] === 0,
    'the next entity is queued here, the old one nowhere',
  )
  // set-next: out of the queue.
  const second = i32[first + next]
  i32[first + list] = 0
  const tail = second === head ? head : i32[head + before]
  i32[head + next] = second
  i32[second + before] = head
  i32[queue + RunQueue.current] = se
  // put-previous: at the tail. Its epoch is still the head's: no FIFO list is ever spliced.
  i32[last + list] = head
  i32[last + next] = head
  i32[last + before] = tail
  i32[tail + next] = last
  i32[head + before] = last
  return se
}
