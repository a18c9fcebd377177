import { domainTag } from '../../futex/core/domainwords.ts'
import type { Futexes } from '../../futex/core/futexes.ts'
import type { AddressSpace, FutexWord } from '../../futex/core/space.ts'
import { awaitOwner } from '../../futex/recovery/awaitowner.ts'
import { SyncError } from '../wait/errors.ts'
import { type ObjectWords, viewOf } from '../wait/objectwords.ts'

/**
 * The word of a lock that waits at a futex. The futex is of a mapped buffer; the first thread that uses the
 * lock maps it, and the handle of the mapping is kept beside the lock:
 *
 *   words 0 to 3    as every object's
 *   words 4 to 9    the mutex itself (futex/robust/mutexrecord.ts)
 *   word 10         the tag of the domain that the mapping is in; while a thread maps it, CLAIMED less the
 *                   TID of that thread
 *   words 12 to 15  the handles of mapping and backing, as float64s
 *
 * A thread that finds that the claiming thread has died claims the word instead.
 */
export const MAPPED_LOCK_WORDS = 16
export const LOCK_WORD = 4
const CLAIM = 10
const HANDLES = 12
const CLAIMED = -2

/** The lock's word as this thread sees it; maps the buffer if no thread has. */
export function mappedWord({ context, space, self }: Futexes, { i32, at }: ObjectWords): FutexWord {
  const tag = domainTag(context)
  const handles = new Float64Array(i32.buffer, (at + HANDLES) * 4, 2)
  for (;;) {
    const seen = Atomics.load(i32, at + CLAIM)
    if (seen === tag) break
    const isClaimed = seen < CLAIMED
    if (seen === 0 || (isClaimed && awaitOwner(context, i32, at + CLAIM, seen, CLAIMED - seen))) {
      const claim = CLAIMED - self.tid
      if (Atomics.compareExchange(i32, at + CLAIM, seen, claim) === seen)
        mapBuffer(space, { i32, at }, handles, claim, tag)
    } else if (!isClaimed) {
      throw new SyncError('ERR_HEDDLE_DOMAIN', 'the mutex belongs to another domain, or has been disposed of')
    }
  }
  const own = { mapping: handles[0], backing: handles[1] }
  const known = space.findBuffer(viewOf(i32.buffer).buffer)
  const mapped = known?.handles.mapping === own.mapping ? known : space.adopt(i32.buffer, own)
  return mapped.word(context, at + LOCK_WORD)
}

/**
 * This thread has claimed the word. Without room for a mapping it gives the claim up, and the next thread may
 * try.
 */
function mapBuffer(
  space: AddressSpace,
  { i32, at }: ObjectWords,
  handles: Float64Array,
  claim: number,
  tag: number,
): void {
  let isMapped = false
  try {
    const mapped = space.findBuffer(i32.buffer) ?? space.map(i32.buffer)
    handles[0] = mapped.handles.mapping
    handles[1] = mapped.handles.backing
    isMapped = true
  } finally {
    Atomics.compareExchange(i32, at + CLAIM, claim, isMapped ? tag : 0)
  }
}
