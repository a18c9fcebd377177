import { assert } from '../../arena/assert.ts'
import { listFirst, listNext, listRemove } from '../../arena/trees/list.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import type { FutexContext } from '../core/context.ts'
import { EAGAIN, EBUSY, EDEADLK, EFAULT, EINVAL } from '../core/errno.ts'
import { LOCKED } from './pending.ts'
import { awaitExit, idleOwner, lockAtomic, type PreparedLock, queueForLock } from './pi.ts'
import { EAGAIN_NOW, updateTop, topWaiter, unblock, walkChain } from './pichain.ts'
import { enqueue, wakeAll, wakeLater } from '../core/queue.ts'
import { ALIVE, Bucket, Futex, Owner, PI_LOCK, PI_REQUEUE, Waiter, QUEUE_WOKEN } from '../core/records.ts'
import type { FutexWord } from '../core/space.ts'
import { lockFutex, lockOrCreateFutex, unlockFutexUnlessDead } from '../core/table.ts'
import {
  freeWaiters,
  makeWaiter,
  MATCH_ANY,
  queueWaiter,
  type WaiterOptions,
} from '../operations/waitwake.ts'

/**
 * WAIT_REQUEUE_PI and CMP_REQUEUE_PI: condition variables over locks with priority inheritance. A waiter at
 * the condition names its lock. The signaller gives the lock to the first waiter if it is free, and moves the
 * others to the lock's queue, where each unlock gives it to the next. No waiter wakes up only to wait again.
 *
 * Both queues are locked together here, the lower address first: the state of the lock (is it free? which
 * owner has it?) decides about the waiters at the condition, and an error leaves them there. No other code
 * holds two queue locks, so the order between two of these calls is enough. The chain beyond the lock's owner
 * is walked without these locks.
 */

/** WAIT_REQUEUE_PI: a wait at `word` for the lock `lock`, or an error, negated. */
export function waitRequeuePi(
  context: FutexContext,
  caller: WaiterOptions,
  word: FutexWord,
  lock: FutexWord,
  shared: boolean,
  expected: number,
  deadline: number,
): number | PreparedLock {
  const owner = idleOwner(caller)
  const { i32 } = context
  if (!word.isMapped(i32, shared) || !lock.isMapped(i32, shared)) return -EFAULT
  if (Atomics.load(word.i32, word.index) !== expected) return -EAGAIN
  if (sameKey(word, lock, shared)) return -EINVAL
  const waiter = makeWaiter(context, MATCH_ANY, caller)
  i32[waiter + Waiter.pi] = PI_REQUEUE
  i32[waiter + Waiter.lockOwner] = owner.record
  i32[waiter + Waiter.target] = keyOf(lock, shared)
  i32[waiter + Waiter.targetIndex] = lock.index
  let error: number
  try {
    error = queueWaiter(context, word, shared, expected, waiter)
  } catch (full) {
    freeWaiters(context, [waiter])
    throw full
  }
  if (error !== 0) {
    freeWaiters(context, [waiter])
    return error
  }
  owner.waiting = true
  return {
    waiters: [waiter],
    deadline,
    vector: false,
    lock: { word: lock, shared, caller, requeued: true },
  }
}

function keyOf(word: FutexWord, shared: boolean): number {
  return shared ? word.mapped.backing : word.mapped.mapping
}

function sameKey(one: FutexWord, other: FutexWord, shared: boolean): boolean {
  return keyOf(one, shared) === keyOf(other, shared) && one.index === other.index
}

/**
 * CMP_REQUEUE_PI. Returns how many waiters got the lock or were moved to it, or an error, negated. Errors are
 * checked in Linux's order.
 */
export function requeuePi(
  context: FutexContext,
  from: FutexWord,
  to: FutexWord,
  shared: boolean,
  moveLimit: number,
  expected: number,
): number {
  const { i32 } = context
  if (!from.isMapped(i32, shared) || !to.isMapped(i32, shared)) return -EFAULT
  if (sameKey(from, to, shared)) return -EINVAL
  const bucket = shared ? from.sharedBucket : from.privateBucket
  const source = { bucket, owner: keyOf(from, shared), index: from.index }
  const { error, count } = moveToLock(context, source, to, shared, moveLimit, { word: from, expected })
  return error !== 0 ? error : count
}

/** The key of a queue, and its bucket. */
export interface QueueKey {
  readonly bucket: number
  readonly owner: number
  readonly index: number
}

interface Comparison {
  readonly word: FutexWord
  readonly expected: number
}

