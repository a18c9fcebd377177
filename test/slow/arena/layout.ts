import { ArenaPlan, type Region } from '../../../src/arena/memory/arena.ts'
import { PayloadHeap } from '../../../src/arena/memory/heap.ts'
import { Rcu, RcuNode } from '../../../src/arena/sync/rcu.ts'
import { type Layout, ownLine, record, word, words } from '../../../src/arena/memory/record.ts'
import { Slab } from '../../../src/arena/memory/slab.ts'
import { Lock } from '../../../src/arena/sync/spinlock.ts'
import { SpscRing } from '../../../src/arena/rings/spsc.ts'

/** The shared memory of the stress workers. Every thread computes the same layout. */
export const Board: Layout<'lock' | 'plain' | 'ready' | 'published' | 'done'> = record('board', {
  lock: ownLine(words(Lock.words)),
  plain: ownLine(words(8)),
  ready: ownLine(word),
  published: ownLine(word),
  done: ownLine(word),
})

export const RING = 16
export const Item: Layout<'rcu' | 'value' | 'check'> = record('item', {
  rcu: words(RcuNode.words),
  value: word,
  check: word,
})

export interface StressLayout {
  readonly plan: ArenaPlan
  readonly board: number
  readonly spsc: Region
  readonly back: Region
  readonly slab: Slab
  readonly heap: Region
  readonly rcu: Region
}

export function stressLayout(): StressLayout {
  const plan = new ArenaPlan()
  return {
    plan,
    board: plan.reserve('board', Board.words).start,
    spsc: SpscRing.reserve(plan, 'spsc', RING),
    back: SpscRing.reserve(plan, 'back', RING),
    // Small, so that the threads collide in every bitmap word and the slab is often full.
    slab: new Slab(plan, { name: 'items', capacity: 70, words: Item.words, option: 'items' }),
    heap: PayloadHeap.reserve(plan, 64 * 1024, 'heap'),
    rcu: Rcu.reserve(plan, 4),
  }
}

/** One scenario for one thread: returns a number that the test sums or compares. */
export interface StressWork {
  readonly scenario: string
  readonly id: number
  readonly threads: number
  readonly turns: number
  readonly buffer: SharedArrayBuffer
}
