import type { FutexContext } from './context.ts'
import { EINVAL, ESRCH } from './errno.ts'
import { findOwner, FUTEX_OWNER_DIED, FUTEX_TID_MASK, FUTEX_WAITERS, type LockOwner } from './owner.ts'
import { Owner } from './records.ts'
import type { MappedBuffer } from './space.ts'
import { MATCH_ANY, wakeKey } from './waitwake.ts'

/**
 * Robust lists. An owner keeps a list of the locks that it holds, in memory that it shares with everyone; when it ends, in
 * whatever way, someone goes through the list and marks each lock whose owner it was. Nothing in this is done by a call but the
 * registration, once, of where the list begins.
 *
 *   head    [0] [1]  the first entry, or the head itself when the list is empty
 *           [2]      from an entry to its lock's word, in bytes
 *           [3] [4]  pending: the entry of a lock that is just being taken or let go; 0: none
 *   entry   [0] [1]  the next entry; the last one's is the head
 *
 * A pointer is two words: which buffer, and the offset in bytes; the lowest bit of the offset says that the lock passes
 * priorities on. The name of a buffer is the number of its backing with the lives that this has had; ARENA is the arena itself,
 * where the heads are that nobody brought.
 *
 *   taking                                   letting go                              died
 *   ------                                   ----------                              ----
 *   (A) pending = entry                      (A) pending = entry
 *   word: 0 -> TID                           (C) off the list
 *   (B) on the list                          word: TID -> 0; wakes one
 *   (D) pending = 0                          (D) pending = 0
 *
 * Between (A) and (D) a lock is on the list, or pending, or both, if it is held at all; so at every step the word that holds a dead
 * TID is found. A word that is free there and pending may have lost its wakeup: one waiter is woken for nothing.
 */
export const ROBUST_HEAD_BYTES = 20
export const ROBUST_LIST_LIMIT = 2048
export const ROBUST_PI = 1
/** The buffer name of the arena. */
export const ARENA = -1

export const HEAD_NEXT = 0
export const HEAD_FUTEX_OFFSET = 2
export const HEAD_PENDING = 3

/** A buffer that this thread has mapped, by its name; undefined: it has not. */
export function bufferNamed(context: FutexContext, name: number): MappedBuffer | undefined {
  const { backings } = context.layout
  const slot = (name & ((1 << (32 - Math.clz32(backings.capacity))) - 1)) - 1
  if (name <= 0 || slot < 0 || slot >= backings.capacity) return undefined
  const mapped = context.buffers.get(backings.pointerAt(slot))
  return mapped?.name === name && mapped.isBacked(context.i32) ? mapped : undefined
}

/** The words of a buffer by its name. */
export function wordsNamed(context: FutexContext, name: number): Int32Array | undefined {
  return name === ARENA ? context.i32 : bufferNamed(context, name)?.i32
}

/**
 * set_robust_list: where the owner's list begins, as a view and an index of a mapped buffer; null: nowhere. 0 or -EINVAL, when
 * the length is not that of a head. As on Linux nothing is looked at before the owner ends.
 */
export function setRobustList(
  context: FutexContext,
  owner: LockOwner,
  head: { readonly mapped: MappedBuffer; readonly index: number } | null,
  bytes: number,
): number {
  if (bytes !== ROBUST_HEAD_BYTES) return -EINVAL
  const { i32 } = context
  const { record } = owner
  if (head === null) {
    i32[record + Owner.robust] = 0
    owner.registered = false
    return 0
  }
  i32[record + Owner.robust + 1] = head.index * 4
  i32[record + Owner.robust] = head.mapped.name
  owner.headWords = head.mapped.i32
  owner.headIndex = head.index
  owner.headBuffer = head.mapped.name
  owner.headOffset = head.index * 4
  owner.registered = true
  return 0
}

/** A list for an owner that brought none: empty, with its head in the arena. */
export function startRobustList(owner: LockOwner, futexOffset: number): void {
  const { i32, record } = owner
  const head = record + Owner.head
  i32[head + HEAD_NEXT] = ARENA
  i32[head + HEAD_NEXT + 1] = head * 4
  i32[head + HEAD_FUTEX_OFFSET] = futexOffset
  i32[head + HEAD_PENDING] = 0
  i32[record + Owner.robust + 1] = head * 4
  i32[record + Owner.robust] = ARENA
  owner.headWords = i32
  owner.headIndex = head
  owner.headBuffer = ARENA
  owner.headOffset = head * 4
  owner.registered = true
}