/**
 * Gives the lock to the first waiter of a queue if it is free, and lets up to `moveLimit` others wait for it,
 * each lending its priority. All of them wait to be moved to this lock (PI_REQUEUE). `compare`: a word that
 * must have a value. Returns how many got the lock or were moved, and the final error, negated: the waiter
 * that it concerns and those behind it stay in their queue.
 */
export function moveToLock(
  context: FutexContext,
  source: QueueKey,
  to: FutexWord,
  shared: boolean,
  moveLimit: number,
  compare: Comparison | null = null,
): { readonly count: number; readonly error: number } {
  const move = new Move(source, to, shared, moveLimit, compare)
  context.enter()
  try {
    while (!move.done) {
      if (!lockBoth(context, move)) break
      moveSome(context, move)
      unlockBoth(context, move)
      if (move.walkFrom !== 0) finishWalk(context, move)
      if (move.exits) awaitExit(context, to)
      move.exits = false
    }
  } finally {
    context.leave()
  }
  wakeAll(context)
  return move
}

/** The progress of one call. */
class Move {
  readonly from: QueueKey
  readonly to: FutexWord
  readonly shared: boolean
  readonly limit: number
  readonly compare: Comparison | null
  source = 0
  target = 0
  /** The word has been compared, which happens once. */
  compared = false
  count = 0
  error = 0
  done = false
  /** The lock's owner is ending. */
  exits = false
  /** The lock's owner waits itself: the chain is walked from there, for the waiter that was just moved. */
  walkFrom = 0
  moved = 0
  order = 0

  constructor(from: QueueKey, to: FutexWord, shared: boolean, limit: number, compare: Comparison | null) {
    this.from = from
    this.to = to
    this.shared = shared
    this.limit = limit
    this.compare = compare
  }

  /** Whether the word differs from its expected value. */
  get differs(): boolean {
    const { compare } = this
    if (this.compared || compare === null) return false
    return Atomics.load(compare.word.i32, compare.word.index) !== compare.expected
  }

  end(error: number): void {
    this.error = error
    this.done = true
  }
}

/**
 * Locks both futexes. False: the first word has no waiters, and the call is over; unless `makes`, for a
 * waiter that is moved back.
 */
function lockBoth(context: FutexContext, move: Move, makes = false): boolean {
  const { i32, thread } = context
  const { from, to, shared } = move
  const toBucket = shared ? to.sharedBucket : to.privateBucket
  for (;;) {
    const find = makes ? lockOrCreateFutex : lockFutex
    const source = find(context, from.bucket, from.owner, from.index, 0)
    if (source === 0) {
      if (move.differs) move.error = -EAGAIN
      return false
    }
    release(thread, source + Futex.lock)
    // Created if missing, and without a waiter until both are locked: another thread that finds it empty
    // removes it, and this restarts.
    const target = lockOrCreateFutex(context, toBucket, keyOf(to, shared), to.index, 0, 0, false)
    release(thread, target + Futex.lock)
    const [first, second] = source < target ? [source, target] : [target, source]
    acquire(thread, first + Futex.lock)
    acquire(thread, second + Futex.lock)
    move.source = source
    move.target = target
    if (i32[source + Futex.state] === ALIVE && i32[target + Futex.state] === ALIVE) return true
    unlockBoth(context, move)
  }
}

function unlockBoth(context: FutexContext, { source, target }: Move): void {
  // The first locked one is retired last: retiring takes the table's lock, which comes before these in the
  // lock order.
  const ends = [source, target].map(futex => endsWith(context, futex))
  release(context.thread, Math.max(source, target) + Futex.lock)
  release(context.thread, Math.min(source, target) + Futex.lock)
  for (const [at, futex] of [source, target].entries()) if (ends[at]) retireIfEmpty(context, futex)
}

function endsWith({ i32 }: FutexContext, futex: number): boolean {
  return (
    i32[futex + Futex.state] === ALIVE &&
    listFirst(i32, futex + Futex.waiters) === 0 &&
    i32[futex + Futex.pi] === 0
  )
}

function retireIfEmpty(context: FutexContext, futex: number): void {
  acquire(context.thread, futex + Futex.lock)
  unlockFutexUnlessDead(context, futex)
}

