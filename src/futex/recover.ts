import { initList, ListNode } from '../arena/list.ts'
import { breakLock, nudgeLock, release } from '../arena/spinlock.ts'
import type { FutexContext } from './context.ts'
import { enqueue, takeOff, wakeAll, wakeLater } from './queue.ts'
import { ALIVE, Bucket, ENDED, Futex, movingBy, Waiter, WOKEN } from './records.ts'
import { unlockFutex } from './table.ts'

/**
 * After a thread has died, at whatever step of whatever call: its locks are broken and what they guarded is rebuilt, its
 * own waits leave their queues, and whoever it was about to wake is woken. Runs on any other thread; others may make calls
 * meanwhile.
 *
 *   structure           what is always true of it          rebuilt from
 *   chain of a bucket   a futex is ALIVE or DEAD            the futexes that name the bucket and are ALIVE
 *   queue of a futex    a waiter's queue word               the waiters whose word names the futex, by priority and order
 *   waiters of bucket   never too low                       left as it is: one too many costs a look
 *
 * A waiter that the dead thread was moving is woken: a wakeup for nothing is allowed, a sleeper that nobody will wake is not.
 */
export function recoverFutexes(context: FutexContext, dead: number): void {
  const { i32, layout } = context
  context.rcu.offline(i32, dead)
  context.enter()
  for (let at = 0; at < layout.buckets; at++)
    repairBucket(context, layout.table.start + at * Bucket.words, dead)
  for (let at = 0; at < layout.futexes.capacity; at++) {
    const futex = layout.futexes.pointerAt(at)
    if (layout.futexes.isAllocated(i32, futex)) repairQueue(context, futex, dead)
  }
  for (let at = 0; at < layout.waiters.capacity; at++) {
    const waiter = layout.waiters.pointerAt(at)
    if (layout.waiters.isAllocated(i32, waiter)) settleWaiter(context, waiter, dead)
  }
  context.leave()
  wakeAll(context)
  layout.waiters.reclaim(i32, dead)
  layout.futexes.reclaim(i32, dead)
  context.rcu.adopt(context.thread, dead)
}

/** Puts the chain together again, from the futexes that belong on it. */
function repairBucket(context: FutexContext, bucket: number, dead: number): void {
  const { i32, thread, layout } = context
  const lock = bucket + Bucket.lock
  if (!breakLock(thread, lock, dead)) {
    nudgeLock(i32, lock)
    return
  }
  let first = 0
  for (let at = 0; at < layout.futexes.capacity; at++) {
    const futex = layout.futexes.pointerAt(at)
    if (!layout.futexes.isAllocated(i32, futex) || i32[futex + Futex.bucket] !== bucket) continue
    // One that the dead thread had made and not linked yet is its own: reclaim frees it.
    if (Atomics.load(i32, futex + Futex.state) !== ALIVE || !isLinked(i32, bucket, futex)) continue
    i32[futex + Futex.chain] = first
    first = futex
  }
  i32[bucket + Bucket.first] = first
  release(thread, lock)
}

function isLinked(i32: Int32Array, bucket: number, wanted: number): boolean {
  for (let futex = i32[bucket + Bucket.first]; futex !== 0; futex = i32[futex + Futex.chain]) {
    if (futex === wanted) return true
  }
  return false
}

function repairQueue(context: FutexContext, futex: number, dead: number): void {
  const { i32, thread, layout } = context
  const lock = futex + Futex.lock
  if (!breakLock(thread, lock, dead)) {
    nudgeLock(i32, lock)
    return
  }
  const waiters: number[] = []
  for (let at = 0; at < layout.waiters.capacity; at++) {
    const waiter = layout.waiters.pointerAt(at)
    if (layout.waiters.isAllocated(i32, waiter) && Atomics.load(i32, waiter + Waiter.queue) === futex)
      waiters.push(waiter)
  }
  waiters.sort((a, b) => (i32[a + Waiter.order] - i32[b + Waiter.order]) | 0)
  initList(i32, futex + Futex.waiters)
  for (const waiter of waiters) {
    for (let field = 0; field < ListNode.words; field++) i32[waiter + Waiter.links + field] = 0
    enqueue(context, futex, waiter)
  }
  unlockFutex(context, futex)
}

function settleWaiter(context: FutexContext, waiter: number, dead: number): void {
  const { i32, layout } = context
  const queue = Atomics.load(i32, waiter + Waiter.queue)
  const own = i32[waiter + Waiter.thread] === dead
  if (queue === movingBy(dead)) {
    for (let field = 0; field < ListNode.words; field++) i32[waiter + Waiter.links + field] = 0
    wakeLater(context, waiter, WOKEN)
  } else if (own && queue > 0) {
    takeOff(context, waiter)
  } else if (queue === WOKEN || queue === ENDED) {
    // The dead thread may have been the one to signal it. Once more does no harm.
    wakeLater(context, waiter, queue)
  }
  if (own) layout.waiters.free(i32, waiter)
}
