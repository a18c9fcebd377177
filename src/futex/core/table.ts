import { assert } from '../../arena/assert.ts'
import { initList, listIsEmpty, ListNode } from '../../arena/trees/list.ts'
import { lockRank } from '../../arena/sync/lockorder.ts'
import { acquire, Lock, release } from '../../arena/sync/spinlock.ts'
import { clearBoosted } from '../pi/boost.ts'
import type { FutexContext } from './context.ts'
import { ALIVE, Bucket, DEAD, FREE_FUTEX, Futex } from './records.ts'

/**
 * The table of futexes: from a key (owner, index) to the queue of its waiters. A bucket's lock guards its
 * chain. No thread waits for a futex's lock while it holds a bucket's lock:
 *
 *   finder                                   last waiter of that futex
 *   ------                                   -------------------------
 *   bucket lock: finds the futex, ALIVE
 *   bucket unlock
 *                                            futex lock: the queue is empty: (A) DEAD; unlock
 *                                            bucket lock: unlinks it from the chain; unlock; callRcu
 *   futex lock: (B) DEAD, so it searches again
 *
 * The finder is inside an RCU read section, so the memory that it locks at (B) is still that futex.
 */

const queueRank: number = lockRank('futex queue')

/** The bucket of a key, as a pointer. */
export function bucketOf(context: FutexContext, owner: number, index: number): number {
  const { table, buckets } = context.layout
  let hash = Math.imul(owner, 0x9e37_79b1) ^ Math.imul(index + 0x85eb_ca6b, 0xc2b2_ae35)
  hash ^= hash >>> 15
  hash = Math.imul(hash, 0x2c1b_3c6d)
  return table.start + ((hash >>> 12) & (buckets - 1)) * Bucket.words
}

/** Locks and returns the live futex of this key, or 0. `hint` is a handle that this thread cached, or 0. */
export function lockFutex(
  context: FutexContext,
  bucket: number,
  owner: number,
  index: number,
  hint: number,
): number {
  const { i32, thread, layout } = context
  if (hint !== 0) {
    const futex = layout.futexes.resolve(i32, hint)
    if (futex !== 0 && lockIfKey(context, futex, owner, index, hint)) return futex
  }
  for (;;) {
    acquire(thread, bucket + Bucket.lock)
    const futex = findInChain(i32, bucket, owner, index)
    release(thread, bucket + Bucket.lock)
    if (futex === 0 || lockIfKey(context, futex, owner, index)) return futex // (B)
  }
}

/** How often a thread quiesces before it reports that there is no room: a second. */
const QUIESCES_MAX = 1000

/**
 * Allocates a slot for a futex, or throws ArenaFullError. Dead futexes become free slots only after a grace
 * period, and one descheduled thread in the middle of a call delays all of them. So a caller without locks
 * waits for that.
 */
export function slotFor(context: FutexContext, mayQuiesce: boolean): number {
  const { thread, layout } = context
  const most = mayQuiesce ? QUIESCES_MAX : 0
  for (let rests = 0; rests < most; rests++) {
    const slot = layout.futexes.tryAllocate(thread)
    if (slot !== 0) return slot
    if (!context.quiesce()) break
  }
  return layout.futexes.allocate(thread)
}

/**
 * As lockFutex, but creates the futex if it does not exist, in the slot `spare` if the caller has one.
 * Without `spare` it throws ArenaFullError when there is no room, and changes nothing. `mayQuiesce`: the
 * caller has found no futex yet in this call.
 */
export function lockOrCreateFutex(
  context: FutexContext,
  bucket: number,
  owner: number,
  index: number,
  hint: number,
  spare = 0,
  mayQuiesce = true,
): number {
  const { i32, thread, layout } = context
  for (;;) {
    const found = lockFutex(context, bucket, owner, index, hint)
    if (found !== 0) return found
    const made = spare === 0 ? slotFor(context, mayQuiesce) : spare
    // The lock itself is not initialized: see lockIfKey.
    i32[made + Futex.lock + Lock.rank] = queueRank
    initList(i32, made + Futex.waiters)
    i32[made + Futex.owner] = owner
    i32[made + Futex.index] = index
    i32[made + Futex.bucket] = bucket
    i32[made + Futex.pi] = 0
    i32[made + Futex.boosted] = 0
    i32[made + Futex.contended + ListNode.list] = 0
    Atomics.store(i32, made + Futex.state, ALIVE)
    acquire(thread, bucket + Bucket.lock)
    const other = findInChain(i32, bucket, owner, index)
    if (other === 0) {
      // Locked before another thread can find it empty and take it for a leftover; and, if this thread dies,
      // recovery finds it by its lock.
      acquire(thread, made + Futex.lock)
      i32[made + Futex.chain] = i32[bucket + Bucket.first]
      i32[bucket + Bucket.first] = made
      layout.futexes.publish(i32, made)
    }
    release(thread, bucket + Bucket.lock)
    if (other === 0) return made
    if (spare === 0) layout.futexes.free(i32, made)
  }
}

