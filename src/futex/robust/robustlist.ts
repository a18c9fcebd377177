import { assert } from '../../arena/assert.ts'
import type { FutexContext } from '../core/context.ts'
import { FUTEX_OFFSET } from './mutexrecord.ts'
import { type LockOwner, NO_LIST } from '../core/owner.ts'
import { pairAt, pairIndex, prepareRobustList } from './robust.ts'

/**
 * An owner's own side of its robust list: plain stores, in an order that leaves a list which can be followed
 * at every step. Only `next` pointers are followed after a death; `prev`, which is the pair after it and lets
 * an entry be taken out without a search, is nobody else's business.
 *
 * The lock that was taken last is not on the list at all: it stays pending, which finds it just as well,
 * until another is taken, or one of the others let go. So a lock that is taken and let go with none in
 * between costs two stores.
 *
 *   held by the owner      pending    on the list
 *   nothing                0          nothing
 *   A                      A          nothing
 *   A, then B              B          A
 *   B, once A is let go    0          B: it was put there so that A could be pending while it was let go
 *
 * So what is pending is not on the list, and is held, but for the time in which it is being taken.
 * `owner.last` says the same to the fast path, which need not read what it has written.
 */
const PREV = 1

/**
 * Nothing is pending any more: what was, a lock that is held, is on the list. An owner that has no list yet
 * gets one.
 */
export function makeRoom(context: FutexContext, owner: LockOwner): void {
  if (owner.headPairs === NO_LIST) prepareRobustList(context, owner, FUTEX_OFFSET)
  const held = owner.pending[0]
  if (held !== 0) linkEntry(context, owner, held)
  clearPending(owner)
}

/** The lock was not had, or has been let go. */
export function clearPending(owner: LockOwner): void {
  owner.pending[0] = 0
  owner.last = null
}

/** A lock that is held, and not the pending one, is about to be let go: it is pending, and off the list. */
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

/** Puts the entry of a lock that is held first on the list. It is pending still. */
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
