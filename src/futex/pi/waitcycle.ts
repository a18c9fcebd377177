import { acquire, release } from '../../arena/sync/spinlock.ts'
import type { FutexContext } from '../core/context.ts'
import { Futex, Owner, Waiter } from '../core/records.ts'

/**
 * Whether a circle that a walk came upon (pichain.ts, [5]) is one. The walk read its links one after the
 * other with nothing held in between, so they may never have been true together. O holds H, and comes to F:
 *
 *   walker, for O                            A, holds F, waits at G     B, holds G
 *   -------------                            ----------------------     ----------
 *   F is A's, who waits at G, which is B's
 *                                            gives up
 *                                                                       comes to H: waits
 *   B waits at H, which is O's: a circle? A runs, and will let F go
 *
 * And an owner's record is used again when the owner has ended, so one place in the arena may be two links:
 *
 *   walker, for O                            A, holds F, waits at G     B, holds G             Z
 *   -------------                            ----------------------     ----------             -
 *   F is A's, who waits at G, which is B's
 *                                            has G                      ends: G is A's
 *                                                                                              is made in B's record
 *                                                                                              comes to H: waits
 *   B's record waits at H, which is O's: a circle? A runs
 *
 * So it goes round twice more, from O back to O, and compares. A wait is known by its waiter and by the
 * number that it got when it was queued at this lock: the same in both rounds, it went on all the while from
 * the one look to the other. Who waits lets go of nothing and gets nothing else, so the lock that led to it
 * was its own for as long. Each link held, then, from its look in the first round to its look in the second;
 * all of them held at once in between.
 *
 *   first round     l1     l2     l3
 *   second round                      |  l1     l2     l3
 *                                     all of them hold here
 *
 * None is missed: the links of a deadlock do not change, and the walk of whoever queued last finds all of
 * them. A circle that O leads to and is not part of is another's to find. A chain of more than CHAIN_MAX
 * links counts as one, as on Linux.
 */

/** As deep as Linux goes. */
export const CHAIN_MAX = 1024

/** No lock is held; inside an RCU section. */
export function waitsForItself(context: FutexContext, origin: number): boolean {
  const first: number[] = []
  const second: number[] = []
  if (!goRound(context, origin, first) || !goRound(context, origin, second)) return false
  return first.length === second.length && first.every((link, at) => link === second[at])
}

/**
 * Notes the waits from an owner back to itself, or as deep as a chain may be. False: they lead to one who
 * does not wait, or to others.
 */
function goRound(context: FutexContext, origin: number, links: number[]): boolean {
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
