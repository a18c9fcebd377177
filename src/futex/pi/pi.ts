import { awaitChange, partDone } from '../../arena/sync/awaiting.ts'
import { listFirst, listRemove } from '../../arena/trees/list.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { isBoosted, clearBoosted } from './boost.ts'
import type { FutexContext } from '../core/context.ts'
import { EAGAIN, EBUSY, EDEADLK, EFAULT, EINVAL, ENOSYS, EPERM, ESRCH, FutexError } from '../core/errno.ts'
import { insertByPriority } from '../core/order.ts'
import {
  findOwner,
  FUTEX_OWNER_DIED,
  FUTEX_PENDING,
  FUTEX_WAITERS,
  holderOf,
  type LockOwner,
  ownerPriority,
  waitedFor,
} from '../core/owner.ts'
import { adopt, LOCKED, takePending } from './pending.ts'
import {
  attachHolder,
  attachOwner,
  block,
  callTop,
  detachOwner,
  EAGAIN_NOW,
  updateTop,
  topWaiter,
  unblock,
  walkChain,
} from './pichain.ts'
import { leavePendingWord, pendingWord, takePendingWord } from './pendingword.ts'
import { takeOff, wakeAll, wakeLater } from '../core/queue.ts'
import {
  Bucket,
  Futex,
  STARVING,
  Owner,
  OWNER_EXITING,
  PI_LOCK,
  Waiter,
  QUEUE_WOKEN,
} from '../core/records.ts'
import type { FutexWord } from '../core/space.ts'
import { freeWithoutFutex, lockFutex, lockOrCreateFutex, unlockFutex } from '../core/table.ts'
import { freeWaiters, makeWaiter, MATCH_ANY, nextOrder, type WaiterOptions } from '../operations/waitwake.ts'

/**
 * Locks with priority inheritance: LOCK_PI, LOCK_PI2, TRYLOCK_PI, UNLOCK_PI. A free word is 0, a held one is
 * its owner's TID, and both transitions are one compare-exchange that never calls this file. This file
 * handles contention, by the rule that an owner with waiters cannot unlock unseen: WAITERS is in the word
 * before a waiter queues, so the owner's compare-exchange fails.
 *
 *   locker                                   owner
 *   ------                                   -----
 *   locks the futex
 *   (A) word: TID -> WAITERS | TID           (C) word: TID -> 0
 *   (B) finds the owner, queues              fails: UNLOCK_PI; locks the futex
 *   unlocks, sleeps                          (D) word: the top waiter's TID; it is off the queue; wakes it
 *
 * Either (A) or (C) succeeds, the other fails and reads again. (D) gives the lock to the top waiter before
 * that runs.
 *
 * The legal combinations of word, queue and pi state, and the result of LOCK_PI:
 *
 *        top waiter   pi state's owner   word            result
 *   [1]  none         none               0 or flags      takes it, OWNER_DIED stays in the word
 *   [2]  none         none               TID             attaches to the owner of the TID
 *   [3]  plain        any                any             EINVAL: the word has another use
 *   [6]  pi           an owner           OWNER_DIED, 0   waits: the owner is dying, and passes its lock on
 *   [7]  pi           none               no TID          pending (pending.ts): takes it if it may; else waits
 *   [8]  pi           none               TID             taken since: attaches to the owner of the TID
 *   [9]  pi           TID                TID             waits
 *   [10] pi           another            TID             EINVAL: the program wrote into the word
 *   [11] pi           none               an ended TID    waits: the top waiter is called, and takes the lock
 *
 * [4] and [5] of Linux's table, a pi state without an owner and without a waiter, do not occur.
 *
 * UNLOCK_PI does (D). A mutex calls its top waiter instead (pending.ts), unless that one is starving.
 */

/** The data that the end of a wait for a lock needs. */
export interface LockWait {
  readonly word: FutexWord
  readonly shared: boolean
  readonly caller: WaiterOptions
  /** It began at another word, waiting to be moved to this one. */
  readonly requeued: boolean
}

export interface PreparedLock {
  readonly waiters: readonly number[]
  readonly deadline: number
  readonly vector: false
  readonly lock: LockWait
}

/** The owner that a call is made for. An owner waits for one lock at a time. */
export function idleOwner(caller: WaiterOptions): LockOwner {
  const { owner } = caller
  if (owner === undefined)
    throw new FutexError(EINVAL, 'futex', 'this call needs an owner of locks; pass one as the last argument')
  if (owner.waiting) {
    throw new FutexError(
      EINVAL,
      'futex',
      'this owner waits already; create one owner for each async flow with makeOwner()',
    )
  }
  return owner
}

/**
 * LOCK_PI and TRYLOCK_PI: 0, the owner holds the lock; a wait; or an error, negated. `again`: the owner had
 * waited already when a thread died while it changed the queue, so it may hold the lock by now, or a dead
 * owner may have left it.
 */
