import { awaitChange, partDone } from '../../arena/sync/awaiting.ts'
import { listFirst, listRemove } from '../../arena/trees/list.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { isBoosted, settleBoosted } from './boost.ts'
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
  settleTop,
  topWaiter,
  unblock,
  walkChain,
} from './pichain.ts'
import { leaveBetween, pendingWord, takeBetween } from './pendingword.ts'
import { takeOff, wakeAll, wakeLater } from '../core/queue.ts'
import {
  Bucket,
  Futex,
  INSISTS,
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
 * Locks that pass priorities on: LOCK_PI, LOCK_PI2, TRYLOCK_PI, UNLOCK_PI. A free word is 0, a held one its
 * owner's TID, and both ways are one compare-exchange that never comes here. What comes here is contention,
 * and its rule is that an owner that others wait for cannot leave unseen: WAITERS is in the word before
 * anyone queues, so the owner's compare-exchange fails.
 *
 *   locker                                   owner
 *   ------                                   -----
 *   locks the futex
 *   (A) word: TID -> WAITERS | TID           (C) word: TID -> 0
 *   (B) finds the owner, queues              fails: UNLOCK_PI; locks the futex
 *   unlocks, sleeps                          (D) word: the top waiter's TID; it is off the queue; wakes it
 *
 * Either (A) or (C) succeeds, the other fails and looks again. (D) gives the lock to the top waiter before
 * that runs.
 *
 * What a word, the queue and the pi state can say together, and what LOCK_PI makes of it:
 *
 *        top waiter   pi state's owner   word            result
 *   [1]  none         none               0 or flags      takes it, OWNER_DIED stays in the word
 *   [2]  none         none               TID             attaches to the owner that the TID finds
 *   [3]  plain        any                any             EINVAL: the word is used for something else
 *   [6]  pi           an owner           OWNER_DIED, 0   waits: the owner is dying, its lock is about to be passed on
 *   [7]  pi           none               no TID          the lock is pending (pending.ts): takes it, if it may go first; else waits
 *   [8]  pi           none               TID             it has been taken since: attaches to the owner that the TID finds
 *   [9]  pi           TID                TID             waits
 *   [10] pi           another            TID             EINVAL: someone wrote into the word
 *
 * [4] and [5] of Linux's table, a pi state without an owner and without a waiter, do not happen.
 *
 * (D) is what UNLOCK_PI does. A mutex calls its top waiter instead (pending.ts), unless that one insists.
 */

/** What a wait for a lock needs to know when it ends. */
export interface LockWait {
  readonly word: FutexWord
  readonly shared: boolean
  readonly who: WaiterOptions
  /** It began at another word, waiting to be moved to this one. */
  readonly requeued: boolean
}

export interface PreparedLock {
  readonly waiters: readonly number[]
  readonly deadline: number
  readonly vector: false
  readonly lock: LockWait
}

/** The owner that a call is made for. One flow of code waits for one thing at a time. */
export function idleOwner(who: WaiterOptions): LockOwner {
  const { owner } = who
  if (owner === undefined)
    throw new FutexError(EINVAL, 'futex', 'this call is made for an owner of locks; give one')
  if (owner.waiting) {
    throw new FutexError(
      EINVAL,
      'futex',
      'this owner waits already; async code that waits for locks side by side makes an owner for each flow',
    )
  }
  return owner
}

/**
 * LOCK_PI and TRYLOCK_PI: 0, the lock is the owner's; a wait; or an error, negated. `again`: the owner had
 * waited already when a thread died that was changing the queue, so the lock may be its own by now, or be
 * left by a dead owner.
 */
export function lockPi(
  context: FutexContext,
  who: WaiterOptions,
  word: FutexWord,
  shared: boolean,
  deadline: number,
  tries: boolean,
  again = false,
): number | PreparedLock {
  const owner = idleOwner(who)
  const { i32 } = context
  const bucket = shared ? word.sharedBucket : word.privateBucket
  let waiter = 0
  try {
    for (;;) {
      if (!word.isMapped(i32, shared)) return -EFAULT
      // With nobody waiting anywhere near, a free word is taken as its owner-to-be could have taken it
      // without a call.
      const nobody = Atomics.load(i32, bucket + Bucket.waiters) === 0
      if (nobody && Atomics.compareExchange(word.i32, word.index, 0, owner.tid) === 0) return 0
      if (!tries && waiter === 0) waiter = makeWaiter(context, MATCH_ANY, who)
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
        lock: { word, shared, who, requeued: false },
      }
    }
  } finally {
    if (waiter !== 0) freeWaiters(context, [waiter])
  }
}

const QUEUED = 1

/** The word's owner is ending: waits until it has, holding nothing. */
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
      // Whoever attached and does not queue leaves the owner as it was, if it was the first.
      settleTop(context, futex)
      unlockFutex(context, futex)
      return result === LOCKED ? 0 : result
    }
    i32[waiter + Waiter.who] = owner.record
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
 * Queues a waiter at a locked futex that has an owner, unlocks it, and walks the chain from there: QUEUED, or
 * -EDEADLK and it is off the queue again. Inside an RCU section.
 */
export function queueAndWalk(context: FutexContext, futex: number, waiter: number): number {
  const { i32 } = context
  const who = i32[waiter + Waiter.who]
  queueForLock(context, futex, waiter)
  const holder = Atomics.load(i32, futex + Futex.pi)
  unlockFutex(context, futex)
  if (walkChain(context, holder, who) === 0) return QUEUED
  // A deadlock, unless the lock has become its own meanwhile.
  return takeOff(context, waiter) ? -EDEADLK : QUEUED
}

