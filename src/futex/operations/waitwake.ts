import { ListNode } from '../../arena/trees/list.ts'
import type { FutexContext } from '../core/context.ts'
import { EAGAIN, EFAULT, EINVAL } from '../core/errno.ts'
import { enqueue, wakeAll, walkQueue } from '../core/queue.ts'
import { Bucket, HEAP_HANDOVER, QUEUE_NONE, Waiter } from '../core/records.ts'
import type { FutexWord } from '../core/space.ts'
import type { LockOwner } from '../core/owner.ts'
import { bucketOf, lockFutex, lockOrCreateFutex, unlockFutex } from '../core/table.ts'

/**
 * Wait and wake. The wakeup that must not be lost: a waiter reads the word, and before it is on the queue the
 * waker changes the word and finds the queue empty.
 *
 *   waiter                                   waker
 *   ------                                   -----
 *   (A) waiters++ (of the bucket)
 *   locks the queue
 *   (B) word is the expected value           (C) changes the word
 *   queues itself                            (D) waiters is 0: returns
 *   unlocks, sleeps                              else locks the queue, wakes, unlocks
 *
 * (A) before (B), and (C) before (D): if the waiter does not see the change, the waker sees the waiter, and
 * waits for the lock until it is queued. Without the count every wake would have to look up the futex.
 */

export const MATCH_ANY = -1

/**
 * Numbers the waits of all threads. By these numbers a repaired queue is put in order, and one wait is
 * distinguished from the waiter's next.
 */
export function nextOrder(context: FutexContext): number {
  return Atomics.add(context.i32, context.layout.counter, 1)
}

export interface WaiterOptions {
  readonly kind: number
  readonly task: number
  readonly priority: number
  /** The waiting owner, for the calls about locks that have owners. */
  readonly owner?: LockOwner | undefined
}

/**
 * Allocates and fills a waiter; `sleeper` 0 means the waiter itself. Throws ArenaFullError. The words that
 * recovery reads in all waiters, also in one under construction, are stored atomically.
 */
export function makeWaiter(
  context: FutexContext,
  bitset: number,
  options: WaiterOptions,
  sleeper = 0,
): number {
  const { i32, thread, layout } = context
  const waiter = layout.waiters.allocate(thread)
  // The record is on a list still if a thread died as it took the record off, between its two steps.
  i32[waiter + Waiter.links + ListNode.list] = 0
  i32[waiter + Waiter.bitset] = bitset
  i32[waiter + Waiter.priority] = options.priority
  i32[waiter + Waiter.order] = nextOrder(context)
  Atomics.store(i32, waiter + Waiter.sleeper, sleeper === 0 ? waiter : sleeper)
  Atomics.store(i32, waiter + Waiter.kind, options.kind)
  Atomics.store(i32, waiter + Waiter.task, options.task)
  i32[waiter + Waiter.pi] = 0
  Atomics.store(i32, waiter + Waiter.thread, thread.id)
  i32[waiter + Waiter.lockOwner] = options.owner === undefined ? 0 : options.owner.record
  Atomics.store(i32, waiter + Waiter.called, 0)
  Atomics.store(i32, waiter + Waiter.signal, 0)
  Atomics.store(i32, waiter + Waiter.queue, QUEUE_NONE)
  return waiter
}

export function freeWaiters(context: FutexContext, waiters: readonly number[]): void {
  for (const waiter of waiters) freeWaiter(context, waiter)
}

/**
 * The waiter leaves without its sleeper: this thread frees the block that the waiter sent or received
 * (`context.orphanedBlocks`).
 */
export function giveUpHandover({ i32, orphanedBlocks }: FutexContext, waiter: number): void {
  if (i32[waiter + Waiter.handover] === HEAP_HANDOVER && i32[waiter + Waiter.handover + 1] > 0)
    orphanedBlocks.push(i32[waiter + Waiter.handover + 1])
}

/** The block of its handover, if any, belongs to another by now. */
export function freeWaiter({ i32, layout }: FutexContext, waiter: number): void {
  i32[waiter + Waiter.handover] = 0
  layout.waiters.free(i32, waiter)
}

