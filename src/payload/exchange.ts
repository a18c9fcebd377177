import type { KernelThread } from '../arena/sync/thread.ts'
import type { PayloadHeap } from '../arena/memory/heap.ts'

/**
 * How payloads change hands between threads and records, so that a crash at any step leaves each block with
 * one owner: a word of a record, or a thread that has it unsettled.
 *
 *   put      [1] the thread has it: the heap's header says so
 *            (A) the record's word is stored
 *            [2] both have it: the record counts
 *            (B) the block is settled
 *   take     [3] the record has it
 *            (C) the block is marked as this thread's
 *            [2] both have it: the record counts
 *            (D) the record's word is cleared
 *            [1] the thread has it; it decodes, and frees
 *
 * After a thread died, the heap's `repair` looks at every word of every record: [2] becomes [3], and what is
 * still the dead thread's, [1], is freed. The other order, settling before storing or clearing before
 * marking, would leave a block that nobody has.
 *
 * A record's word is put and taken by one thread at a time, and [2] of a put is not seen by who takes: the
 * record has another word that says that the payload is there, and it is stored last.
 */

/** The record whose word is at `at` takes over a payload that this thread has encoded or taken. */
export function putPayload(heap: PayloadHeap, thread: KernelThread, at: number, word: number): void {
  Atomics.store(thread.i32, at, word) // (A)
  if (word > 0) heap.publish(word) // (B)
}

/** This thread takes over what the record has, and is to free it. */
export function takePayload(heap: PayloadHeap, thread: KernelThread, at: number): number {
  const word = Atomics.load(thread.i32, at)
  if (word === 0) return 0
  if (word > 0) heap.claim(thread, word) // (C)
  Atomics.store(thread.i32, at, 0) // (D)
  return word
}
