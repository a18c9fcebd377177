import { assert } from '../../arena/assert.ts'
import { isListed, listFirst, listNext, listPush, listRemove } from '../../arena/trees/list.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { Entity } from '../../sched/core/entity.ts'
import { PRIORITY_NONE } from '../../sched/core/priority.ts'
import { setInherited, setPriority } from '../../sched/core/setpriority.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import { CHAIN_MAX, waitsForItself } from './waitcycle.ts'
import { markBoosted, clearBoosted } from './boost.ts'
import type { FutexContext } from '../core/context.ts'
import { EBUSY, EDEADLK, ENOSYS, ESRCH } from '../core/errno.ts'
import { insertByPriority } from '../core/order.ts'
import { findOwner, FUTEX_TID_MASK, holderOf, ownerPriority, waitedFor } from '../core/owner.ts'
import { isPending, pendingWord } from './pendingword.ts'
import { Futex, Owner, OWNER_ALIVE, OWNER_EXITING, PI_LOCK, TASK, Waiter } from '../core/records.ts'
import { signalLater } from '../core/signal.ts'

/**
 * Priority inheritance. An owner has the best priority among its own and those of all waiters for its locks.
 * It may itself wait for another lock, whose owner then inherits from it in turn. The graph:
 *
 *   owner.contended ──► its futexes with waiters                  futex.pi ──► its owner
 *   owner.blockedOn ──► its waiter ──► waiter.queue, the futex    waiter.lockOwner ──► the waiting owner
 *
 *   guarded by          data
 *   the futex's lock    its queue, the positions and priorities of waiters, futex.pi
 *   the owner's lock    owner.contended, topPriority of the futexes on it, owner.blockedOn, its inherited
 *                       priority
 *   both                blockedOn and waiter.queue change together: one lock alone is not enough
 *
 * The walk along a chain, step by step. It holds at most one futex's lock, and inside it one owner's lock at
 * a time:
 *
 *   step                                                                            held
 *   [1]  not too deep: a chain longer than CHAIN_MAX is a deadlock, if [9] agrees    nothing
 *   [2]  owner X: what does it wait for? Nothing: the end                            X's lock
 *   [3]  lock the futex F that its waiter W is on                                    F's lock
 *   [4]  does X still wait with W at F? If not, the end: the changer walks too       F's lock, X's lock
 *        X's priority now
 *   [5]  F's owner is the origin of the walk: a cycle, if [9] agrees                 F's lock
 *   [6]  W has another priority than X: W moves to its new position in the queue     F's lock
 *   [7]  owner Y of F: has the best priority among its waiters changed? It inherits  F's lock, Y's lock
 *        nothing has changed, and the walk does not detect deadlocks: the end
 *   [8]  unlock F; continue at [1] with Y                                            nothing
 *   [9]  walk the cycle twice more (waitcycle.ts): the same links both times are a   as [2] to [4]
 *        deadlock; else continue at [2] with X, without detecting deadlocks
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
 * X already has the priority that the walker was to bring: [2] read its priority after the change, and (A)
 * comes later. The memory of F is still a futex, as the walk is inside an RCU section. If W has left and come
 * back, W is at F, which is what [4] checks.
 *
 * Between [8] and [2] nothing is held either. Y may end, and its record may belong to a new owner Z:
 *
 *   walker                                   Y, then Z
 *   ------                                   ---------
 *   [7] Y owns F, and inherits
 *   [8] unlocks F
 *                                            Y ends: the top waiter owns F and inherits; Y's record is freed
 *                                            Z is created in it, waits at G
 *   [2] Z waits at G
 *   [4] Z's priority, (D) as it is now
 *
 * This is harmless, because a walk carries no priority along: (D) and [7] compute the present state from data
 * that the locks guard, for any owner of the record, and change nothing that is right already. While F is
 * locked its owner's record is not freed, as F is on its list. Only [5] draws a conclusion from more than one
 * link, and therefore needs [9].
 */

/** The best waiter that waits to own the futex's word, or 0. The futex is locked. */
export function topWaiter(i32: Int32Array, futex: number): number {
  const head = futex + Futex.waiters
  let waiter = listFirst(i32, head)
  while (waiter !== 0 && i32[waiter + Waiter.pi] !== PI_LOCK) waiter = listNext(i32, head, waiter)
  return waiter
}

/** The best priority of all waiters of a locked futex, or PRIORITY_NONE. */
function topPriority(i32: Int32Array, futex: number): number {
  const top = topWaiter(i32, futex)
  return top === 0 ? PRIORITY_NONE : i32[top + Waiter.priority]
}

/** Makes the owner the holder of the futex's lock. Both are locked. */
export function attachOwner({ i32 }: FutexContext, futex: number, owner: number): void {
  i32[futex + Futex.topPriority] = PRIORITY_NONE
  Atomics.store(i32, futex + Futex.pi, owner)
  if (!isListed(i32, futex + Futex.contended)) listPush(i32, owner + Owner.contended, futex + Futex.contended)
}

/** An internal EAGAIN: the word has changed during the call, which restarts. */
export const EAGAIN_NOW = 1000

/**
 * Marks the word `seen` as waited for, and attaches the futex to the owner of its TID. Returns 0;
 * -EAGAIN_NOW: the word has changed; -EBUSY: that owner is ending; -ESRCH: it has ended; -ENOSYS: it is a
 * task, and this thread has no scheduler. The futex is locked.
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
  // The owner has ended. If it wrote into the word on its way, the call restarts; if not, it never will.
  return Atomics.load(words, index) === marked ? -ESRCH : -EAGAIN_NOW
}

/**
 * The futex has no owner any more: its last waiter has left, or it is about to get another owner. The futex
 * is locked.
 */
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
 * Recomputes the inherited priority of an owner. Its lock is held. `unknown`: the old inherited priority is
 * unknown.
 */
