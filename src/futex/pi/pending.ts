import { listCount, listRemove } from '../../arena/trees/list.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { settleBoosted } from './boost.ts'
import type { FutexContext } from '../core/context.ts'
import { FUTEX_OWNER_DIED, FUTEX_WAITERS, holderOf, ownerPriority } from '../core/owner.ts'
import { attachHolder, attachOwner, callTop, EAGAIN_NOW, settleTop, topWaiter, unblock } from './pichain.ts'
import { Bucket, Futex, INSISTS, Owner, QUEUE_RESTARTED, Waiter, QUEUE_WOKEN } from '../core/records.ts'
import type { FutexWord } from '../core/space.ts'
import { unlockFutex } from '../core/table.ts'

/**
 * A mutex that passes priorities on, between two holders. One that changed hands at every unlock would stand
 * idle each time until its next holder has woken up. So unlocking does not give it to the top waiter: it
 * leaves the mutex pending, and calls the top waiter to come and take it. Until that one comes, any owner of
 * at least its priority may take the mutex; an owner of a lower one never. rt-mutex does the same.
 *
 *        word                    pi state's owner   waiters                     how it goes on
 *   [P1] TID                     none               none                        unlock: 0
 *   [P2] WAITERS | TID           the TID's          queued                      unlock: [P3]; or the top waiter has it, if that insists
 *   [P3] WAITERS|PENDING|prio.   none               queued, the top is called   it comes: [P1] or [P2]; another takes it: [P5], or [P2] by a call
 *   [P4] WAITERS|PENDING|prio.   none               none                        the next to lock it: [P1]; or [P5], that is left as [P4]
 *   [P5] PENDING | TID           none               queued, the top is called   unlock: [P3]; another comes: [P2]
 *   [P6] OWNER_DIED              none               queued, the top is called   the owner died in [P5]. As [P3]
 *
 * [P3] to [P5] and back is one compare-exchange each way (pendingword.ts); all the rest is done under the
 * futex's lock. The pi state has no owner in [P5], so that nothing is inherited there: the owner is as good
 * as every waiter by its own priority. Any change of the queue that could change this goes by [P2]; and one
 * waiter is always called, and so on its way to do just that:
 *
 *   (I)  a pi lock that has waiters and no owner in its pi state has called its top waiter
 *
 * The called waiter may come too late, and is called again by a later unlock:
 *
 *   unlocker U                        called waiter W                    S, of W's priority
 *   ----------                        ---------------                    ------------------
 *   (A) [P3]; W is called
 *   (B) signals W
 *                                                                        (C) [P5], (F) [P3], (C) [P5], …
 *                                     (D) locks the futex: [P5]. It makes
 *                                         that [P2]: S inherits from W.
 *                                         It is called no more, sleeps on
 *                                                                        (F) fails: unlocks by (A), (B)
 *
 * (D) is under the futex's lock. A waiter that wiped its call out before it has that lock could wipe out the
 * next one, and sleep for ever.
 *
 * The called waiter may give up, be cancelled or die; then its call is the next one's:
 *
 *   unlocker U                        called waiter W                    next waiter V
 *   ----------                        ---------------                    -------------
 *   (A) [P3]; W is called
 *                                     (E) its time is over: off the
 *                                         queue; V is the top, and called
 *   (B) signals W, in vain                                               comes, and takes the lock
 *
 * So each change of the queue where the pi state has no owner calls the waiter that is the top then
 * (settleTop). A thread that dies between (A) and (B) has signalled nobody: recovery signals all that are
 * called. One that dies with the futex's lock has all waiters begin anew (recover.ts). One that dies in [P5]
 * has a TID that finds nobody: the called waiter finds that out, and takes the lock with OWNER_DIED.
 *
 * A low owner L must not take the lock by what it knew of the waiters before:
 *
 *   L, low                            H, high
 *   ------                            -------
 *   [P3]: no waiter is better
 *                                     boosts a waiter, by another lock that this one holds: (G) the word has its new priority
 *   (C) fails: the word has changed
 *
 * H comes along the chain (pichain.ts), on whatever thread. One that does not map the lock's buffer cannot do
 * (G): it says so where L finds it (boost.ts).
 *
 * Equals could keep a waiter from the lock for ever. A called waiter that has come in vain for INSIST_MS
 * insists: the next unlock gives it the lock before it runs, and no owner comes in between.
 */
const INSIST_MS = 2

/** A lock was taken for the owner. */
export const LOCKED = 1

/**
 * Takes a pending lock for an owner of at least the priority of `top`: [P3] to [P2]. 0: a waiter goes before
 * it. The futex is locked.
 */
