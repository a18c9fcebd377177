import { type Arena, ArenaPlan, type Region } from '../arena/memory/arena.ts'
import { PayloadHeap } from '../arena/memory/heap.ts'
import { ownLine, record, type Layout, word, words } from '../arena/memory/record.ts'
import { Slab } from '../arena/memory/slab.ts'
import { Lock } from '../arena/sync/spinlock.ts'
import { SpscRing } from '../arena/rings/spsc.ts'
import { reserveMachine } from '../machine/core/cpurecord.ts'

/** The state of the self-test. Every thread computes the same layout. */
export const Board: Layout<
  'phase' | 'finished' | 'lock' | 'counter' | 'turn' | 'checksum' | 'seen' | 'unused'
> = record('board', {
  phase: ownLine(word),
  finished: ownLine(word),
  lock: ownLine(words(Lock.words)),
  counter: ownLine(word),
  turn: ownLine(word),
  checksum: ownLine(words(2)),
  seen: ownLine(words(2)),
  /** No thread writes this word: a CPU waits here for a moment. */
  unused: ownLine(word),
})

export const IDLE = 0
export const COUNT = 1
export const STREAM = 2
export const CHURN = 3
export const PASS = 4
export const PING = 5
export const HOG = 6
export const DIE = 7

export const COUNTS = 200_000
export const VALUES = 200_000
export const CHURNS = 200_000
export const PAYLOADS = 50_000
export const PINGS = 5_000
export const SLICE_MS = 10
export const HOG_MS = 300
const RING_CAPACITY = 256

export interface SelftestLayout {
  readonly plan: ArenaPlan
  readonly machine: Region
  readonly board: number
  readonly ring: Region
  readonly slab: Slab
  readonly heap: Region
}

export function selftestLayout(): SelftestLayout {
  const plan = new ArenaPlan()
  return {
    plan,
    machine: reserveMachine(plan, 2),
    board: plan.reserve('board', Board.words).start,
    ring: SpscRing.reserve(plan, 'ring', RING_CAPACITY),
    slab: new Slab(plan, { name: 'records', capacity: 4096, words: 14, option: 'records' }),
    heap: PayloadHeap.reserve(plan, 1 << 20, 'heap'),
  }
}

export function ringOf(arena: Arena, layout: SelftestLayout): SpscRing {
  return new SpscRing(arena.i32, layout.ring.start, RING_CAPACITY)
}

export function heapOf(arena: Arena, layout: SelftestLayout): PayloadHeap {
  return new PayloadHeap(arena, layout.heap, 'heap')
}
