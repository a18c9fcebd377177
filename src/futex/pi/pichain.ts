import { assert } from '../../arena/assert.ts'
import { isListed, listFirst, listNext, listPush, listRemove } from '../../arena/trees/list.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { Entity } from '../../sched/core/entity.ts'
import { PRIORITY_NONE } from '../../sched/core/priority.ts'
import { setInherited, setPriority } from '../../sched/core/setpriority.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import { CHAIN_MAX, waitsForItself } from './waitcycle.ts'
import { markBoosted, settleBoosted } from './boost.ts'
import type { FutexContext } from '../core/context.ts'
import { EBUSY, EDEADLK, ENOSYS, ESRCH } from '../core/errno.ts'
import { insertByPriority } from '../core/order.ts'
import { findOwner, FUTEX_TID_MASK, holderOf, ownerPriority, waitedFor } from '../core/owner.ts'
import { isPending, pendingWord } from './pendingword.ts'
import { Futex, Owner, OWNER_ALIVE, OWNER_EXITING, PI_LOCK, TASK, Waiter } from '../core/records.ts'
import { signalLater } from '../core/signal.ts'

/**
 * Inheritance. An owner has the best priority among its own and those of everyone who waits for a lock that
 * it holds; and it may itself wait for another, whose owner then inherits from it in turn. The graph:
 *
 *   owner.contended ──► futexes that it owns and that are waited for      futex.pi ──► its owner
 *   owner.blockedOn ──► its waiter ──► waiter.queue, the futex            waiter.who ──► the owner that waits
 *
 *   guarded by          what
 *   the futex's lock    its queue, the waiters' places and priorities, futex.pi
 *   the owner's lock    owner.contended, futex.topPriority of what is on it, owner.blockedOn, what it inherits
 *   both                blockedOn and waiter.queue change together: reading one under its lock is not enough to know the other
 *
 * The walk along a chain, step by step. It holds one futex's lock at most, and inside it one owner's lock at
 * a time:
 *
 *   step                                                                            held
 *   [1]  not too deep: a chain longer than CHAIN_MAX is a deadlock, if [9] agrees    nothing
 *   [2]  owner X: what does it wait for? Nothing: the end                            X's lock
 *   [3]  lock the futex F that its waiter W is on                                    F's lock
 *   [4]  does X still wait with W at F? If not, the end: who changed that walks too  F's lock, X's lock
 *        X's priority now
 *   [5]  F's owner is who the walk is for: a circle, if [9] agrees                   F's lock
 *   [6]  W has another priority than X: W moves to its new place in the queue        F's lock
 *   [7]  owner Y of F: has the best priority among its waiters changed? It inherits  F's lock, Y's lock
 *        nothing has changed, and no deadlock is looked for: the end
 *   [8]  unlock F; go on at [1] with Y                                               nothing
 *   [9]  go round twice more (waitcycle.ts): the same links both times are a deadlock;  as [2] to [4]
 *        else go on at [2] with X, and look for none
 *
 * Between [2] and [3] nothing is held, and X may be granted the lock, or time out:
 *
 *   walker                                   unlocker of F
 *   ------                                   -------------
 *   [2] X waits with W at F
 *                                            locks F; X is the owner: (A) blockedOn = 0; W is off
 *   [3] locks F
 *   [4] (B) X waits no more: the end
 *
 * What the walker was to bring X, X has: [2] read its priority after it was changed, and (A) comes later. F
 * is memory of a futex still, as the walk is inside an RCU section; a W that has gone and come again is W at
 * F, which is what [4] asks for.
 *
 * Between [8] and [2] nothing is held either, and Y may end, and its record be a new owner's, Z:
 *
 *   walker                                   Y, then Z
 *   ------                                   ---------
 *   [7] Y owns F, and inherits
 *   [8] unlocks F
 *                                            Y ends: F is the top waiter's, who inherits; Y's record is given back
 *                                            Z is made in it, waits at G
 *   [2] Z waits at G
 *   [4] Z's priority, (D) as it is now
 *
 * That does no harm, because a walk carries nothing but the question: (D) and [7] work out what is so now
 * from what the locks guard, whoever has the record, and what is so already is not changed. While F is locked
 * its owner's record is not given back, as F is on its list. Only [5] concludes anything from more than one
 * link, and so is not believed by itself.
 */