/** Both futexes are locked. Continues until the call is over, or a chain has to be walked without locks. */
function moveSome(context: FutexContext, move: Move): void {
  const { i32 } = context
  const { to, shared, source, target } = move
  if (!to.isMapped(i32, shared)) return move.end(-EFAULT)
  if (move.differs) return move.end(-EAGAIN)
  move.compared = true
  const head = source + Futex.waiters
  let waiter = listFirst(i32, head)
  if (waiter === 0) return move.end(0)
  const problem = unfit(i32, waiter, move)
  if (problem !== 0) return move.end(problem)
  // The first waiter gets the lock, if it is free; if not, the lock has an owner to wait for afterwards.
  const lockOwner = i32[waiter + Waiter.lockOwner]
  const tid = i32[lockOwner + Owner.tid]
  const locked = lockAtomic(context, target, to, lockOwner, tid, move.limit !== 0)
  if (locked === -EBUSY) move.exits = true
  if (locked === -EAGAIN_NOW || locked === -EBUSY) return
  if (locked < 0) return move.end(locked)
  if (locked === LOCKED) {
    const next = listNext(i32, head, waiter)
    takeFrom(context, source, waiter)
    wakeLater(context, waiter, QUEUE_WOKEN)
    move.count++
    waiter = next
  }
  while (waiter !== 0 && move.count - 1 < move.limit) {
    const error = unfit(i32, waiter, move)
    if (error !== 0) {
      move.error = error
      break
    }
    const holder = Atomics.load(i32, target + Futex.pi)
    assert(
      holder !== 0 || topWaiter(i32, target) !== 0,
      'a lock that waiters are moved to has an owner, or is pending',
    )
    if (holder === i32[waiter + Waiter.lockOwner]) {
      move.error = -EDEADLK
      break
    }
    const next = listNext(i32, head, waiter)
    takeFrom(context, source, waiter)
    Atomics.add(i32, i32[target + Futex.bucket] + Bucket.waiters, 1)
    queueForLock(context, target, waiter)
    move.count++
    if (holder !== 0 && isBlocked(context, holder)) {
      move.walkFrom = holder
      move.moved = waiter
      move.order = i32[waiter + Waiter.order]
      return
    }
    waiter = next
  }
  updateTop(context, target)
  move.done = true
}

/** -EINVAL for a waiter that does not wait to be moved to this lock. */
function unfit(i32: Int32Array, waiter: number, { to, shared }: Move): number {
  if (i32[waiter + Waiter.pi] !== PI_REQUEUE) return -EINVAL
  const fits =
    i32[waiter + Waiter.target] === keyOf(to, shared) && i32[waiter + Waiter.targetIndex] === to.index
  return fits ? 0 : -EINVAL
}

function takeFrom({ i32 }: FutexContext, source: number, waiter: number): void {
  listRemove(i32, source + Futex.waiters, waiter)
  Atomics.sub(i32, i32[source + Futex.bucket] + Bucket.waiters, 1)
}

function isBlocked({ i32, thread }: FutexContext, owner: number): boolean {
  acquire(thread, owner + Owner.lock)
  const blocked = i32[owner + Owner.blockedOn] !== 0
  release(thread, owner + Owner.lock)
  return blocked
}

/**
 * Walks the chain for the waiter that was just moved. On a deadlock the waiter moves back, and the call ends.
 */
function finishWalk(context: FutexContext, move: Move): void {
  const { i32 } = context
  const { moved } = move
  const lockOwner = i32[moved + Waiter.lockOwner]
  const result = walkChain(context, move.walkFrom, lockOwner)
  move.walkFrom = 0
  if (result === 0) {
    if (move.count - 1 >= move.limit) move.done = true
    return
  }
  lockBoth(context, move, true)
  // Unless it got the lock in the meantime, or has left.
  const waits =
    Atomics.load(i32, moved + Waiter.queue) === move.target && i32[moved + Waiter.order] === move.order
  if (waits) {
    unblock(context, moved)
    listRemove(i32, move.target + Futex.waiters, moved)
    Atomics.sub(i32, i32[move.target + Futex.bucket] + Bucket.waiters, 1)
    i32[moved + Waiter.pi] = PI_REQUEUE
    Atomics.store(i32, moved + Waiter.called, 0)
    Atomics.add(i32, i32[move.source + Futex.bucket] + Bucket.waiters, 1)
    enqueue(context, move.source, moved)
    updateTop(context, move.target)
    move.end(-EDEADLK)
  }
  unlockBoth(context, move)
}

/** Whether a waiter that began at a condition had been moved to its lock when it left. */
export function hadMoved(i32: Int32Array, waiter: number): boolean {
  return i32[waiter + Waiter.pi] === PI_LOCK
}
