import { acquire, release } from '../../arena/sync/spinlock.ts'
import type { FutexContext } from '../core/context.ts'
import { Futex, Owner, Waiter } from '../core/records.ts'

/**
 * Decides whether a cycle that a walk has found (pichain.ts, [5]) is a deadlock. The walk read its links one
 * after the other without locks in between, so they may never have existed together. O holds H, and locks F:
 *
 *   walker, for O                            A, holds F, waits at G     B, holds G
 *   -------------                            ----------------------     ----------
 *   A owns F and waits at G, which B owns
 *                                            gives up
 *                                                                       locks H: waits
 *   B waits at H, which O owns: a cycle? A runs, and will unlock F
 *
 * And an owner's record is reused when the owner has ended, so one record may be two links:
 *
 *   walker, for O                            A, holds F, waits at G   B, holds G        Z
 *   -------------                            ----------------------   ----------        -
 *   A owns F and waits at G, which B owns
 *                                            has G                    ends: A owns G
 *                                                                                       takes B's record,
 *                                                                                       locks H: waits
 *   B's record waits at H, which O owns: a cycle? A runs
 *
 * So the cycle is walked twice more, from O back to O, and compared. A wait is identified by its waiter and
 * by the number that it got when it was queued at this lock. If it is the same in both rounds, it lasted from
 * the first read to the second. A waiting owner unlocks nothing and gets no other lock, so the lock that led
 * to it was its own for as long. So each link held from its read in the first round to its read in the
 * second, and all of them held together in between.
 *
 *   first round     l1     l2     l3
 *   second round                      |  l1     l2     l3
 *                                     all of them hold here
 *
 * No deadlock is missed: its links do not change, and the walk of the owner that queued last finds all of
 * them. A cycle that O leads to without being part of it is found by another walk. A chain of more than
 * CHAIN_MAX links counts as a deadlock, as on Linux.
 */

/** The same depth as Linux. */
export const CHAIN_MAX = 1024

/** No lock is held; inside an RCU section. */
export function waitsForItself(context: FutexContext, origin: number): boolean {
  const first: number[] = []
  const second: number[] = []
  if (!collectCycle(context, origin, first) || !collectCycle(context, origin, second)) return false
  return first.length === second.length && first.every((link, at) => link === second[at])
}

/**
 * Collects the waits from an owner back to itself, up to CHAIN_MAX. False: they lead to an owner that does
 * not wait, or to another cycle.
 */
function collectCycle(context: FutexContext, origin: number, links: number[]): boolean {
  const { i32, thread } = context
  const met = new Set<number>()
  let owner = origin
  do {
    if (met.has(owner)) return false
    met.add(owner)
    acquire(thread, owner + Owner.lock)
    const waiter = i32[owner + Owner.blockedOn]
    const futex = waiter === 0 ? 0 : Atomics.load(i32, waiter + Waiter.queue)
    release(thread, owner + Owner.lock)
    if (futex <= 0) return false
    acquire(thread, futex + Futex.lock)
    acquire(thread, owner + Owner.lock)
    const waits =
      i32[owner + Owner.blockedOn] === waiter && Atomics.load(i32, waiter + Waiter.queue) === futex
    release(thread, owner + Owner.lock)
    if (waits) links.push(waiter, i32[waiter + Waiter.order])
    owner = waits ? Atomics.load(i32, futex + Futex.pi) : 0
    release(thread, futex + Futex.lock)
    if (owner === 0) return false
  } while (owner !== origin && met.size <= CHAIN_MAX)
  return true
}
