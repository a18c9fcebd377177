import type { Arena, ArenaPlan } from '../arena/memory/arena.ts'
import { type Layout, LINE_WORDS, record, word, words } from '../arena/memory/record.ts'

/**
 * Three tables of hints from lock users to the policy that schedules them (policy.ts). Every record is a
 * cache line. No lock depends on a hint: a hint may be missing, stale, half written or about another TID, and
 * then it only costs time. So they are written with plain stores: an uncontended lock costs one
 * compare-exchange, and atomic stores would double that.
 *
 *   lock table     the holder of each lock, by a hash of the lock's address; a bucket has two ways. A lock that finds both
 *                  taken by other locks has no entry
 *   waiter table   which lock a waiter waits for, by TID
 *   section table  whether a TID is inside critical sections, by TID
 *
 * The tables by TID are smaller than the range of TIDs: each record names its TID, and the last writer has
 * it.
 */
export const LockEntry: Layout<'tag' | 'owner' | 'where' | 'waiters' | 'expected' | 'rest'> = record(
  'lock entry',
  {
    /** The lock, as a hash of its address that is never 0; 0: free. Published last, cleared first. */
    tag: word,
    /** The holder's TID. Stays when the entry is free: the next holder is often the same. */
    owner: word,
    /** The holder's CPU + 1 in bits 0-7, and the generation, how often its owner changed, in bits 8-29. */
    where: word,
    /**
     * Of the bucket, in its first way. Bits 0-15: how many waiters have published that they wait for a lock
     * of this bucket and can run on its holder's CPU. Bits 16-30: the slot of the last such waiter. 0: no
     * waiter.
     */
    waiters: word,
    /** How long tasks have waited for the lock lately, in microseconds; 0: not known. Written by waiters. */
    expected: word,
    rest: words(LINE_WORDS - 5),
  },
)

export const WAITER_COUNT = 0xffff
export const WAITER_SLOT_SHIFT = 16

const WAYS = 2
export const BUCKET_WORDS: number = WAYS * LINE_WORDS

export const WaiterSlot: Layout<'flags' | 'tid' | 'lock' | 'cpu' | 'counted' | 'since' | 'rest'> = record(
  'waiter slot',
  {
    /** INACTIVE or ACTIVE. Published last, cleared first. */
    flags: word,
    tid: word,
    /** The tag of the lock. */
    lock: word,
    /** The CPU that the lock's holder is on, or -1. */
    cpu: word,
    /** 1: it is among the `waiters` of the lock's bucket. */
    counted: word,
    /** When it began to wait, in microseconds of the kernel's clock, as 32 bits. */
    since: word,
    rest: words(LINE_WORDS - 6),
  },
)

export const INACTIVE = 0
export const ACTIVE = 1

export const SectionSlot: Layout<'depth' | 'tid' | 'gives' | 'rest'> = record('section slot', {
  /** How many locks it holds; 0: it is in no critical section. */
  depth: word,
  tid: word,
  /** It has unlocked a lock that has waiters: it should yield. */
  gives: word,
  rest: words(LINE_WORDS - 3),
})

/** Sums over all threads; each adds its own now and then. */
export const HandoffCounters: Layout<
  'acquisitions' | 'contended' | 'handedOff' | 'spun' | 'fallbacks' | 'hintMisses' | 'followed'
> = record('handoff counters', {
  acquisitions: word,
  contended: word,
  /** Taken after yielding, without sleeping. */
  handedOff: word,
  /** Taken while spinning, before yielding. */
  spun: word,
  fallbacks: word,
  hintMisses: word,
  /** Waits that a task left for the CPU of the holder. */
  followed: word,
})

export interface HandoffSizes {
  /** Buckets of the lock table: a power of two. */
  readonly locks?: number
  /** Slots of the two tables by TID: a power of two. */
  readonly tids?: number
}

export interface HandoffLayout {
  readonly counters: number
  readonly locks: number
  readonly lockMask: number
  readonly waiters: number
  readonly sections: number
  readonly tidMask: number
}

/** The slot number in an entry's `waiters` has 15 bits. */
const MOST_SLOTS = 0x8000

/** Reserves the tables. Zeroed memory is right: nothing has to be initialised. */
export function reserveHandoff(plan: ArenaPlan, sizes: HandoffSizes = {}): HandoffLayout {
  const { locks = 128, tids = 512 } = sizes
  for (const [name, size] of Object.entries({ locks, tids })) {
    if (!Number.isInteger(size) || size < 1 || size > MOST_SLOTS || (size & (size - 1)) !== 0) {
      throw new RangeError(`${name}: ${size} is not a table size; give a power of two up to ${MOST_SLOTS}`)
    }
  }
  return {
    counters: plan.reserve('handoff counters', HandoffCounters.words).start,
    locks: plan.reserve('handoff locks', locks * BUCKET_WORDS).start,
    lockMask: locks - 1,
    waiters: plan.reserve('handoff waiters', tids * WaiterSlot.words).start,
    sections: plan.reserve('handoff sections', tids * SectionSlot.words).start,
    tidMask: tids - 1,
  }
}

const layouts = new WeakMap<Arena, HandoffLayout>()

/** Lets a policy, which has only the arena, find the tables. On this thread. */
export function rememberHandoff(arena: Arena, layout: HandoffLayout): void {
  layouts.set(arena, layout)
}

export function handoffOf(arena: Arena): HandoffLayout | undefined {
  return layouts.get(arena)
}