/**
 * Frees a word if it has no futex: a thread that is about to wait there has none either, and reads the word
 * after it has created one. Returns the old word; `seen` means that it is free now. -1: there is a futex. (A
 * held word with WAITERS is never -1: its TID is not all ones.)
 */
export function freeWithoutFutex(
  context: FutexContext,
  bucket: number,
  owner: number,
  index: number,
  words: Int32Array,
  seen: number,
): number {
  const { i32, thread } = context
  acquire(thread, bucket + Bucket.lock)
  const futex = findInChain(i32, bucket, owner, index)
  const before = futex === 0 ? Atomics.compareExchange(words, index, seen, 0) : -1
  release(thread, bucket + Bucket.lock)
  return before
}

/** Unlocks the futex, and removes it if it has no waiters left. */
export function unlockFutex(context: FutexContext, futex: number): void {
  const { i32, thread } = context
  const ended = listIsEmpty(i32, futex + Futex.waiters) && i32[futex + Futex.pi] === 0
  if (ended) {
    clearBoosted(context, futex)
    // If this thread dies from here on, recovery finds the futex that it was about to free.
    context.rcu.see(thread, futex + Futex.rcu)
    Atomics.store(i32, futex + Futex.state, DEAD) // (A)
  }
  release(thread, futex + Futex.lock)
  if (ended) retire(context, futex)
}

/** As unlockFutex, for a futex that was locked without a key check: it may have been dead by then. */
export function unlockFutexUnlessDead(context: FutexContext, futex: number): void {
  const { i32, thread } = context
  if (Atomics.load(i32, futex + Futex.state) === ALIVE) unlockFutex(context, futex)
  else release(thread, futex + Futex.lock)
}

/**
 * Locks the futex if it is the live one of this key. Inside an RCU section, so a futex from a chain stays a
 * futex. One from a cached `handle` may be freed and created again, since a grace period may have ended just
 * before this thread entered:
 *
 *   finder, by a handle                         freeing thread
 *   -------------------                         --------------
 *                                               (A) no thread is inside: the grace period is over
 *   (B) enters
 *   (C) the handle is valid
 *                                               (D) frees the slot
 *                                               (E) creates a futex in it for the same word, not finished yet
 *   (F) locks the slot
 *   (G) it is alive, (H) and the handle is still valid: else it is another futex
 *
 * Alive at (G), and the same life at (H): it was alive in that life, and while its lock is held no thread
 * ends it. (E) never resets the lock: a finder that holds it for this check keeps it.
 */
export function lockIfKey(
  context: FutexContext,
  futex: number,
  owner: number,
  index: number,
  handle = 0,
): boolean {
  const { i32, thread, layout } = context
  acquire(thread, futex + Futex.lock) // (F)
  const isAlive = Atomics.load(i32, futex + Futex.state) === ALIVE // (G)
  if (
    isAlive &&
    (handle === 0 || layout.futexes.resolve(i32, handle) === futex) && // (H)
    i32[futex + Futex.owner] === owner &&
    i32[futex + Futex.index] === index
  ) {
    return true
  }
  release(thread, futex + Futex.lock)
  return false
}

function findInChain(i32: Int32Array, bucket: number, owner: number, index: number): number {
  for (let futex = i32[bucket + Bucket.first]; futex !== 0; futex = i32[futex + Futex.chain]) {
    if (i32[futex + Futex.owner] !== owner || i32[futex + Futex.index] !== index) continue
    if (Atomics.load(i32, futex + Futex.state) === ALIVE) return futex
  }
  return 0
}

/**
 * Unlinks a dead futex from its chain, and frees it after a grace period. `left`: a dead thread left it, so
 * it may be off the chain already.
 */
export function retire(context: FutexContext, futex: number, left = false): void {
  const { i32, thread } = context
  const bucket = i32[futex + Futex.bucket]
  acquire(thread, bucket + Bucket.lock)
  let at = bucket + Bucket.first
  while (i32[at] !== futex && i32[at] !== 0) at = i32[at] + Futex.chain
  if (i32[at] === futex) i32[at] = i32[futex + Futex.chain]
  else assert(left, 'a dead futex is on the chain of its bucket')
  release(thread, bucket + Bucket.lock)
  context.rcu.callRcu(thread, futex + Futex.rcu, FREE_FUTEX)
}
