import { float64, type Layout, record, word } from '../../arena/memory/record.ts'

/**
 * A mutex in shared memory. Plain ones and those that only pass priorities on use the first word alone.
 *
 *   word    state           meaning
 *   0       CONSISTENT      free
 *   TID     CONSISTENT      held
 *   TID     INCONSISTENT    held by one who was told that the owner before it died
 *   any     GONE            was let go while INCONSISTENT: nobody gets it any more
 *
 * The word's two highest bits, WAITERS and OWNER_DIED, are as owner.ts has them. `next` and `prev` are
 * pointers as robust.ts has them; `next` is where a robust list finds the entry, on an even word.
 */
export const MutexRecord: Layout<'word' | 'state' | 'next' | 'prev'> = record('mutex', {
  word,
  state: word,
  next: float64,
  prev: float64,
})

export const CONSISTENT = 0
export const INCONSISTENT = -1
export const GONE = -2

/** From a robust list's entry to the word, in bytes. */
export const FUTEX_OFFSET: number = -4 * MutexRecord.next
