import { listCount, listRemove } from '../../arena/trees/list.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { clearBoosted } from './boost.ts'
import type { FutexContext } from '../core/context.ts'
import { FUTEX_OWNER_DIED, FUTEX_WAITERS, holderOf, ownerPriority, waitedFor } from '../core/owner.ts'
import { ESRCH } from '../core/errno.ts'
import { attachHolder, attachOwner, callTop, EAGAIN_NOW, updateTop, topWaiter, unblock } from './pichain.ts'
import { Bucket, Futex, STARVING, Owner, QUEUE_RESTARTED, Waiter, QUEUE_WOKEN } from '../core/records.ts'
import type { FutexWord } from '../core/space.ts'
import { unlockFutex } from '../core/table.ts'

/**
 * A mutex with priority inheritance, between two holders. If each unlock passed the mutex to its next holder,
 * it would be idle until that holder has woken up. So an unlock does not give it to the top waiter: it leaves
 * the mutex pending, and calls (wakes) the top waiter to take it. Until then any owner of at least the top
 * waiter's priority may take the mutex; an owner of a lower priority never. rt-mutex does the same.
 *
 *        word                    pi owner   waiters                     next state
 *   [P1] TID                     none       none                        unlock: 0
 *   [P2] WAITERS | TID           the TID's  queued                      unlock: [P3]; if starving: [P1], [P2]
 *   [P3] WAITERS|PENDING|prio.   none       queued, the top is called   the top takes it: [P1], [P2];
 *                                                                       another owner: [P5], [P2]
 *   [P4] WAITERS|PENDING|prio.   none       none                        lock: [P1]; or [P5], left as [P4]
 *   [P5] PENDING | TID           none       queued, the top is called   unlock: [P3]; another waiter: [P2]
 *   [P6] OWNER_DIED              none       queued, the top is called   the owner died in [P5]. As [P3]
 *
 * [P3] to [P5] and back is one compare-exchange each way (pendingword.ts). All other transitions happen under
 * the futex's lock. The pi state has no owner in [P5], so no priority is inherited there: the owner is at
 * least as good as every waiter by its own priority. Any change of the queue that could change this moves to
 * [P2]; and one waiter is always called, and will make that change:
 *
 *   (I)  a pi lock that has waiters and no owner in its pi state has called its top waiter
 *
 * The called waiter may be too late, and is called again by a later unlock:
 *
 *   unlocker U                        called waiter W                    owner S, of W's priority
 *   ----------                        ---------------                    ------------------------
 *   (A) [P3]; W is called
 *   (B) signals W
 *                                                                        (C) [P5], (F) [P3], (C) [P5], …
 *                                     (D) locks the futex: [P5]. It makes
 *                                         that [P2]: S inherits from W.
 *                                         It clears its call, sleeps on
 *                                                                        (F) fails: unlocks by (A), (B)
 *
 * (D) is under the futex's lock. A waiter that clears its call before it has that lock could erase the next
 * call, and sleep for ever.
 *
 * The called waiter may give up, be cancelled or die; then its call passes to the next one:
 *
 *   unlocker U                        called waiter W                    next waiter V
 *   ----------                        ---------------                    -------------
 *   (A) [P3]; W is called
 *                                     (E) times out: leaves the
 *                                         queue; V is the top, and called
 *   (B) signals W, in vain                                               takes the lock
 *
 * So each change of the queue while the pi state has no owner calls the new top waiter (updateTop). A thread
 * that dies between (A) and (B) has signalled no waiter: recovery signals all called ones. If a thread dies
 * with the futex's lock, all waiters restart (recover.ts). If one dies in [P5], its TID finds no owner: the
 * called waiter detects that, and takes the lock with OWNER_DIED. A lock whose owner died in [P2] is left so
 * too, if the recovering thread cannot access its word ([11] of pi.ts).
 *
 * A low owner L must not take the lock by an old value of the word:
 *
 *   locker L, low                     booster H, high
 *   -------------                     ---------------
 *   [P3]: no waiter is better
 *                                     boosts a waiter, by another lock that the waiter holds:
 *                                     (G) writes the new priority into the word
 *   (C) fails: the word has changed
 *
 * H walks the chain (pichain.ts), on any thread. A thread that does not map the lock's buffer cannot do (G):
 * it marks that for L (boost.ts).
 *
 * Owners of equal priority could starve a waiter. A called waiter that has failed for STARVING_MS is
 * starving: the next unlock gives it the lock before it runs, and no owner can take it in between.
 */
const STARVING_MS = 2

/** The lock was taken for the owner. */
export const LOCKED = 1

/**
 * Takes a pending lock for an owner of at least the priority of `top`: [P3] to [P2]. 0: a waiter goes first.
 * The futex is locked.
 */
export function takePending(
  context: FutexContext,
  futex: number,
  top: number,
  { i32: words, index }: FutexWord,
  lockOwner: number,
  tid: number,
): number {
  const { i32, thread } = context
  acquire(thread, lockOwner + Owner.lock)
  const isLower = ownerPriority(context, lockOwner) > i32[top + Waiter.priority]
  release(thread, lockOwner + Owner.lock)
  if (isLower) return 0
  const seen = Atomics.load(words, index)
  if (holderOf(seen) !== 0) return -EAGAIN_NOW
  const taken = (seen & FUTEX_OWNER_DIED) | FUTEX_WAITERS | tid
  if (Atomics.compareExchange(words, index, seen, taken) !== seen) return -EAGAIN_NOW
  clearBoosted(context, futex)
  adopt(context, futex, lockOwner)
  return LOCKED
}

