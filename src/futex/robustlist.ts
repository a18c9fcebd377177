import { assert } from '../arena/assert.ts'
import type { FutexContext } from './context.ts'
import type { LockOwner } from './owner.ts'
import { pairAt, pairIndex } from './robust.ts'

/**
 * An owner's own side of its robust list: plain stores, in an order that leaves a list which can be followed at every step. Only
 * `next` pointers are followed after a death; `prev`, which is the pair after it and lets an entry be taken out without a search, is
 * nobody else's business.
 */
const PREV = 1

/** Puts a lock's entry first on the list. The lock is the owner's, and pending. */
export function linkEntry(
  context: FutexContext,
  owner: LockOwner,
  pairs: Float64Array,
  at: number,
  entry: number,
): void {
  const { headPairs, headNext, head } = owner
  const next = headPairs[headNext]
  pairs[at] = next
  pairs[at + PREV] = head
  if (next !== head) pairOf(context, next)[pairIndex(next) + PREV] = entry
  headPairs[headNext] = entry
}

/** Takes a lock's entry off. The lock is the owner's, and pending. */
export function unlinkEntry(context: FutexContext, owner: LockOwner, pairs: Float64Array, at: number): void {
  const { headPairs, headNext, head } = owner
  const next = pairs[at]
  const prev = pairs[at + PREV]
  if (prev === head) headPairs[headNext] = next
  else pairOf(context, prev)[pairIndex(prev)] = next
  if (next !== head) pairOf(context, next)[pairIndex(next) + PREV] = prev
}

function pairOf(context: FutexContext, pointer: number): Float64Array {
  const pairs = pairAt(context, pointer)
  assert(pairs !== undefined, 'a lock that is held is in a buffer that is mapped')
  return pairs
}