/**
 * The lock is this owner's already, and only the word does not say so, because someone wrote OWNER_DIED into
 * it ([6]). LOCK_PI has what it asks for; TRYLOCK_PI puts the word right and fails.
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
 * Puts a waiter on the queue of a locked futex that has an owner, who inherits from it. The chain beyond is
 * not walked.
 */
export function queueForLock(context: FutexContext, futex: number, waiter: number): void {
  const { i32, thread } = context
  const who = i32[waiter + Waiter.who]
  i32[waiter + Waiter.pi] = PI_LOCK
  // The queue word before blockedOn: a walker that sees the one finds the other. The priority after it: one
  // that changes from here on is carried by a walk, which waits for the futex's lock.
  Atomics.store(i32, waiter + Waiter.queue, futex)
  block(context, waiter)
  // A number for this wait at this lock: it may have been moved here before, and back (waitcycle.ts).
  i32[waiter + Waiter.order] = nextOrder(context)
  i32[waiter + Waiter.since] = context.now() & 0x7fff_ffff
  acquire(thread, who + Owner.lock)
  i32[waiter + Waiter.priority] = ownerPriority(context, who)
  release(thread, who + Owner.lock)
  insertByPriority(i32, futex, waiter)
  settleTop(context, futex)
}

/**
 * What can be done without sleeping, on behalf of the owner with this TID. LOCKED: the lock is its own. 0:
 * the futex has an owner to wait for. Else an error, negated; -EAGAIN_NOW and -EBUSY mean that the call
 * begins anew. The futex is locked.
 */
export function lockAtomic(
  context: FutexContext,
  futex: number,
  word: FutexWord,
  who: number,
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
    if (holder === 0) return takePending(context, futex, top, word, who, tid) // [7]
  } else if (holder === 0) {
    const flags = (seen & FUTEX_OWNER_DIED) | (setWaiters ? FUTEX_WAITERS : 0)
    if (Atomics.compareExchange(words, index, seen, flags | tid) !== seen) return -EAGAIN_NOW // [1]
    if (setWaiters) {
      acquire(thread, who + Owner.lock)
      attachOwner(context, futex, who)
      release(thread, who + Owner.lock)
    }
    return LOCKED
  }
  const result = attachHolder(context, futex, words, index, seen) // (A), (B) [2] [8]
  if (result === -ENOSYS) refuseTask(context, futex)
  // Its owner died without passing the lock on, and this one had waited for it.
  if (result === -ESRCH && again) {
    const marked = waitedFor(context, seen)
    const taken = FUTEX_OWNER_DIED | FUTEX_WAITERS | tid
    if (Atomics.compareExchange(words, index, marked, taken) !== marked) return -EAGAIN_NOW
    if (top !== 0) adopt(context, futex, who)
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
  settleTop(context, futex)
  unlockFutex(context, futex)
  throw new Error('a task holds this lock, and this thread was not given a scheduler to let it inherit with')
}

/**
 * UNLOCK_PI: 0, or an error, negated. The lock is the top waiter's on return, if there is any. `pending`: it
 * is left for the top waiter, or for an owner as good that comes first (pending.ts).
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
        // Nobody waits. Whoever is about to has its futex made before it looks at the word: (A) changes
        // nothing in a word that has WAITERS from before, so it is not enough that one of the two
        // compare-exchanges fails.
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
export function takeLeft(context: FutexContext, owner: LockOwner, word: FutexWord): boolean {
  if (!takeBetween(context, owner, word)) return false // (C) of boost.ts
  if (!isBoosted(context, word.sharedBucket)) return true // (D) of boost.ts
  if (!leaveBetween(owner, word)) unlockPi(context, owner, word, true, true)
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
  const gives = !pending || i32[top + Waiter.since] === INSISTS
  const next = gives
    ? FUTEX_WAITERS | i32[i32[top + Waiter.who] + Owner.tid]
    : pendingWord(i32[top + Waiter.priority])
  const before = Atomics.compareExchange(words, index, seen, next) // (D)
  // Someone set WAITERS since the word was read: that one waits for the futex's lock, or sleeps here already.
  if (before !== seen) return holderOf(before) === holderOf(seen) ? -EAGAIN_NOW : -EINVAL
  settleBoosted(context, futex)
  if (gives) handOver(context, futex, top)
  else {
    detachOwner(context, futex)
    callTop(context, futex) // (A) of pending.ts
  }
  return 0
}

/**
 * The waiter's owner becomes the owner of a locked futex, whose word says so already or will be made to: it
 * is off the queue and in the wake queue, the last owner inherits from this futex no more, and the new one
 * from those who still wait.
 */
export function handOver(context: FutexContext, futex: number, waiter: number): void {
  const { i32, thread } = context
  const next = i32[waiter + Waiter.who]
  detachOwner(context, futex)
  unblock(context, waiter)
  listRemove(i32, futex + Futex.waiters, waiter)
  Atomics.sub(i32, i32[futex + Futex.bucket] + Bucket.waiters, 1)
  if (topWaiter(i32, futex) !== 0) {
    acquire(thread, next + Owner.lock)
    attachOwner(context, futex, next)
    release(thread, next + Owner.lock)
    settleTop(context, futex)
  }
  wakeLater(context, waiter, QUEUE_WOKEN)
}

/**
 * Writes a new owner into the word of one that has ended, whatever the word says: it has OWNER_DIED from here
 * on, as on Linux.
 */
export function writeOwner(words: Int32Array, index: number, tid: number): void {
  for (;;) {
    const seen = Atomics.load(words, index)
    if (Atomics.compareExchange(words, index, seen, FUTEX_OWNER_DIED | FUTEX_WAITERS | tid) === seen) return
  }
}
