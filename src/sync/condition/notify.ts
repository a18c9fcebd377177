import { ArenaFullError } from '../../arena/memory/arena.ts'
import { ListNode } from '../../arena/trees/list.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import { type Decision, MOVE, STOP, WAKE } from '../../futex/core/decision.ts'
import { FUTEX_TID_MASK, FUTEX_WAITERS } from '../../futex/core/owner.ts'
import { moveToLock } from '../../futex/pi/pirequeue.ts'
import { enqueue, wakeAll, walkQueue } from '../../futex/core/queue.ts'
import { Bucket, PI_REQUEUE, Waiter } from '../../futex/core/records.ts'
import type { FutexWord } from '../../futex/core/space.ts'
import { lockOrCreateFutex, unlockFutex } from '../../futex/core/table.ts'
import { TID_MASK } from '../mutex/parkinglock.ts'
import { WakeCount } from '../wait/wakecount.ts'
import { EXTRA, type ObjectWords, HAS_WAITERS } from '../wait/objectwords.ts'
import type { ParkingQueue } from '../wait/queue.ts'

/**
 * Notifies the waiters of a condition. At most one of them is awake without the mutex. The others move
 * without a wakeup: to the queue of the mutex, where the unlocker finds them; or, when this thread does not
 * know the mutex, to a second queue of the condition.
 *
 *   the mutex               they move to           how each gets the mutex
 *   ---------               ------------           -----------------------
 *   plain, known here       its parking queue      the unlocker wakes the next, which competes
 *   robust or hand-off      the futex of its word  the same; a waiter that has relocked the mutex sets the
 *                                                  flag for the next (relocked)
 *   inherit, robust or not  the futex of its word  CMP_REQUEUE_PI: each lends its priority from there on,
 *                                                  and the unlocker gives it the lock
 *   any, not known here     the second queue       each that has relocked the mutex wakes the next; none
 *                                                  lends its priority
 *
 * The waiter record names the word of the mutex, so a thread that has used the mutex finds it, also if it has
 * never waited at the condition.
 *
 * A waiter must not join the second queue after the last waiter that would wake it has left:
 *
 *   notifier of W and X                       W, whose time is over
 *   -------------------                       ---------------------
 *   locks the condition's queue
 *   wakes W; removes X
 *   unlocks                                   finds that it was woken, locks the mutex
 *                                             wakes the next on the second queue: it is empty
 *   (A) X is on the second queue              is done
 *
 * X would sleep for ever. So W moves to the second queue as well, and (B) the notifier wakes the first waiter
 * there under that queue's lock, after (A).
 */

/** In the bits of a condition's waiter, beside its TID: it was notified. */
export const NOTIFIED: number = 0x8000_0000 | 0

/** Removes the first few waiters from a condition's queue. */
class Notification implements Decision {
  notified = 0
  private readonly limit: number
  private readonly moves: boolean
  private readonly target: number
  private wakes: boolean

  /** `target`: only waiters whose mutex is in this buffer; 0: all waiters. */
  constructor(limit: number, wakes: boolean, moves: boolean, target = 0) {
    this.limit = limit
    this.wakes = wakes
    this.moves = moves
    this.target = target
  }

  decide(i32: Int32Array, waiter: number): typeof STOP | typeof WAKE | typeof MOVE {
    if (this.notified === this.limit) return STOP
    if (this.target !== 0 && i32[waiter + Waiter.target] !== this.target) return STOP
    this.notified++
    i32[waiter + Waiter.bitset] |= NOTIFIED
    if (this.moves && !this.wakes) return MOVE
    this.wakes = false
    return WAKE
  }
}

/** The queues of a condition: its waiters, and those that are notified and not woken yet. */
export interface ConditionQueues {
  readonly waiting: ParkingQueue
  readonly notified: ParkingQueue
}

/** A plain mutex, whose waiters are on `queue`. */
export interface QueuedMutex extends ObjectWords {
  readonly queue: ParkingQueue
}

/**
 * Returns how many were notified. `mutex`: the one that this thread last used here. The caller holds no
 * queue's lock.
 */
export function notify(
  context: FutexContext,
  { i32, at }: ObjectWords,
  { waiting, notified }: ConditionQueues,
  mutex: QueuedMutex | null,
  limit: number,
): number {
  // EXTRA: the mutex's id, negated if it waits at a word. Only a hint, because it is read without the lock.
  const word = Atomics.load(i32, at + EXTRA) < 0 ? wordOf(context, waiting) : null
  const done = word === null ? 0 : notifyAtWord(context, { i32, at }, waiting, word, limit)
  return done === limit
    ? done
    : done + notifyQueued(context, { i32, at }, { waiting, notified }, mutex, limit - done)
}

/**
 * The word to which the first waiter may be moved, as this thread sees it; null: the thread or the mutex has
 * none.
 */
function wordOf(context: FutexContext, waiting: ParkingQueue): FutexWord | null {
  const { i32, buffers } = context
  if (!waiting.lockIfWaiting(context)) return null
  const first = waiting.first(context)
  const target = first === 0 ? 0 : i32[first + Waiter.target]
  const index = first === 0 ? 0 : i32[first + Waiter.targetIndex]
  waiting.unlockQuietly(context)
  const mapped = target === 0 ? undefined : buffers.get(target)
  return mapped?.isMapped(i32, true) ? mapped.word(context, index) : null
}