/** get_robust_list: buffer name and offset of the head, both 0 for none; or -ESRCH. A TID of 0 means `owner`. */
export function getRobustList(
  context: FutexContext,
  owner: LockOwner,
  tid: number,
): { readonly buffer: number; readonly offset: number; readonly bytes: number } | number {
  const { i32 } = context
  const record = tid === 0 ? owner.record : findOwner(context, tid)
  if (record === 0) return -ESRCH
  const buffer = Atomics.load(i32, record + Owner.robust)
  return { buffer, offset: buffer === 0 ? 0 : i32[record + Owner.robust + 1], bytes: ROBUST_HEAD_BYTES }
}

/** One step of a walk: where a pointer was read from, reused by `fetch`. */
interface Cursor {
  buffer: number
  offset: number
  pi: boolean
}

/** Reads the pointer at an offset of a buffer. False: there is no such memory. */
function fetch(context: FutexContext, buffer: number, offset: number, into: Cursor): boolean {
  const words = wordsNamed(context, buffer)
  const at = offset / 4
  if (words === undefined || !Number.isInteger(at) || at < 0 || at + 1 >= words.length) return false
  into.buffer = words[at]
  into.offset = (words[at + 1] >>> 0) - (words[at + 1] & ROBUST_PI)
  into.pi = (words[at + 1] & ROBUST_PI) !== 0
  return true
}

/**
 * Goes through the list of an owner that has ended. Stops at the first pointer that leads nowhere, and after
 * ROBUST_LIST_LIMIT entries, as a list may be a circle. Those to be woken are in the wake queue.
 */
export function exitRobustList(context: FutexContext, owner: number): void {
  const { i32 } = context
  const headBuffer = Atomics.load(i32, owner + Owner.robust)
  if (headBuffer === 0) return
  const headOffset = i32[owner + Owner.robust + 1] >>> 0
  const tid = Atomics.load(i32, owner + Owner.tid)
  const entry: Cursor = { buffer: 0, offset: 0, pi: false }
  const pending: Cursor = { buffer: 0, offset: 0, pi: false }
  if (!fetch(context, headBuffer, headOffset + HEAD_NEXT * 4, entry)) return
  const words = wordsNamed(context, headBuffer)
  const at = headOffset / 4 + HEAD_FUTEX_OFFSET
  if (words === undefined || at >= words.length) return
  const futexOffset = words[at]
  if (!fetch(context, headBuffer, headOffset + HEAD_PENDING * 4, pending)) return
  const next: Cursor = { buffer: 0, offset: 0, pi: false }
  for (let limit = ROBUST_LIST_LIMIT; limit > 0; limit--) {
    if (entry.buffer === headBuffer && entry.offset === headOffset) break
    // Before the lock is marked: from there on its memory is someone else's.
    const found = fetch(context, entry.buffer, entry.offset, next)
    const isPending = entry.buffer === pending.buffer && entry.offset === pending.offset
    if (!isPending && !markDead(context, entry, futexOffset, tid, false)) return
    if (!found) return
    entry.buffer = next.buffer
    entry.offset = next.offset
    entry.pi = next.pi
  }
  if (pending.buffer !== 0) markDead(context, pending, futexOffset, tid, true)
}

/** A lock of an owner that has ended, if it still is its own. False: there is no such word. */
function markDead(
  context: FutexContext,
  entry: Cursor,
  futexOffset: number,
  tid: number,
  pending: boolean,
): boolean {
  const offset = entry.offset + futexOffset
  const mapped = bufferNamed(context, entry.buffer)
  if (offset % 4 !== 0 || mapped === undefined) return false
  const { i32: words, backing } = mapped
  const index = offset / 4
  if (index < 0 || index >= words.length) return false
  for (;;) {
    const seen = Atomics.load(words, index)
    // It died between letting go and waking, or was woken and died before it took it: the wakeup is passed on.
    if (pending && !entry.pi && (seen & FUTEX_TID_MASK) === 0) {
      wakeKey(context, backing, index, 1, MATCH_ANY)
      return true
    }
    if ((seen & FUTEX_TID_MASK) !== tid) return true
    const dead = (seen & FUTEX_WAITERS) | FUTEX_OWNER_DIED
    if (Atomics.compareExchange(words, index, seen, dead) !== seen) continue
    // Those who wait for a pi lock get it with the owner's other pi locks (exit.ts).
    if (!entry.pi && (seen & FUTEX_WAITERS) !== 0) wakeKey(context, backing, index, 1, MATCH_ANY)
    return true
  }
}
