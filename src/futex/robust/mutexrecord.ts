import { float64, type Layout, record, word } from '../../arena/memory/record.ts'

/**
 * A mutex in shared memory. Kinds that are not robust use the first word only.
 *
 *   word    state           meaning
 *   0       CONSISTENT      free
 *   TID     CONSISTENT      held
 *   TID     INCONSISTENT    held by an owner that was told of the death of the owner before it
 *   any     GONE            was unlocked while INCONSISTENT: no owner gets it any more
 *
 * The word's two highest bits, WAITERS and OWNER_DIED, are defined in owner.ts. `next` and `prev` are
 * pointers (robust.ts); a pointer of a robust list points to `next`, which is on an even word.
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
