import { ListNode } from '../../arena/trees/list.ts'
import type { FutexContext } from '../core/context.ts'
import { EAGAIN, EFAULT, EINVAL } from '../core/errno.ts'
import type { RequeueDecision } from '../core/decision.ts'
import { enqueue, wakeAll, wakeLater, walkQueue } from '../core/queue.ts'
import { Bucket, QUEUE_ENDED, Waiter } from '../core/records.ts'
import type { FutexWord } from '../core/space.ts'
import { lockFutex, lockOrCreateFutex, slotFor, unlockFutex } from '../core/table.ts'

/**
 * Requeue: wakes some waiters of one word and moves others to the queue of another word. It never holds two
 * queue locks.
 *
 *   requeuer U: A to B            requeuer V: B to A            sleeper of X, times out
 *   ------------------            ------------------            -----------------------
 *   lock A                        lock B                        reads X.queue: A
 *   X: MOVING, off A              …                             waits for A's lock
 *   unlock A                      unlock B                      has it; X.queue is MOVING: unlocks, spins
 *   lock B                        lock A
 *   X on B; X.queue = B           …
 *   unlock B                      unlock A                      reads B, locks B, X.queue is B: removes X
 *
 * Each holds at most one lock at a time, so A and B need no order and there is no deadlock. MOVING lasts from
 * one lock to the next. Kernel code has no safepoints, so preemption is off in between: a sleeper that times
 * out spins only briefly.
 */
/**
 * FUTEX_REQUEUE, and FUTEX_CMP_REQUEUE when `expected` is given. Returns how many waiters were woken and
 * moved together, or an error, negated. Errors are checked in Linux's order.
 */
export function requeue(
  context: FutexContext,
  from: FutexWord,
  to: FutexWord,
  shared: boolean,
  wakeLimit: number,
  moveLimit: number,
  expected: number | undefined,
): number {
  const { i32 } = context
  if (wakeLimit < 0 || moveLimit < 0) return -EINVAL
  if (!from.isMapped(i32, shared) || !to.isMapped(i32, shared)) return -EFAULT
  const result = move(context, from, to, shared, wakeLimit, moveLimit, expected)
  wakeAll(context)
  return result
}

function move(
  context: FutexContext,
  from: FutexWord,
  to: FutexWord,
  shared: boolean,
  wakeLimit: number,
  moveLimit: number,
  expected: number | undefined,
): number {
  const { i32 } = context
  const fromOwner = shared ? from.mapped.backing : from.mapped.mapping
  const toOwner = shared ? to.mapped.backing : to.mapped.mapping
  const fromBucket = shared ? from.sharedBucket : from.privateBucket
  const toBucket = shared ? to.sharedBucket : to.privateBucket
  context.enter()
  try {
    const inPlace = fromOwner === toOwner && from.index === to.index
    const moves = !inPlace && moveLimit > 0
    let spare = 0
    let source = 0
    for (;;) {
      const fromHint = shared ? from.sharedHint : from.privateHint
      source = lockFutex(context, fromBucket, fromOwner, from.index, fromHint)
      // Without waiters there is no lock to compare under, and none is needed: the comparison is the whole
      // call.
      const matches = expected === undefined || Atomics.load(from.i32, from.index) === expected
      if (source === 0 || !matches) {
        if (source !== 0) unlockFutex(context, source)
        if (spare !== 0) context.layout.futexes.free(i32, spare)
        return matches ? 0 : -EAGAIN
      }
      // The slot for the other queue comes before any waiter leaves this one: after that nothing can fail.
      if (moves && spare === 0) spare = context.layout.futexes.tryAllocate(context.thread)
      if (!moves || spare !== 0) break
      // No lock is held while a slot becomes free, so the call begins again with it.
      unlockFutex(context, source)
      spare = slotFor(context, true)
    }
    const decision = context.requeueDecision.begin(wakeLimit, moveLimit, inPlace)
    const { seen, error, moving } = takeFrom(context, source, decision)
    if (moving === 0) {
      if (spare !== 0) context.layout.futexes.free(i32, spare)
      return error !== 0 ? error : seen
    }
    let waiter = moving
    const hint = shared ? to.sharedHint : to.privateHint
    const target = lockOrCreateFutex(context, toBucket, toOwner, to.index, hint, spare)
    if (target !== spare) context.layout.futexes.free(i32, spare)
    const mapped = to.isMapped(i32, shared)
    while (waiter !== 0) {
      const next = i32[waiter + Waiter.links + ListNode.next]
      i32[waiter + Waiter.links + ListNode.next] = 0
      if (mapped) {
        Atomics.add(i32, toBucket + Bucket.waiters, 1)
        enqueue(context, target, waiter)
      } else {
        wakeLater(context, waiter, QUEUE_ENDED)
      }
      waiter = next
    }
    unlockFutex(context, target)
    return error !== 0 ? error : seen
  } finally {
    context.leave()
  }
}

function takeFrom(
  context: FutexContext,
  source: number,
  decision: RequeueDecision,
): { seen: number; error: number; moving: number } {
  const moving = walkQueue(context, source, decision)
  unlockFutex(context, source)
  return { seen: decision.seen, error: decision.error, moving }
}