/** The best of those who wait to own the futex's word, or 0. The futex is locked. */
export function topWaiter(i32: Int32Array, futex: number): number {
  const head = futex + Futex.waiters
  let waiter = listFirst(i32, head)
  while (waiter !== 0 && i32[waiter + Waiter.pi] !== PI_LOCK) waiter = listNext(i32, head, waiter)
  return waiter
}

/** The best of all who wait at a locked futex, or PRIORITY_NONE. */
function topPriority(i32: Int32Array, futex: number): number {
  const top = topWaiter(i32, futex)
  return top === 0 ? PRIORITY_NONE : i32[top + Waiter.priority]
}

/** The owner holds the lock that this futex is. Both are locked. */
export function attachOwner({ i32 }: FutexContext, futex: number, owner: number): void {
  i32[futex + Futex.topPriority] = PRIORITY_NONE
  Atomics.store(i32, futex + Futex.pi, owner)
  if (!isListed(i32, futex + Futex.contended)) listPush(i32, owner + Owner.contended, futex + Futex.contended)
}

/** EAGAIN that no caller sees: the word has changed under the call's hands, which begins anew. */
export const EAGAIN_NOW = 1000

/**
 * Marks the word `seen` as waited for, and attaches the futex to the owner whose TID it has. 0; -EAGAIN_NOW:
 * the word has changed; -EBUSY: that owner is ending; -ESRCH: it has ended; -ENOSYS: it is a task, and this
 * thread has no scheduler. The futex is locked.
 */
export function attachHolder(
  context: FutexContext,
  futex: number,
  words: Int32Array,
  index: number,
  seen: number,
): number {
  const { i32, thread } = context
  const marked = waitedFor(context, seen)
  if (Atomics.compareExchange(words, index, seen, marked) !== seen) return -EAGAIN_NOW // (A) of pi.ts
  const tid = marked & FUTEX_TID_MASK
  const owner = findOwner(context, tid)
  let state = 0
  if (owner !== 0) {
    acquire(thread, owner + Owner.lock)
    if (Atomics.load(i32, owner + Owner.tid) === tid) state = Atomics.load(i32, owner + Owner.state)
    const refused = i32[owner + Owner.kind] === TASK && context.scheduler === undefined
    if (state === OWNER_ALIVE && !refused) attachOwner(context, futex, owner)
    release(thread, owner + Owner.lock)
    if (state === OWNER_ALIVE) return refused ? -ENOSYS : 0
    if (state === OWNER_EXITING) return -EBUSY
  }
  // It has ended. If it wrote into the word as it did, the call begins anew; if not, it never will.
  return Atomics.load(words, index) === marked ? -ESRCH : -EAGAIN_NOW
}

/** The futex has no owner any more: its last waiter has left, or it is about to get another. Locked. */
export function detachOwner(context: FutexContext, futex: number): void {
  const { i32, thread } = context
  const owner = Atomics.load(i32, futex + Futex.pi)
  if (owner === 0) return
  acquire(thread, owner + Owner.lock)
  if (isListed(i32, futex + Futex.contended))
    listRemove(i32, owner + Owner.contended, futex + Futex.contended)
  Atomics.store(i32, futex + Futex.pi, 0)
  inherit(context, owner)
  release(thread, owner + Owner.lock)
}

/**
 * Makes an owner inherit what it should. Its lock is held. `anew`: as if it were not known what it inherits.
 */