export function takePending(
  context: FutexContext,
  futex: number,
  top: number,
  { i32: words, index }: FutexWord,
  who: number,
  tid: number,
): number {
  const { i32, thread } = context
  acquire(thread, who + Owner.lock)
  const isLower = ownerPriority(context, who) > i32[top + Waiter.priority]
  release(thread, who + Owner.lock)
  if (isLower) return 0
  const seen = Atomics.load(words, index)
  if (holderOf(seen) !== 0) return -EAGAIN_NOW
  const taken = (seen & FUTEX_OWNER_DIED) | FUTEX_WAITERS | tid
  if (Atomics.compareExchange(words, index, seen, taken) !== seen) return -EAGAIN_NOW
  settleBoosted(context, futex)
  adopt(context, futex, who)
  return LOCKED
}

/** The owner holds the lock that this futex is, and inherits from its waiters. The futex is locked. */
export function adopt(context: FutexContext, futex: number, who: number): void {
  const { thread } = context
  acquire(thread, who + Owner.lock)
  attachOwner(context, futex, who)
  release(thread, who + Owner.lock)
  settleTop(context, futex)
}

/** Whether the waiter was called. */
export function isCalled(i32: Int32Array, waiter: number): boolean {
  return Atomics.load(i32, waiter + Waiter.called) !== 0
}

/**
 * The sleeper of a called waiter comes for the lock. Afterwards it has it, and the waiter is off the queue
 * and QUEUE_WOKEN; or another was first, and the waiter stays where it is; or it is QUEUE_RESTARTED. No lock
 * is held; the caller signals the wake queue.
 */
export function answerCall(context: FutexContext, waiter: number): void {
  const { i32, thread } = context
  context.enter()
  const futex = Atomics.load(i32, waiter + Waiter.queue)
  if (futex > 0) {
    acquire(thread, futex + Futex.lock)
    if (Atomics.load(i32, waiter + Waiter.queue) === futex) {
      Atomics.store(i32, waiter + Waiter.called, 0) // (D)
      if (Atomics.load(i32, futex + Futex.pi) === 0) come(context, futex, waiter)
      if (waitedLong(context, waiter)) i32[waiter + Waiter.since] = INSISTS
      unlockFutex(context, futex)
    } else release(thread, futex + Futex.lock)
  }
  context.leave()
}

function waitedLong({ i32, now }: FutexContext, waiter: number): boolean {
  const since = i32[waiter + Waiter.since]
  return since !== INSISTS && (((now() & 0x7fff_ffff) - since) & 0x7fff_ffff) >= INSIST_MS
}

/** In [P3], [P5] or [P6]. The futex is locked. */
function come(context: FutexContext, futex: number, waiter: number): void {
  const { i32 } = context
  const mapped = context.buffers.get(i32[futex + Futex.owner])
  // A task that has moved to a CPU which has not mapped the buffer yet: its call does so.
  if (!mapped?.isBacked(i32)) return leaveQueue(context, futex, waiter, QUEUE_RESTARTED)
  const { i32: words } = mapped
  const index = i32[futex + Futex.index]
  for (;;) {
    const seen = Atomics.load(words, index)
    if (holderOf(seen) === 0) {
      if (i32[waiter + Waiter.priority] > i32[topWaiter(i32, futex) + Waiter.priority]) {
        callTop(context, futex)
        return
      }
      if (take(context, futex, waiter, words, index, seen)) return
    } else {
      const result = attachHolder(context, futex, words, index, seen)
      if (result === -EAGAIN_NOW) continue
      // Its holder is ending, has ended, or waits itself: what that means is the whole call's to find out.
      if (result === 0) settleBoosted(context, futex)
      if (result !== 0 || settleTop(context, futex) !== 0) leaveQueue(context, futex, waiter, QUEUE_RESTARTED)
      return
    }
  }
}

/** The lock is the waiter's. False: the word has changed. */
function take(
  context: FutexContext,
  futex: number,
  waiter: number,
  words: Int32Array,
  index: number,
  seen: number,
): boolean {
  const { i32 } = context
  const who = i32[waiter + Waiter.who]
  const alone = listCount(i32, futex + Futex.waiters) === 1
  const taken = (seen & FUTEX_OWNER_DIED) | (alone ? 0 : FUTEX_WAITERS) | i32[who + Owner.tid]
  if (Atomics.compareExchange(words, index, seen, taken) !== seen) return false
  settleBoosted(context, futex)
  leaveQueue(context, futex, waiter, QUEUE_WOKEN)
  return true
}

function leaveQueue(
  context: FutexContext,
  futex: number,
  waiter: number,
  fate: typeof QUEUE_WOKEN | typeof QUEUE_RESTARTED,
): void {
  const { i32 } = context
  const who = i32[waiter + Waiter.who]
  unblock(context, waiter)
  listRemove(i32, futex + Futex.waiters, waiter)
  Atomics.sub(i32, i32[futex + Futex.bucket] + Bucket.waiters, 1)
  if (fate === QUEUE_WOKEN && topWaiter(i32, futex) !== 0) adopt(context, futex, who)
  else settleTop(context, futex)
  Atomics.store(i32, waiter + Waiter.queue, fate)
}