/** Makes the owner the holder of the futex's lock: it inherits from the waiters. The futex is locked. */
export function adopt(context: FutexContext, futex: number, lockOwner: number): void {
  const { thread } = context
  acquire(thread, lockOwner + Owner.lock)
  attachOwner(context, futex, lockOwner)
  release(thread, lockOwner + Owner.lock)
  updateTop(context, futex)
}

/** Whether the waiter was called to take its lock. */
export function isCalled(i32: Int32Array, waiter: number): boolean {
  return Atomics.load(i32, waiter + Waiter.called) !== 0
}

/**
 * The sleeper of a called waiter tries to take the lock. Afterwards it holds the lock, and the waiter is off
 * the queue and QUEUE_WOKEN; or another owner was first, and the waiter stays queued; or it is
 * QUEUE_RESTARTED. No lock is held; the caller signals the wake queue.
 */
export function tryToTake(context: FutexContext, waiter: number): void {
  const { i32, thread } = context
  context.enter()
  const futex = Atomics.load(i32, waiter + Waiter.queue)
  if (futex > 0) {
    acquire(thread, futex + Futex.lock)
    if (Atomics.load(i32, waiter + Waiter.queue) === futex) {
      Atomics.store(i32, waiter + Waiter.called, 0) // (D)
      if (Atomics.load(i32, futex + Futex.pi) === 0) takeCalled(context, futex, waiter)
      if (waitedLong(context, waiter)) i32[waiter + Waiter.since] = STARVING
      unlockFutex(context, futex)
    } else release(thread, futex + Futex.lock)
  }
  context.leave()
}

function waitedLong({ i32, now }: FutexContext, waiter: number): boolean {
  const since = i32[waiter + Waiter.since]
  return since !== STARVING && (((now() & 0x7fff_ffff) - since) & 0x7fff_ffff) >= STARVING_MS
}

/** In [P3], [P5] or [P6], or in [11] of pi.ts. The futex is locked. */
function takeCalled(context: FutexContext, futex: number, waiter: number): void {
  const { i32 } = context
  const mapped = context.buffers.get(i32[futex + Futex.owner])
  // A task has moved to a CPU that has not mapped the buffer yet: its restarted call does so.
  if (!mapped?.isBacked(i32)) return leaveQueue(context, futex, waiter, QUEUE_RESTARTED)
  const { i32: words } = mapped
  const index = i32[futex + Futex.index]
  for (;;) {
    const seen = Atomics.load(words, index)
    let died = seen & FUTEX_OWNER_DIED
    if (holderOf(seen) !== 0) {
      const result = attachHolder(context, futex, words, index, seen)
      if (result === -EAGAIN_NOW) continue
      if (result === 0) clearBoosted(context, futex)
      if (result !== -ESRCH) {
        // The holder is ending, or waits itself: the restarted call handles these cases.
        if (result !== 0 || updateTop(context, futex) !== 0)
          leaveQueue(context, futex, waiter, QUEUE_RESTARTED)
        return
      }
      died = FUTEX_OWNER_DIED
    }
    if (i32[waiter + Waiter.priority] > i32[topWaiter(i32, futex) + Waiter.priority]) {
      callTop(context, futex)
      return
    }
    const free = holderOf(seen) === 0 ? seen : waitedFor(context, seen)
    if (take(context, futex, waiter, words, index, free, died)) return
  }
}

/** Gives the lock to the waiter. False: the word has changed. */
function take(
  context: FutexContext,
  futex: number,
  waiter: number,
  words: Int32Array,
  index: number,
  seen: number,
  died: number,
): boolean {
  const { i32 } = context
  const lockOwner = i32[waiter + Waiter.lockOwner]
  const alone = listCount(i32, futex + Futex.waiters) === 1
  const taken = died | (alone ? 0 : FUTEX_WAITERS) | i32[lockOwner + Owner.tid]
  if (Atomics.compareExchange(words, index, seen, taken) !== seen) return false
  clearBoosted(context, futex)
  leaveQueue(context, futex, waiter, QUEUE_WOKEN)
  return true
}

function leaveQueue(
  context: FutexContext,
  futex: number,
  waiter: number,
  end: typeof QUEUE_WOKEN | typeof QUEUE_RESTARTED,
): void {
  const { i32 } = context
  const lockOwner = i32[waiter + Waiter.lockOwner]
  unblock(context, waiter)
  listRemove(i32, futex + Futex.waiters, waiter)
  Atomics.sub(i32, i32[futex + Futex.bucket] + Bucket.waiters, 1)
  if (end === QUEUE_WOKEN && topWaiter(i32, futex) !== 0) adopt(context, futex, lockOwner)
  else updateTop(context, futex)
  Atomics.store(i32, waiter + Waiter.queue, end)
}
