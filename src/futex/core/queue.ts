import { assert } from '../../arena/assert.ts'
import { awaitChange, partDone } from '../../arena/sync/awaiting.ts'
import { listFirst, listNext, ListNode, listRemove } from '../../arena/trees/list.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import type { FutexContext } from './context.ts'
import { type Decision, MOVE, STOP, WAKE } from './decision.ts'
import { insertByPriority } from './order.ts'
import { updateTop, unblock, walkChain } from '../pi/pichain.ts'
import {
  Bucket,
  QUEUE_ENDED,
  Futex,
  isMoving,
  moverOf,
  movingBy,
  QUEUE_NONE,
  PI_LOCK,
  PI_NONE,
  QUEUE_RESTARTED,
  QUEUE_WOKEN,
  Waiter,
} from './records.ts'
import { signalLater } from './signal.ts'
import { wakeHere } from './sleephere.ts'
import { unlockFutex } from './table.ts'

/** The queue of one futex: waiters by priority (lower numbers first), then in order of arrival. */

/** Puts a waiter on the queue. The futex is locked. */
export function enqueue(context: FutexContext, futex: number, waiter: number): void {
  // The queue word first: repair relies on it if this thread dies between the two writes.
  Atomics.store(context.i32, waiter + Waiter.queue, futex)
  insertByPriority(context.i32, futex, waiter)
}

/**
 * Walks the queue of a locked futex. Afterwards the woken waiters are off the queue and in
 * `context.wakeQueue`. The moved ones are off the queue, MOVING, and linked through their `links` from the
 * returned pointer.
 */
export function walkQueue(context: FutexContext, futex: number, decision: Decision): number {
  const { i32 } = context
  const head = futex + Futex.waiters
  const bucket = i32[futex + Futex.bucket]
  let firstMoved = 0
  let lastMoved = 0
  for (let waiter = listFirst(i32, head); waiter !== 0; ) {
    const next = listNext(i32, head, waiter)
    const what = decision.decide(i32, waiter)
    if (what === STOP) break
    if (what === WAKE) {
      listRemove(i32, head, waiter)
      wakeLater(context, waiter, QUEUE_WOKEN)
      Atomics.sub(i32, bucket + Bucket.waiters, 1)
    } else if (what === MOVE) {
      Atomics.store(i32, waiter + Waiter.queue, movingBy(context.thread.id))
      listRemove(i32, head, waiter)
      Atomics.sub(i32, bucket + Bucket.waiters, 1)
      if (firstMoved === 0) firstMoved = waiter
      else i32[lastMoved + Waiter.links + ListNode.next] = waiter
      lastMoved = waiter
    }
    waiter = next
  }
  return firstMoved
}

/**
 * The thread that was moving the waiter is dead: the waiter is on no queue, and leaves as if it had been
 * woken, or to restart its call. False: it has moved on. Called by its sleeper, or by recovery, which then
 * signals the sleeper. Both may call it at the same time: the first of them becomes the mover, and only then
 * writes to the waiter, which the other may have freed already.
 */
export function endMove({ i32, thread }: FutexContext, waiter: number, moving: number): boolean {
  const at = waiter + Waiter.queue
  if (Atomics.compareExchange(i32, at, moving, movingBy(thread.id)) !== moving) return false
  for (let field = 0; field < ListNode.words; field++) i32[waiter + Waiter.links + field] = 0
  Atomics.store(i32, at, i32[waiter + Waiter.pi] === PI_NONE ? QUEUE_WOKEN : QUEUE_RESTARTED)
  return true
}

/** How a waiter leaves a queue, other than by itself. */
export type WaitEnd = typeof QUEUE_WOKEN | typeof QUEUE_ENDED | typeof QUEUE_RESTARTED

/** Decides the wait. The sleeper may free the waiter immediately after, so its words are read first. */
export function wakeLater(context: FutexContext, waiter: number, end: WaitEnd): void {
  const { i32 } = context
  signalLater(context, i32[waiter + Waiter.sleeper])
  Atomics.store(i32, waiter + Waiter.queue, end)
}

/** Signals every sleeper in the wake queue; wakes its tasks together. No futex lock is held. */
export function wakeAll(context: FutexContext): void {
  const { i32, wakeQueue, restarts } = context
  while (restarts.length > 0) wakeLater(context, restarts.pop() as number, QUEUE_RESTARTED)
  // A recovery that this thread makes while it wakes them signals other sleepers.
  const tasks = context.wokenTasks ?? []
  context.wokenTasks = null
  let count = 0
  for (let at = 0; at < wakeQueue.length; at += 2) {
    const signal = wakeQueue[at] + Waiter.signal
    const task = wakeQueue[at + 1]
    // The sleeper may have seen its outcome and left, and its slot may be in use again: then this is a
    // spurious wakeup, which every sleeper here tolerates.
    Atomics.store(i32, signal, 1)
    if (task !== 0) tasks[count++] = task
    else if (!wakeHere(context, wakeQueue[at])) Atomics.notify(i32, signal)
  }
  wakeQueue.length = 0
  if (count > 0) context.wakeTasks(tasks, count)
  context.wokenTasks = tasks
}

/** Whether the word `queue` of a waiter says that its wait is over. */
export function isDecided(queue: number): boolean {
  return queue === QUEUE_WOKEN || queue === QUEUE_ENDED || queue === QUEUE_RESTARTED
}

/**
 * The sleeper removes itself from the queue: timeout, kill or cancellation. True: it did. False: a wake, or
 * the end of its mapping, was first.
 *
 *   sleeper                                  requeuer
 *   -------                                  --------
 *   (A) reads queue: A
 *                                            lock A; X is MOVING; unlock A
 *   (B) locks A
 *   (C) reads queue again: not A, unlocks
 *       reads MOVING: waits, until the mover has finished or is dead
 *                                            lock B; queue = B; unlock B
 *       reads B, locks B, reads B: removes X
 *
 * The queue pointer leads to the lock and confirms it: it changes only under the lock that it points to. This
 * runs inside an RCU section, so that the memory locked at (B) is a futex, even if its last waiter has left
 * in the meantime.
 */
export function takeOff(context: FutexContext, waiter: number): boolean {
  const { i32, thread } = context
  // Most waiters are woken: these need no RCU section, because a decided waiter stays decided.
  if (isDecided(Atomics.load(i32, waiter + Waiter.queue))) return false
  context.enter()
  try {
    for (;;) {
      const futex = Atomics.load(i32, waiter + Waiter.queue) // (A)
      if (isDecided(futex)) return false
      assert(futex !== QUEUE_NONE, 'a waiter is removed once')
      if (isMoving(futex)) {
        if (!awaitChange(thread, i32, waiter + Waiter.queue, futex, moverOf(futex))) continue
        const ended = endMove(context, waiter, futex)
        partDone(thread)
        if (ended) return false
        continue
      }
      acquire(thread, futex + Futex.lock) // (B)
      if (Atomics.load(i32, waiter + Waiter.queue) !== futex) {
        release(thread, futex + Futex.lock) // (C)
        continue
      }
      const owns = i32[waiter + Waiter.pi] === PI_LOCK
      if (owns) unblock(context, waiter)
      Atomics.store(i32, waiter + Waiter.queue, QUEUE_NONE)
      listRemove(i32, futex + Futex.waiters, waiter)
      Atomics.sub(i32, i32[futex + Futex.bucket] + Bucket.waiters, 1)
      const changed = owns ? updateTop(context, futex) : 0
      unlockFutex(context, futex)
      if (changed !== 0) walkChain(context, changed)
      return true
    }
  } finally {
    context.leave()
  }
}