export function lockPi(
  context: FutexContext,
  caller: WaiterOptions,
  word: FutexWord,
  shared: boolean,
  deadline: number,
  tries: boolean,
  again = false,
): number | PreparedLock {
  const owner = idleOwner(caller)
  const { i32 } = context
  const bucket = shared ? word.sharedBucket : word.privateBucket
  let waiter = 0
  try {
    for (;;) {
      if (!word.isMapped(i32, shared)) return -EFAULT
      // If the bucket has no waiters, a free word is taken as the locker could have done without a call.
      const isUncontended = Atomics.load(i32, bucket + Bucket.waiters) === 0
      if (isUncontended && Atomics.compareExchange(word.i32, word.index, 0, owner.tid) === 0) return 0
      if (!tries && waiter === 0) waiter = makeWaiter(context, MATCH_ANY, caller)
      const result = lockOrQueue(context, owner, word, shared, waiter, again)
      if (context.wakeQueue.length > 0) wakeAll(context)
      if (result === -EBUSY) awaitExit(context, word)
      if (result === -EAGAIN_NOW || result === -EBUSY) continue
      if (result !== QUEUED) return result
      const queued = waiter
      waiter = 0
      owner.waiting = true
      return {
        waiters: [queued],
        deadline,
        vector: false,
        lock: { word, shared, caller, requeued: false },
      }
    }
  } finally {
    if (waiter !== 0) freeWaiters(context, [waiter])
  }
}

const QUEUED = 1

/** The word's owner is ending: waits for its end, without holding a lock. */
export function awaitExit(context: FutexContext, { i32: words, index }: FutexWord): void {
  const { i32 } = context
  const tid = holderOf(Atomics.load(words, index))
  const owner = findOwner(context, tid)
  if (owner === 0) return
  while (
    Atomics.load(i32, owner + Owner.tid) === tid &&
    Atomics.load(i32, owner + Owner.state) === OWNER_EXITING
  ) {
    const exiter = Atomics.load(i32, owner + Owner.exiter) - 1
    if (awaitChange(context.thread, i32, owner + Owner.state, OWNER_EXITING, exiter)) {
      context.finishExit(owner, exiter)
      partDone(context.thread)
    }
  }
}

function lockOrQueue(
  context: FutexContext,
  owner: LockOwner,
  word: FutexWord,
  shared: boolean,
  waiter: number,
  again: boolean,
): number {
  const { i32 } = context
  const bucket = shared ? word.sharedBucket : word.privateBucket
  const key = shared ? word.mapped.backing : word.mapped.mapping
  Atomics.add(i32, bucket + Bucket.waiters, 1)
  let queued = false
  context.enter()
  try {
    const hint = shared ? word.sharedHint : word.privateHint
    const futex = lockOrCreateFutex(context, bucket, key, word.index, hint)
    let result = -EFAULT
    if (word.isMapped(i32, shared))
      result = lockAtomic(context, futex, word, owner.record, owner.tid, false, again)
    if (result === 0 && i32[futex + Futex.pi] === owner.record)
      result = lockOwned(word, owner.tid, waiter === 0)
    else if (result === 0 && waiter === 0) result = -EAGAIN // TRYLOCK_PI
    if (result !== 0) {
      // If the locker attached first and does not queue, this detaches the owner again.
      updateTop(context, futex)
      unlockFutex(context, futex)
      return result === LOCKED ? 0 : result
    }
    i32[waiter + Waiter.lockOwner] = owner.record
    const handle = context.layout.futexes.handleOf(i32, futex)
    if (shared) word.sharedHint = handle
    else word.privateHint = handle
    queued = true
    return queueAndWalk(context, futex, waiter)
  } finally {
    if (!queued) Atomics.sub(i32, bucket + Bucket.waiters, 1)
    context.leave()
  }
}

/**
 * Queues a waiter at a locked futex that has an owner, unlocks it, and walks the chain from there. Returns
 * QUEUED, or -EDEADLK and the waiter is off the queue again. Inside an RCU section.
 */
export function queueAndWalk(context: FutexContext, futex: number, waiter: number): number {
  const { i32 } = context
  const lockOwner = i32[waiter + Waiter.lockOwner]
  queueForLock(context, futex, waiter)
  const holder = Atomics.load(i32, futex + Futex.pi)
  unlockFutex(context, futex)
  if (walkChain(context, holder, lockOwner) === 0) return QUEUED
  // A deadlock, unless the waiter got the lock in the meantime.
  return takeOff(context, waiter) ? -EDEADLK : QUEUED
}

/**
 * The owner holds the lock already, but the word does not say so, because the program wrote OWNER_DIED into
 * it ([6]). LOCK_PI succeeds; TRYLOCK_PI corrects the word and fails.
 */
