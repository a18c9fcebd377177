import type { KernelThread } from '../arena/sync/thread.ts'
import type { PayloadHeap } from '../arena/memory/heap.ts'

/**
 * How a payload passes between threads and records. A crash at any step leaves each block with one owner: a
 * word of a record, or the thread whose number is in the block's header (an unpublished block).
 *
 *   put      [1] the thread owns the block: the heap's header says so
 *            (A) the record's word is stored
 *            [2] both own it: the record counts
 *            (B) the block is published
 *   take     [3] the record owns the block
 *            (C) the block is marked as this thread's
 *            [2] both own it: the record counts
 *            (D) the record's word is cleared
 *            [1] the thread owns it; it decodes, and frees
 *
 * After a thread died, the heap's `repair` reads every word of every record. [2] becomes [3], and every block
 * that the dead thread still owns, [1], is freed. The other order (publish before store, clear before mark)
 * could leave a block without an owner.
 *
 * One thread at a time puts or takes a record's word. A taking thread never reads state [2] of a put: the
 * record has another word that says that the payload is ready, and it is stored last.
 */

/** The record whose word is at `at` takes over a payload that this thread has encoded or taken. */
export function putPayload(heap: PayloadHeap, thread: KernelThread, at: number, word: number): void {
  Atomics.store(thread.i32, at, word) // (A)
  if (word > 0) heap.publish(word) // (B)
}

/** This thread takes over the payload of the record, and must free it. */
export function takePayload(heap: PayloadHeap, thread: KernelThread, at: number): number {
  const word = Atomics.load(thread.i32, at)
  if (word === 0) return 0
  if (word > 0) heap.claim(thread, word) // (C)
  Atomics.store(thread.i32, at, 0) // (D)
  return word
}