/** Moves the waiters to the word. Returns how many; for those that are left see notifyQueued. */
function notifyAtWord(
  context: FutexContext,
  place: ObjectWords,
  waiting: ParkingQueue,
  word: FutexWord,
  limit: number,
): number {
  const { i32 } = context
  waiting.lock(context)
  const first = waiting.first(context)
  const inherits = first !== 0 && i32[first + Waiter.pi] === PI_REQUEUE
  const done = first === 0 || inherits ? 0 : moveToWord(context, place, waiting, word, limit)
  if (first === 0 || inherits) waiting.unlockQuietly(context)
  if (!inherits) return done
  let count = 0
  try {
    const moveLimit = Math.min(limit - 1, 0x7fff_fffe)
    ;({ count } = moveToLock(context, waiting.key(context), word, true, moveLimit))
    clearWaiters(context, place, waiting)
  } catch (full) {
    // Without memory for the queue they are woken: a thundering herd, but no notification is lost.
    if (!(full instanceof ArenaFullError)) throw full
  }
  return count
}

function clearWaiters(context: FutexContext, { i32, at }: ObjectWords, waiting: ParkingQueue): void {
  waiting.lock(context)
  if (waiting.isEmpty(context)) Atomics.and(i32, at, ~HAS_WAITERS)
  waiting.unlockQuietly(context)
}

/** For waiters whose mutex does not inherit. The queue is locked, and unlocked here. */
function moveToWord(
  context: FutexContext,
  { i32, at }: ObjectWords,
  waiting: ParkingQueue,
  word: FutexWord,
  limit: number,
): number {
  const { layout, thread, i32: arena } = context
  const spare = layout.futexes.tryAllocate(thread)
  const isFree = (Atomics.load(word.i32, word.index) & FUTEX_TID_MASK) === 0
  const decision = new Notification(limit, isFree, spare !== 0, word.mapped.backing)
  const moved = waiting.walk(context, decision)
  if (waiting.isEmpty(context)) Atomics.and(i32, at, ~HAS_WAITERS)
  waiting.unlockQuietly(context)
  if (moved === 0) {
    if (spare !== 0) layout.futexes.free(arena, spare)
  } else {
    context.enter()
    const { sharedBucket, sharedHint, mapped, index } = word
    const futex = lockOrCreateFutex(context, sharedBucket, mapped.backing, index, sharedHint, spare)
    if (futex !== spare) layout.futexes.free(arena, spare)
    for (let waiter = moved; waiter !== 0; ) {
      const next = arena[waiter + Waiter.links + ListNode.next]
      arena[waiter + Waiter.links + ListNode.next] = 0
      Atomics.add(arena, sharedBucket + Bucket.waiters, 1)
      enqueue(context, futex, waiter)
      waiter = next
    }
    // After they are queued, so that an unlocker that sees the flag finds them. If the mutex was unlocked
    // before the flag was set, one waiter is woken here.
    const before = Atomics.or(word.i32, index, FUTEX_WAITERS)
    if ((before & FUTEX_TID_MASK) === 0) walkQueue(context, futex, new WakeCount(1))
    unlockFutex(context, futex)
    context.leave()
  }
  wakeAll(context)
  return decision.notified
}

/** For the waiters that are left, and those whose mutex is plain or not known here. */
function notifyQueued(
  context: FutexContext,
  { i32, at }: ObjectWords,
  { waiting, notified }: ConditionQueues,
  mutex: QueuedMutex | null,
  limit: number,
): number {
  const mutexId = mutex === null ? 0 : mutex.queue.objectId(context)
  // Memory for the other queue, before any waiter is removed from this one. Without it all are woken: a
  // thundering herd, but no notification is lost.
  const spare = context.layout.futexes.tryAllocate(context.thread)
  waiting.lock(context)
  // Under the lock: before, the waiters may have left, and others may have come with another mutex.
  const known = mutex !== null && Atomics.load(i32, at + EXTRA) === mutexId ? mutex : null
  const wakes = known === null ? limit === 1 : isFree(known)
  const decision = new Notification(limit, wakes, spare !== 0)
  const moved = waiting.walk(context, decision)
  if (waiting.isEmpty(context)) Atomics.and(i32, at, ~HAS_WAITERS)
  waiting.unlockQuietly(context)
  if (moved === 0) {
    if (spare !== 0) context.layout.futexes.free(context.i32, spare)
  } else if (known !== null) moveToMutex(context, known, moved, spare)
  else moveToNotified(context, notified, moved, spare)
  wakeAll(context)
  return decision.notified
}

function isFree({ i32, at }: ObjectWords): boolean {
  return (Atomics.load(i32, at) & TID_MASK) === 0
}

function moveToMutex(
  context: FutexContext,
  { i32, at, queue }: QueuedMutex,
  moved: number,
  spare: number,
): void {
  queue.lock(context, spare)
  queue.addMoved(context, moved)
  const before = Atomics.or(i32, at, HAS_WAITERS)
  // The mutex was unlocked before the flag was set: one waiter is woken here.
  if ((before & TID_MASK) === 0) queue.walk(context, new WakeCount(1))
  if (queue.isEmpty(context)) Atomics.and(i32, at, ~HAS_WAITERS)
  queue.unlockQuietly(context)
}

function moveToNotified(context: FutexContext, notified: ParkingQueue, moved: number, spare: number): void {
  notified.lock(context, spare)
  notified.addMoved(context, moved) // (A)
  notified.walk(context, new WakeCount(1)) // (B)
  notified.unlockQuietly(context)
}