export function inherit(context: FutexContext, owner: number, unknown = false): void {
  const { i32, thread, scheduler } = context
  const head = owner + Owner.contended
  let best = PRIORITY_NONE
  for (let node = listFirst(i32, head); node !== 0; node = listNext(i32, head, node)) {
    best = Math.min(best, i32[node - Futex.contended + Futex.topPriority])
  }
  if (i32[owner + Owner.inherited] === best && !unknown) return
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
 * The lock is pending: calls its top waiter, unless it is called already (pending.ts). The futex is locked;
 * the caller signals the wake queue once it holds no lock.
 */
export function callTop(context: FutexContext, futex: number): void {
  const { i32 } = context
  const top = topWaiter(i32, futex)
  if (top === 0 || Atomics.load(i32, top + Waiter.called) !== 0) return
  Atomics.store(i32, top + Waiter.called, 1)
  signalLater(context, i32[top + Waiter.sleeper])
}

/**
 * Called after the queue of a locked futex has changed: its owner inherits, or is detached when no owner
 * waits for the lock any more; if the lock is pending, its top waiter is called. Returns the owner if a walk
 * has to carry the change on, else 0.
 */
export function updateTop(context: FutexContext, futex: number): number {
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
 * Changes the own priority of an owner: if it waits, it moves in its queue, and the holder inherits. No lock
 * is held. Owners that are not tasks have a priority too, although it does not schedule them.
 */
export function setOwnerPriority(context: FutexContext, owner: number, priority: number): void {
  const { i32, thread, scheduler } = context
  if (i32[owner + Owner.kind] === TASK) {
    assert(scheduler !== undefined, 'the priority of a task is changed by a thread with a scheduler')
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

/** The waiter's owner waits no more. The futex is locked; on return the waiter can be removed. */
export function unblock({ i32, thread }: FutexContext, waiter: number): void {
  const lockOwner = i32[waiter + Waiter.lockOwner]
  acquire(thread, lockOwner + Owner.lock)
  if (i32[lockOwner + Owner.blockedOn] === waiter) i32[lockOwner + Owner.blockedOn] = 0
  release(thread, lockOwner + Owner.lock)
}

/** Records that the owner waits with this waiter, which is on the queue of a locked futex. */
export function block(context: FutexContext, waiter: number): void {
  const { i32, thread } = context
  const lockOwner = i32[waiter + Waiter.lockOwner]
  acquire(thread, lockOwner + Owner.lock)
  assert(i32[lockOwner + Owner.blockedOn] === 0, 'an owner waits for one lock at a time')
  i32[lockOwner + Owner.blockedOn] = waiter
  release(thread, lockOwner + Owner.lock)
}

/**
 * Carries a change of `from` along the chain of locks. With `origin`, an owner that has just begun to wait
 * for a lock of `from`, it walks to the end of the chain and returns -EDEADLK if the chain leads back to
 * `origin`. No lock is held; inside an RCU section.
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
    if (next === CYCLE) {
      if (waitsForItself(context, seeks)) return -EDEADLK // [9]
      seeks = 0
    } else owner = next
  }
  return 0
}

const CYCLE = -1

/** Steps [4] to [7] under the lock of the futex. Returns the next owner, 0 at the end, or CYCLE. */
function step(context: FutexContext, owner: number, waiter: number, futex: number, seeks: number): number {
  const { i32, thread } = context
  acquire(thread, owner + Owner.lock) // [4]
  const waits = i32[owner + Owner.blockedOn] === waiter && Atomics.load(i32, waiter + Waiter.queue) === futex // (B)
  const priority = waits ? ownerPriority(context, owner) : 0 // (D)
  release(thread, owner + Owner.lock)
  if (!waits) return 0
  const holder = Atomics.load(i32, futex + Futex.pi)
  if (seeks !== 0 && holder === seeks) return CYCLE // [5]
  if (i32[waiter + Waiter.priority] !== priority) {
    if (holder === 0 && !context.buffers.get(i32[futex + Futex.owner])?.isBacked(i32))
      markBoosted(context, futex)
    listRemove(i32, futex + Futex.waiters, waiter) // [6]
    i32[waiter + Waiter.priority] = priority
    insertByPriority(i32, futex, waiter)
  }
  if (holder === 0) return stepBetween(context, futex, seeks)
  const carried = updateTop(context, futex) // [7]
  return seeks === 0 ? carried : holder
}

/**
 * Step [7] where the pi state has no owner (pending.ts): the lock is pending, or a holder has taken it since.
 */
function stepBetween(context: FutexContext, futex: number, seeks: number): number {
  const { i32 } = context
  const mapped = context.buffers.get(i32[futex + Futex.owner])
  // Call first: if this thread cannot access the word (boost.ts), the called waiter can.
  callTop(context, futex)
  if (!mapped?.isBacked(i32)) return 0
  const { i32: words } = mapped
  const index = i32[futex + Futex.index]
  for (;;) {
    const seen = Atomics.load(words, index)
    if (holderOf(seen) === 0) {
      const best = topPriority(i32, futex)
      if (isPending(seen) && Atomics.compareExchange(words, index, seen, pendingWord(best)) !== seen) continue // (G)
      clearBoosted(context, futex)
      return 0
    }
    const result = attachHolder(context, futex, words, index, seen)
    if (result === -EAGAIN_NOW) continue
    if (result !== 0) return 0
    clearBoosted(context, futex)
    const carried = updateTop(context, futex)
    const holder = Atomics.load(i32, futex + Futex.pi)
    if (seeks === 0) return carried
    return holder === seeks ? CYCLE : holder
  }
}