export function inherit(context: FutexContext, owner: number, anew = false): void {
  const { i32, thread, scheduler } = context
  const head = owner + Owner.contended
  let best = PRIORITY_NONE
  for (let node = listFirst(i32, head); node !== 0; node = listNext(i32, head, node)) {
    best = Math.min(best, i32[node - Futex.contended + Futex.topPriority])
  }
  if (i32[owner + Owner.inherited] === best && !anew) return
  i32[owner + Owner.inherited] = best
  if (i32[owner + Owner.kind] !== TASK) {
    i32[owner + Owner.priority] = Math.min(i32[owner + Owner.basePriority], best)
  } else if (scheduler !== undefined) {
    const task = i32[owner + Owner.task]
    const se = i32[task + TaskRecord.entity]
    acquire(thread, se + Entity.piLock)
    setInherited(scheduler, task, best)
    release(thread, se + Entity.piLock)
  }
}

/**
 * The lock is pending: its top waiter is called, unless it is already (pending.ts). The futex is locked; the
 * caller signals the wake queue once it holds nothing.
 */
export function callTop(context: FutexContext, futex: number): void {
  const { i32 } = context
  const top = topWaiter(i32, futex)
  if (top === 0 || Atomics.load(i32, top + Waiter.called) !== 0) return
  Atomics.store(i32, top + Waiter.called, 1)
  signalLater(context, i32[top + Waiter.sleeper])
}

/**
 * After the queue of a locked futex has changed: its owner inherits, or, when nobody waits to own it any
 * more, has nothing to do with it; where the lock is pending, its top waiter is called. Returns the owner if
 * something has changed that a walk has to carry on, else 0.
 */
export function settleTop(context: FutexContext, futex: number): number {
  const { i32, thread } = context
  const owner = Atomics.load(i32, futex + Futex.pi)
  if (owner === 0) {
    callTop(context, futex)
    return 0
  }
  const best = topPriority(i32, futex)
  acquire(thread, owner + Owner.lock)
  const changed = i32[futex + Futex.topPriority] !== best
  i32[futex + Futex.topPriority] = best
  if (best === PRIORITY_NONE) {
    if (isListed(i32, futex + Futex.contended))
      listRemove(i32, owner + Owner.contended, futex + Futex.contended)
    Atomics.store(i32, futex + Futex.pi, 0)
  }
  if (changed) inherit(context, owner)
  const blocked = i32[owner + Owner.blockedOn] !== 0
  release(thread, owner + Owner.lock)
  return changed && blocked ? owner : 0
}

/**
 * Changes the priority that an owner has of its own: where it waits it moves, and whoever it waits for
 * inherits. No lock is held. Those who hold locks and are not tasks have one too, though nobody schedules
 * them by it.
 */
export function setOwnerPriority(context: FutexContext, owner: number, priority: number): void {
  const { i32, thread, scheduler } = context
  if (i32[owner + Owner.kind] === TASK) {
    assert(scheduler !== undefined, 'a task’s priority is changed where there is a scheduler')
    setPriority(scheduler, i32[owner + Owner.task], priority)
    return
  }
  acquire(thread, owner + Owner.lock)
  i32[owner + Owner.basePriority] = priority
  i32[owner + Owner.priority] = Math.min(priority, i32[owner + Owner.inherited])
  release(thread, owner + Owner.lock)
  context.enter()
  walkChain(context, owner)
  context.leave()
}

/** The waiter's owner waits no more. The futex is locked; on return the waiter can be taken off. */
export function unblock({ i32, thread }: FutexContext, waiter: number): void {
  const who = i32[waiter + Waiter.who]
  acquire(thread, who + Owner.lock)
  if (i32[who + Owner.blockedOn] === waiter) i32[who + Owner.blockedOn] = 0
  release(thread, who + Owner.lock)
}

/** A waiter that is on the queue of a locked futex is what its owner waits with. */
export function block(context: FutexContext, waiter: number): void {
  const { i32, thread } = context
  const who = i32[waiter + Waiter.who]
  acquire(thread, who + Owner.lock)
  assert(i32[who + Owner.blockedOn] === 0, 'an owner waits for one lock at a time')
  i32[who + Owner.blockedOn] = waiter
  release(thread, who + Owner.lock)
}