function lockOwned({ i32: words, index }: FutexWord, tid: number, tries: boolean): number {
  if (!tries) return LOCKED
  for (;;) {
    const seen = Atomics.load(words, index)
    const right = (seen & FUTEX_OWNER_DIED) | FUTEX_WAITERS | tid
    if (Atomics.compareExchange(words, index, seen, right) === seen) return -EAGAIN
  }
}

/**
 * Puts a waiter on the queue of a locked futex that has an owner, which inherits from it. The rest of the
 * chain is not walked.
 */
export function queueForLock(context: FutexContext, futex: number, waiter: number): void {
  const { i32, thread } = context
  const lockOwner = i32[waiter + Waiter.lockOwner]
  i32[waiter + Waiter.pi] = PI_LOCK
  // The queue word before blockedOn: a walk that sees the one finds the other. The priority after it: a walk
  // carries every later change, and waits for the futex's lock.
  Atomics.store(i32, waiter + Waiter.queue, futex)
  block(context, waiter)
  // A number for this wait at this lock: the waiter may have been moved here before, and back (waitcycle.ts).
  i32[waiter + Waiter.order] = nextOrder(context)
  i32[waiter + Waiter.since] = context.now() & 0x7fff_ffff
  acquire(thread, lockOwner + Owner.lock)
  i32[waiter + Waiter.priority] = ownerPriority(context, lockOwner)
  release(thread, lockOwner + Owner.lock)
  insertByPriority(i32, futex, waiter)
  updateTop(context, futex)
}

/**
 * The part of a lock call that does not sleep, for the owner with this TID. LOCKED: it holds the lock. 0: the
 * futex has an owner to wait for. Else an error, negated; -EAGAIN_NOW and -EBUSY mean that the call restarts.
 * The futex is locked.
 */
export function lockAtomic(
  context: FutexContext,
  futex: number,
  word: FutexWord,
  lockOwner: number,
  tid: number,
  setWaiters: boolean,
  again = false,
): number {
  const { i32, thread } = context
  const { i32: words, index } = word
  const seen = Atomics.load(words, index)
  const holder = holderOf(seen)
  if (holder === tid) return again ? LOCKED : -EDEADLK
  const top = listFirst(i32, futex + Futex.waiters)
  if (top !== 0) {
    if (i32[top + Waiter.pi] !== PI_LOCK) return -EINVAL // [3]
    if (i32[futex + Futex.pi] !== 0) return attachToState(context, futex, word, seen)
    if (holder === 0) return takePending(context, futex, top, word, lockOwner, tid) // [7]
  } else if (holder === 0) {
    const flags = (seen & FUTEX_OWNER_DIED) | (setWaiters ? FUTEX_WAITERS : 0)
    if (Atomics.compareExchange(words, index, seen, flags | tid) !== seen) return -EAGAIN_NOW // [1]
    if (setWaiters) {
      acquire(thread, lockOwner + Owner.lock)
      attachOwner(context, futex, lockOwner)
      release(thread, lockOwner + Owner.lock)
    }
    return LOCKED
  }
  const result = attachHolder(context, futex, words, index, seen) // (A), (B) [2] [8]
  if (result === -ENOSYS) refuseTask(context, futex)
  if (result === -ESRCH && top !== 0 && !again) return 0 // [11]
  // Its owner died without passing the lock on, and this owner had waited for it.
  if (result === -ESRCH && again) {
    const marked = waitedFor(context, seen)
    const taken = FUTEX_OWNER_DIED | FUTEX_WAITERS | tid
    if (Atomics.compareExchange(words, index, marked, taken) !== marked) return -EAGAIN_NOW
    if (top !== 0) adopt(context, futex, lockOwner)
    return LOCKED
  }
  return result
}

function attachToState({ i32 }: FutexContext, futex: number, word: FutexWord, seen: number): number {
  const holder = holderOf(seen)
  if ((seen & FUTEX_OWNER_DIED) !== 0 && holder === 0) return 0 // [6]
  if (holder === i32[i32[futex + Futex.pi] + Owner.tid]) return 0 // [9]
  return Atomics.load(word.i32, word.index) === seen ? -EINVAL : -EAGAIN_NOW // [10]
}

function refuseTask(context: FutexContext, futex: number): never {
  updateTop(context, futex)
  unlockFutex(context, futex)
  throw new Error(
    'a task holds this lock, but this thread has no scheduler to let it inherit a priority; pass the option `scheduler`',
  )
}

/**
 * UNLOCK_PI: 0, or an error, negated. On return the top waiter holds the lock, if there is one. `pending`:
 * the lock is left for the top waiter, or for an owner at least as good that takes it first (pending.ts).
 */
