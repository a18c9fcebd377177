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
 * Notifies those who wait at a condition. At most one of them is awake and without the mutex. The others move
 * on without being woken: to the mutex's own queue, where unlocking finds them; or, when this thread does not
 * know the mutex, to a second queue of the condition's.
 *
 *   the mutex                    they move to               how each comes to it
 *   ---------                    ------------               --------------------
 *   plain, known here            its parking queue          unlocking wakes the next, which competes
 *   robust or hand-off           the futex of its word      the same; who comes back says in the word that others wait (wakesNext)
 *   inherit, robust or not       the futex of its word      CMP_REQUEUE_PI: each lends its priority from there on, and unlocking gives it the lock
 *   any, not known here          the second queue           each who has got the mutex wakes the next; nobody lends
 *
 * The word of a mutex that keeps its own queue stands in the waiter, so whoever has used the mutex on this
 * thread knows it, also if it has never waited at the condition.
 *
 * Nobody may come to the second queue when the last who would wake the next has passed by:
 *
 *   notifier of W and X                       W, whose time is over
 *   -------------------                       ---------------------
 *   locks the condition's queue
 *   W is woken; X is off
 *   unlocks                                   finds that it was woken, locks the mutex
 *                                             wakes the next: there is none
 *   (A) X is on the second queue              is done
 *
 * X would sleep for ever. So W goes there as well, and (B) the first of those who are there is woken under
 * that queue's lock, after (A).
 */

/** In the bits of who waits at a condition, beside its TID: it has been notified. */
export const NOTIFIED: number = 0x8000_0000 | 0

/** Takes the first few off a condition's queue. */
class Notification implements Decision {
  notified = 0
  private readonly limit: number
  private readonly moves: boolean
  private readonly target: number
  private wakes: boolean

  /** `target`: only those who wait with a mutex in this buffer; 0: whoever waits. */
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

/** The queues of a condition: of those who wait, and of those who are notified and not woken yet. */
export interface ConditionQueues {
  readonly waiting: ParkingQueue
  readonly notified: ParkingQueue
}

/** A mutex whose waiters are on `queue`. */
export interface QueuedMutex extends ObjectWords {
  readonly queue: ParkingQueue
}

/**
 * How many were notified. `mutex`: the one that this thread believes they wait with. The caller holds no
 * queue's lock.
 */
export function notify(
  context: FutexContext,
  { i32, at }: ObjectWords,
  { waiting, notified }: ConditionQueues,
  mutex: QueuedMutex | null,
  limit: number,
): number {
  // EXTRA: the mutex's id, negated if it keeps its own queue. A hint, as it is read without the lock.
  const word = Atomics.load(i32, at + EXTRA) < 0 ? wordOf(context, waiting) : null
  const done = word === null ? 0 : notifyAtWord(context, { i32, at }, waiting, word, limit)
  return done === limit
    ? done
    : done + notifyQueued(context, { i32, at }, { waiting, notified }, mutex, limit - done)
}

/**
 * The word that the first who waits is to be moved to, as this thread knows it; null: it does not, or the
 * mutex has none.
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

/** Moves them to the word. How many; what is left is left for a reason that those who wait find out. */
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
    // Without room for the queue they are woken: a herd, but nobody is lost.
    if (!(full instanceof ArenaFullError)) throw full
  }
  return count
}

function clearWaiters(context: FutexContext, { i32, at }: ObjectWords, waiting: ParkingQueue): void {
  waiting.lock(context)
  if (waiting.isEmpty(context)) Atomics.and(i32, at, ~HAS_WAITERS)
  waiting.unlockQuietly(context)
}

/** Those who wait with a mutex that does not inherit. The queue is locked, and unlocked here. */
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
    // After they are there: who unlocks and sees HAS_WAITERS finds them. It was unlocked meanwhile, by one
    // who did not see it: one is woken.
    const before = Atomics.or(word.i32, index, FUTEX_WAITERS)
    if ((before & FUTEX_TID_MASK) === 0) walkQueue(context, futex, new WakeCount(1))
    unlockFutex(context, futex)
    context.leave()
  }
  wakeAll(context)
  return decision.notified
}

/** Those who are left, or whose mutex keeps no queue of its own that is known here. */
function notifyQueued(
  context: FutexContext,
  { i32, at }: ObjectWords,
  { waiting, notified }: ConditionQueues,
  mutex: QueuedMutex | null,
  limit: number,
): number {
  const mutexId = mutex === null ? 0 : mutex.queue.objectId(context)
  // Room for the other queue before anyone is taken off this one. Without it all are woken: a herd, but
  // nobody is lost.
  const spare = context.layout.futexes.tryAllocate(context.thread)
  waiting.lock(context)
  // Under the lock: before, the last of them may have left, and others have come with another mutex.
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
  // It was unlocked meanwhile, by one who saw nobody waiting.
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
