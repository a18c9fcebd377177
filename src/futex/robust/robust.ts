import type { FutexContext } from '../core/context.ts'
import { EINVAL, ESRCH } from '../core/errno.ts'
import {
  findOwner,
  FUTEX_OWNER_DIED,
  FUTEX_TID_MASK,
  FUTEX_WAITERS,
  holderOf,
  type LockOwner,
  NO_LIST,
  SOMETHING,
} from '../core/owner.ts'
import { Owner } from '../core/records.ts'
import type { MappedBuffer } from '../core/space.ts'
import { MATCH_ANY, wakeKey } from '../operations/waitwake.ts'

/**
 * Robust lists. An owner keeps a list of the locks that it holds, in shared memory. When the owner ends, in
 * whatever way, the ending or the recovering thread walks the list and marks each lock that the owner held.
 * Only the registration of the list's head is a call, once for each owner.
 *
 *   head    [0] [1]  the first entry, or the head itself when the list is empty
 *           [2]      from an entry to its lock's word, in bytes
 *           [4] [5]  pending: the entry of a lock that is just being locked or unlocked, or 0
 *   entry   [0] [1]  the next entry; the last one's is the head
 *
 * A pointer is a float64, so that it is written in one step: which buffer, times 2^32, plus the offset in
 * bytes; the lowest bit says that the lock inherits priorities. The name of a buffer is the number of its
 * backing record and a part of that record's lives, in 21 bits; 0 is the arena, which has the heads that the
 * owners did not register.
 *
 *   lock                                     unlock
 *   ----                                     ------
 *   (A) pending = entry                      (A) pending = entry
 *   word: 0 -> TID                           (C) off the list
 *   (B) on the list                          word: TID -> 0; wakes one
 *   (D) pending = 0                          (D) pending = 0
 *
 * Between (A) and (D) a held lock is on the list, or pending, or both; so at every step the walk finds a word
 * with a dead TID. A pending word that is free may have lost its wakeup: one waiter is woken, perhaps in
 * vain. (B) need not come before the next lock or unlock: the mutexes leave the last lock pending
 * (robustlist.ts).
 */
export const ROBUST_HEAD_BYTES = 24
export const ROBUST_LIST_LIMIT = 2048
export const ROBUST_PI = 1
/** The buffer name of the arena. */
const ARENA = 0

const HEAD_NEXT = 0
const HEAD_FUTEX_OFFSET = 2
const HEAD_PENDING = 4
const BUFFER = 0x1_0000_0000

/** A pointer to a byte of a named buffer. */
export function pointerTo(buffer: number, offset: number): number {
  return buffer * BUFFER + offset
}

/** The buffer of this name, if this thread has mapped it. */
function bufferNamed(context: FutexContext, name: number): MappedBuffer | undefined {
  const { backings } = context.layout
  const slot = (name % 2 ** (32 - Math.clz32(backings.capacity))) - 1
  if (name <= 0 || slot < 0 || slot >= backings.capacity) return undefined
  const mapped = context.buffers.get(backings.pointerAt(slot))
  return mapped?.name === name && mapped.isBacked(context.i32) ? mapped : undefined
}

/** The memory that a pointer points into, and the index of its pair of words there, in float64s. */
export function pairAt(context: FutexContext, pointer: number): Float64Array | undefined {
  const buffer = Math.floor(pointer / BUFFER)
  return buffer === ARENA ? context.arena.f64 : bufferNamed(context, buffer)?.f64
}

/** The index of a pointer's pair in its buffer. */
export function pairIndex(pointer: number): number {
  return ((pointer % BUFFER) - (pointer % 2)) / 8
}

/**
 * set_robust_list: registers the head of the owner's list, on an even word of a mapped buffer; null: no list.
 * 0, or -EINVAL when the length is not that of a head. As on Linux, the list is not read before the owner
 * ends.
 */
export function setRobustList(
  context: FutexContext,
  owner: LockOwner,
  head: { readonly mapped: MappedBuffer; readonly index: number } | null,
  bytes: number,
): number {
  if (bytes !== ROBUST_HEAD_BYTES) return -EINVAL
  if (head === null) {
    context.arena.f64[(owner.record + Owner.robust) >> 1] = 0
    forget(owner)
    return 0
  }
  if (head.index % 2 !== 0) return -EINVAL
  const pointer = pointerTo(head.mapped.name, head.index * 4)
  context.arena.f64[(owner.record + Owner.robust) >> 1] = pointer
  forget(owner)
  return 0
}

/** Makes the next lock of the owner check the owner's list first. */
function forget(owner: LockOwner): void {
  owner.headPairs = NO_LIST
  owner.pending = NO_LIST
  owner.last = SOMETHING
}

/**
 * Prepares the owner's list for mutexes: an empty one with its head in the arena, if the owner registered
 * none. Throws if it registered one whose offset from entry to word differs from that of a mutex.
 */
export function prepareRobustList(context: FutexContext, owner: LockOwner, futexOffset: number): void {
  const { i32, f64 } = context.arena
  const at = (owner.record + Owner.robust) >> 1
  if (f64[at] === 0) {
    const index = owner.record + Owner.head
    f64[(index + HEAD_NEXT) >> 1] = pointerTo(ARENA, index * 4)
    i32[index + HEAD_FUTEX_OFFSET] = futexOffset
    f64[(index + HEAD_PENDING) >> 1] = 0
    f64[at] = pointerTo(ARENA, index * 4)
  }
  const head = f64[at]
  const pairs = pairAt(context, head)
  if (pairs === undefined || offsetAt(context, head) !== futexOffset) {
    throw new RangeError(
      `the robust list of this owner has the futex offset ${offsetAt(context, head)}, and mutexes have ${futexOffset}`,
    )
  }
  owner.head = head
  owner.headPairs = pairs
  owner.headNext = pairIndex(head) + HEAD_NEXT / 2
  const pending = pairs.byteOffset + pairIndex(head) * 8 + HEAD_PENDING * 4
  owner.pending = new Float64Array(pairs.buffer, pending, 1)
}