/**
 * The first half of a wait. Returns 0, and the waiter is on the queue of the word; or an error, negated, and
 * nothing has changed. The caller has read the word once without the lock.
 */
export function queueWaiter(
  context: FutexContext,
  word: FutexWord,
  shared: boolean,
  expected: number,
  waiter: number,
): number {
  const { i32 } = context
  const bucket = shared ? word.sharedBucket : word.privateBucket
  const owner = shared ? word.mapped.backing : word.mapped.mapping
  Atomics.add(i32, bucket + Bucket.waiters, 1) // (A)
  let queued = false
  context.enter()
  try {
    const futex = lockOrCreateFutex(
      context,
      bucket,
      owner,
      word.index,
      shared ? word.sharedHint : word.privateHint,
    )
    let error = 0
    if (!word.isMapped(i32, shared)) error = -EFAULT
    else if (Atomics.load(word.i32, word.index) !== expected)
      error = -EAGAIN // (B)
    else {
      enqueue(context, futex, waiter)
      queued = true
      const handle = context.layout.futexes.handleOf(i32, futex)
      if (shared) word.sharedHint = handle
      else word.privateHint = handle
    }
    unlockFutex(context, futex)
    return error
  } finally {
    if (!queued) Atomics.sub(i32, bucket + Bucket.waiters, 1)
    context.leave()
  }
}

/**
 * Creates a waiter and queues it. Returns the waiter or an error, negated, or throws ArenaFullError; on
 * failure nothing has changed.
 */
export function queueNewWaiter(
  context: FutexContext,
  word: FutexWord,
  shared: boolean,
  expected: number,
  bitset: number,
  caller: WaiterOptions,
  sleeper = 0,
): number {
  const waiter = makeWaiter(context, bitset, caller, sleeper)
  let error = -1
  try {
    error = queueWaiter(context, word, shared, expected, waiter)
  } finally {
    if (error !== 0) freeWaiters(context, [waiter])
  }
  return error === 0 ? waiter : error
}

/** FUTEX_WAKE and FUTEX_WAKE_BITSET. Returns how many waiters were woken, or an error, negated. */
export function wake(
  context: FutexContext,
  word: FutexWord,
  shared: boolean,
  limit: number,
  bitset: number,
): number {
  if (bitset === 0) return -EINVAL
  const { i32 } = context
  if (!word.isMapped(i32, shared)) return -EFAULT
  const bucket = shared ? word.sharedBucket : word.privateBucket
  if (Atomics.load(i32, bucket + Bucket.waiters) === 0) return 0 // (D)
  const result = wakeQueued(context, word, shared, limit, bitset)
  wakeAll(context)
  return result
}

/** Walks the queue of a wake. The woken waiters are in the wake queue. */
export function wakeQueued(
  context: FutexContext,
  word: FutexWord,
  shared: boolean,
  limit: number,
  bitset: number,
): number {
  const bucket = shared ? word.sharedBucket : word.privateBucket
  const owner = shared ? word.mapped.backing : word.mapped.mapping
  const hint = shared ? word.sharedHint : word.privateHint
  return wakeAt(context, bucket, owner, word.index, hint, limit, bitset)
}

/** As wakeQueued, for a word known only by its key. */
export function wakeKey(
  context: FutexContext,
  owner: number,
  index: number,
  limit: number,
  bitset: number,
): number {
  const bucket = bucketOf(context, owner, index)
  if (Atomics.load(context.i32, bucket + Bucket.waiters) === 0) return 0
  return wakeAt(context, bucket, owner, index, 0, limit, bitset)
}

function wakeAt(
  context: FutexContext,
  bucket: number,
  owner: number,
  index: number,
  hint: number,
  limit: number,
  bitset: number,
): number {
  context.enter()
  try {
    const futex = lockFutex(context, bucket, owner, index, hint)
    if (futex === 0) return 0
    const decision = context.wakeDecision.begin(limit, bitset)
    walkQueue(context, futex, decision)
    unlockFutex(context, futex)
    return decision.error !== 0 ? decision.error : decision.woken
  } finally {
    context.leave()
  }
}