export function unlockPi(
  context: FutexContext,
  owner: LockOwner,
  word: FutexWord,
  shared: boolean,
  pending = false,
): number {
  const { i32 } = context
  const { i32: words, index } = word
  const bucket = shared ? word.sharedBucket : word.privateBucket
  const key = shared ? word.mapped.backing : word.mapped.mapping
  for (;;) {
    if (!word.isMapped(i32, shared)) return -EFAULT
    const seen = Atomics.load(words, index)
    if (holderOf(seen) !== owner.tid) return -EPERM
    context.enter()
    let result: number
    try {
      const futex = lockFutex(context, bucket, key, index, shared ? word.sharedHint : word.privateHint)
      if (futex !== 0) {
        result = unlockQueued(context, futex, owner, word, seen, pending)
        if (shared) word.sharedHint = context.layout.futexes.handleOf(i32, futex)
        else word.privateHint = context.layout.futexes.handleOf(i32, futex)
        unlockFutex(context, futex)
      } else {
        // No owner waits. A locker creates its futex before it reads the word: (A) does not change a word
        // that has an old WAITERS bit, so the two compare-exchanges alone would not exclude each other.
        const before = freeWithoutFutex(context, bucket, key, index, words, seen)
        if (before === seen) result = 0
        else result = before === -1 || holderOf(before) === owner.tid ? -EAGAIN_NOW : -EAGAIN
      }
    } finally {
      context.leave()
    }
    wakeAll(context)
    if (result !== -EAGAIN_NOW) return result
  }
}

/**
 * Takes a pending lock by its word alone (pendingword.ts), unless a waiter is better than the word says
 * (boost.ts). No lock is held.
 */
export function takePendingLock(context: FutexContext, owner: LockOwner, word: FutexWord): boolean {
  if (!takePendingWord(context, owner, word)) return false // (C) of boost.ts
  if (!isBoosted(context, word.sharedBucket)) return true // (D) of boost.ts
  if (!leavePendingWord(owner, word)) unlockPi(context, owner, word, true, true)
  return false
}

function unlockQueued(
  context: FutexContext,
  futex: number,
  owner: LockOwner,
  word: FutexWord,
  seen: number,
  pending: boolean,
): number {
  const { i32 } = context
  const { i32: words, index } = word
  const top = listFirst(i32, futex + Futex.waiters)
  if (top === 0) {
    const before = Atomics.compareExchange(words, index, seen, 0)
    return before === seen ? 0 : -EAGAIN_NOW
  }
  if (i32[top + Waiter.pi] !== PI_LOCK) return -EINVAL
  // In [P5] of pending.ts the pi state has no owner.
  const attached = i32[futex + Futex.pi]
  if (attached !== owner.record && (attached !== 0 || (seen & FUTEX_PENDING) === 0)) return -EINVAL
  const gives = !pending || i32[top + Waiter.since] === STARVING
  const next = gives
    ? FUTEX_WAITERS | i32[i32[top + Waiter.lockOwner] + Owner.tid]
    : pendingWord(i32[top + Waiter.priority])
  const before = Atomics.compareExchange(words, index, seen, next) // (D)
  // WAITERS was set since the word was read: that waiter waits for the futex's lock, or sleeps here already.
  if (before !== seen) return holderOf(before) === holderOf(seen) ? -EAGAIN_NOW : -EINVAL
  clearBoosted(context, futex)
  if (gives) handOver(context, futex, top)
  else {
    detachOwner(context, futex)
    callTop(context, futex) // (A) of pending.ts
  }
  return 0
}

/**
 * Makes the waiter's owner the owner of a locked futex, whose word names it already or will: the waiter is
 * off the queue and in the wake queue, the last owner inherits no more from this futex, and the new one
 * inherits from the remaining waiters.
 */
export function handOver(context: FutexContext, futex: number, waiter: number): void {
  const { i32, thread } = context
  const next = i32[waiter + Waiter.lockOwner]
  detachOwner(context, futex)
  unblock(context, waiter)
  listRemove(i32, futex + Futex.waiters, waiter)
  Atomics.sub(i32, i32[futex + Futex.bucket] + Bucket.waiters, 1)
  if (topWaiter(i32, futex) !== 0) {
    acquire(thread, next + Owner.lock)
    attachOwner(context, futex, next)
    release(thread, next + Owner.lock)
    updateTop(context, futex)
  }
  wakeLater(context, waiter, QUEUE_WOKEN)
}

/**
 * Writes a new owner into the word of an ended owner, unconditionally: the word has OWNER_DIED from now on,
 * as on Linux.
 */
export function writeOwner(words: Int32Array, index: number, tid: number): void {
  for (;;) {
    const seen = Atomics.load(words, index)
    if (Atomics.compareExchange(words, index, seen, FUTEX_OWNER_DIED | FUTEX_WAITERS | tid) === seen) return
  }
}
