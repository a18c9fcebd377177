import { assert } from '../../arena/assert.ts'
import type { FutexContext } from '../core/context.ts'
import { FUTEX_OFFSET } from './mutexrecord.ts'
import { type LockOwner, NO_LIST } from '../core/owner.ts'
import { pairAt, pairIndex, prepareRobustList } from './robust.ts'

/**
 * The owner's side of its robust list: plain stores, in an order that leaves a valid list at every step.
 * After a death only the `next` pointers are followed; `prev`, the pair after it, is for the owner alone,
 * which removes an entry without a search.
 *
 * The last lock that the owner took is not on the list: it stays pending, where a walk finds it as well,
 * until the owner locks another or unlocks one of the others. So a lock and unlock with none in between costs
 * two stores.
 *
 *   held by the owner      pending    on the list
 *   nothing                0          nothing
 *   A                      A          nothing
 *   A, then B              B          A
 *   B, after A's unlock    0          B: it was put there so that A could be pending during its unlock
 *
 * So a pending lock is not on the list, and is held, except while it is being locked. `owner.last` says the
 * same to the fast path, which then need not read the pending word.
 */
const PREV = 1

/** Puts the pending lock, which is held, on the list. An owner without a list gets one. */
export function makeRoom(context: FutexContext, owner: LockOwner): void {
  if (owner.headPairs === NO_LIST) prepareRobustList(context, owner, FUTEX_OFFSET)
  const held = owner.pending[0]
  if (held !== 0) linkEntry(context, owner, held)
  clearPending(owner)
}

/** The owner did not get the pending lock, or has unlocked it. */
export function clearPending(owner: LockOwner): void {
  owner.pending[0] = 0
  owner.last = null
}

/** Before the unlock of a lock that is not pending: makes it pending, and removes it from the list. */
export function unlinkEntry(context: FutexContext, owner: LockOwner, entry: number): void {
  makeRoom(context, owner)
  const { headPairs, headNext, head } = owner
  owner.pending[0] = entry
  const pairs = pairOf(context, entry)
  const at = pairIndex(entry)
  const next = pairs[at]
  const prev = pairs[at + PREV]
  if (prev === head) headPairs[headNext] = next
  else pairOf(context, prev)[pairIndex(prev)] = next
  if (next !== head) pairOf(context, next)[pairIndex(next) + PREV] = prev
}

/** Puts the entry of a held lock first on the list. It is still pending. */
function linkEntry(context: FutexContext, owner: LockOwner, entry: number): void {
  const { headPairs, headNext, head } = owner
  const pairs = pairOf(context, entry)
  const at = pairIndex(entry)
  const next = headPairs[headNext]
  pairs[at] = next
  pairs[at + PREV] = head
  if (next !== head) pairOf(context, next)[pairIndex(next) + PREV] = entry
  headPairs[headNext] = entry
}

function pairOf(context: FutexContext, pointer: number): Float64Array {
  const pairs = pairAt(context, pointer)
  assert(pairs !== undefined, 'a lock that is held is in a buffer that is mapped')
  return pairs
}