/**
 * Carries a change of `from` along the chain of what it waits for. With `origin`, who waits since just now
 * for a lock that `from` holds, goes to the end of the chain and returns -EDEADLK if that leads back to it.
 * No lock is held; inside an RCU section.
 */
export function walkChain(context: FutexContext, from: number, origin = 0): number {
  const { i32, thread } = context
  let owner = from
  let seeks = origin
  for (let depth = 1; owner !== 0; depth++) {
    if (depth > CHAIN_MAX) return seeks !== 0 && waitsForItself(context, seeks) ? -EDEADLK : 0 // [1]
    acquire(thread, owner + Owner.lock) // [2]
    const waiter = i32[owner + Owner.blockedOn]
    const futex = waiter === 0 ? 0 : Atomics.load(i32, waiter + Waiter.queue)
    release(thread, owner + Owner.lock)
    if (futex <= 0) return 0
    acquire(thread, futex + Futex.lock) // [3]
    const next = step(context, owner, waiter, futex, seeks)
    release(thread, futex + Futex.lock) // [8]
    if (next === CIRCLE) {
      if (waitsForItself(context, seeks)) return -EDEADLK // [9]
      seeks = 0
    } else owner = next
  }
  return 0
}

const CIRCLE = -1

/** Steps [4] to [7] under the lock of the futex: the owner to go on with, 0 at the end, or CIRCLE. */
function step(context: FutexContext, owner: number, waiter: number, futex: number, seeks: number): number {
  const { i32, thread } = context
  acquire(thread, owner + Owner.lock) // [4]
  const waits = i32[owner + Owner.blockedOn] === waiter && Atomics.load(i32, waiter + Waiter.queue) === futex // (B)
  const priority = waits ? ownerPriority(context, owner) : 0 // (D)
  release(thread, owner + Owner.lock)
  if (!waits) return 0
  const holder = Atomics.load(i32, futex + Futex.pi)
  if (seeks !== 0 && holder === seeks) return CIRCLE // [5]
  if (i32[waiter + Waiter.priority] !== priority) {
    if (holder === 0 && !context.buffers.get(i32[futex + Futex.owner])?.isBacked(i32))
      markBoosted(context, futex)
    listRemove(i32, futex + Futex.waiters, waiter) // [6]
    i32[waiter + Waiter.priority] = priority
    insertByPriority(i32, futex, waiter)
  }
  if (holder === 0) return stepBetween(context, futex, seeks)
  const carried = settleTop(context, futex) // [7]
  return seeks === 0 ? carried : holder
}

/**
 * Step [7] where the pi state has no owner (pending.ts): the lock is pending, or its holder has taken it
 * since it was.
 */
function stepBetween(context: FutexContext, futex: number, seeks: number): number {
  const { i32 } = context
  const mapped = context.buffers.get(i32[futex + Futex.owner])
  // Called first: should this thread not see the word (boost.ts), its waiter does, and comes.
  callTop(context, futex)
  if (!mapped?.isBacked(i32)) return 0
  const { i32: words } = mapped
  const index = i32[futex + Futex.index]
  for (;;) {
    const seen = Atomics.load(words, index)
    if (holderOf(seen) === 0) {
      const best = topPriority(i32, futex)
      if (isPending(seen) && Atomics.compareExchange(words, index, seen, pendingWord(best)) !== seen) continue // (G)
      settleBoosted(context, futex)
      return 0
    }
    const result = attachHolder(context, futex, words, index, seen)
    if (result === -EAGAIN_NOW) continue
    if (result !== 0) return 0
    settleBoosted(context, futex)
    const carried = settleTop(context, futex)
    const holder = Atomics.load(i32, futex + Futex.pi)
    if (seeks === 0) return carried
    return holder === seeks ? CIRCLE : holder
  }
}