/**
 * get_robust_list: a pointer to the head, 0 for none, and its length; or -ESRCH. A TID of 0 means `owner`.
 */
export function getRobustList(
  context: FutexContext,
  owner: LockOwner,
  tid: number,
): { readonly head: number; readonly bytes: number } | number {
  const record = tid === 0 ? owner.record : findOwner(context, tid)
  if (record === 0) return -ESRCH
  return { head: context.arena.f64[(record + Owner.robust) >> 1], bytes: ROBUST_HEAD_BYTES }
}

/** An invalid pointer: out of its buffer, or to no buffer. */
const NOWHERE = -1

/** Reads the pointer that a pointer points to. */
function fetch(context: FutexContext, pointer: number): number {
  const pairs = pairAt(context, pointer)
  const at = pairIndex(pointer)
  if (pairs === undefined || !Number.isInteger(at) || at >= pairs.length) return NOWHERE
  const found = pairs[at]
  return Number.isSafeInteger(found) && found >= 0 ? found : NOWHERE
}

function withoutBit(pointer: number): number {
  return pointer - (pointer % 2)
}

/**
 * Walks the list of an owner that has ended. Stops at the first invalid pointer, and after ROBUST_LIST_LIMIT
 * entries, because a list may be circular. The waiters to wake are in the wake queue.
 */
export function exitRobustList(context: FutexContext, owner: number): void {
  const { i32, arena } = context
  const head = arena.f64[(owner + Owner.robust) >> 1]
  if (head === 0) return
  const tid = Atomics.load(i32, owner + Owner.tid)
  let entry = fetch(context, head + HEAD_NEXT * 4)
  const futexOffset = offsetAt(context, head)
  const pending = fetch(context, head + HEAD_PENDING * 4)
  if (entry === NOWHERE || futexOffset === undefined || pending === NOWHERE) return
  for (let limit = ROBUST_LIST_LIMIT; limit > 0 && withoutBit(entry) !== head; limit--) {
    // Before the lock is marked: after that, another owner may use its memory.
    const next = fetch(context, withoutBit(entry))
    const isPending = withoutBit(entry) === withoutBit(pending)
    if (!isPending && !markDead(context, entry, futexOffset, tid, false)) return
    if (next === NOWHERE) return
    entry = next
  }
  if (pending !== 0) markDead(context, pending, futexOffset, tid, true)
}

/** Whether a living owner holds a lock of its list. Called on the thread that runs the owner. */
export function holdsRobust(context: FutexContext, owner: number): boolean {
  const { i32, arena } = context
  const head = arena.f64[(owner + Owner.robust) >> 1]
  if (head === 0) return false
  const tid = Atomics.load(i32, owner + Owner.tid)
  const futexOffset = offsetAt(context, head)
  if (futexOffset === undefined) return false
  let entry = fetch(context, head + HEAD_NEXT * 4)
  for (let limit = ROBUST_LIST_LIMIT; limit > 0 && entry > 0 && withoutBit(entry) !== head; limit--) {
    if (isHeldBy(context, entry, futexOffset, tid)) return true
    entry = fetch(context, withoutBit(entry))
  }
  const pending = fetch(context, head + HEAD_PENDING * 4)
  return pending > 0 && isHeldBy(context, pending, futexOffset, tid)
}

function isHeldBy(context: FutexContext, entry: number, futexOffset: number, tid: number): boolean {
  const offset = (withoutBit(entry) % BUFFER) + futexOffset
  const words = bufferNamed(context, Math.floor(entry / BUFFER))?.i32
  if (words === undefined || offset % 4 !== 0 || offset < 0 || offset / 4 >= words.length) return false
  return holderOf(Atomics.load(words, offset / 4)) === tid
}

function offsetAt(context: FutexContext, head: number): number | undefined {
  const buffer = Math.floor(head / BUFFER)
  const words = buffer === ARENA ? context.i32 : bufferNamed(context, buffer)?.i32
  return words?.[(head % BUFFER) / 4 + HEAD_FUTEX_OFFSET]
}

/** Marks a lock of an owner that has ended, if the owner still holds it. False: there is no such word. */
function markDead(
  context: FutexContext,
  entry: number,
  futexOffset: number,
  tid: number,
  pending: boolean,
): boolean {
  const pi = entry % 2 === ROBUST_PI
  const offset = (withoutBit(entry) % BUFFER) + futexOffset
  const mapped = bufferNamed(context, Math.floor(entry / BUFFER))
  if (offset % 4 !== 0 || mapped === undefined) return false
  const { i32: words, backing } = mapped
  const index = offset / 4
  if (index < 0 || index >= words.length) return false
  for (;;) {
    const seen = Atomics.load(words, index)
    // The owner died between unlocking and waking, or it was woken and died before it locked: another waiter
    // gets the wakeup.
    if (pending && !pi && (seen & FUTEX_TID_MASK) === 0) {
      wakeKey(context, backing, index, 1, MATCH_ANY)
      return true
    }
    if (holderOf(seen) !== tid) return true
    const dead = (seen & FUTEX_WAITERS) | FUTEX_OWNER_DIED
    if (Atomics.compareExchange(words, index, seen, dead) !== seen) continue
    // The waiters of a PI lock get it with the owner's other PI locks (exit.ts).
    if (!pi && (seen & FUTEX_WAITERS) !== 0) wakeKey(context, backing, index, 1, MATCH_ANY)
    return true
  }
}
