import { Worker } from 'node:worker_threads'
import { Arena, ArenaPlan } from '../src/arena/memory/arena.ts'
import { PayloadHeap } from '../src/arena/memory/heap.ts'
import { lockRank } from '../src/arena/sync/lockorder.ts'
import { record, word, words } from '../src/arena/memory/record.ts'
import { Slab } from '../src/arena/memory/slab.ts'
import { acquire, initLock, Lock, release } from '../src/arena/sync/spinlock.ts'
import { SpscRing } from '../src/arena/rings/spsc.ts'
import { KernelThread } from '../src/arena/sync/thread.ts'
import { CpuRecord } from '../src/machine/core/cpurecord.ts'
import { haltBlocking, kickCpu } from '../src/machine/core/halt.ts'
import { compare, type Row, timed } from './harness.ts'

const plan = new ArenaPlan()
const locks = plan.reserve('locks', Lock.words).start
const bare = plan.reserve('bare', 1).start
const ringRegion = SpscRing.reserve(plan, 'ring', 256)
const slab = new Slab(plan, { name: 'records', capacity: 1024, words: 14, option: 'records' })
const heapRegion = PayloadHeap.reserve(plan, 1 << 20, 'heap')
const field = plan.reserve('fields', 1 << 16).start
const pair = plan.reserve('pair', 2 * CpuRecord.words).start
const arena = Arena.create(plan)
const { i32 } = arena
const thread = new KernelThread(arena, 0)
const ring = new SpscRing(i32, ringRegion.start, 256)
const heap = new PayloadHeap(arena, heapRegion, 'heap')
initLock(i32, locks, lockRank('unranked'))
slab.initialize(i32)
heap.initialize()

const Sample = record('sample', { state: word, list: words(4), priority: word, padding: words(10) })

const TURNS = 2_000_000

function lockPair(turns: number): void {
  for (let i = 0; i < turns; i++) {
    acquire(thread, locks)
    release(thread, locks)
  }
}

function barePair(turns: number): void {
  for (let i = 0; i < turns; i++) {
    Atomics.compareExchange(i32, bare, 0, 1)
    Atomics.compareExchange(i32, bare, 1, 0)
  }
}

/** Walks 1,024 records and reads and writes two fields of each. */
function namedFields(turns: number): void {
  let sum = 0
  for (let i = 0; i < turns; i++) {
    const sample = field + (i & 1023) * Sample.words
    i32[sample + Sample.state] = sum
    sum = (sum + i32[sample + Sample.priority]) | 0
  }
}

function literalFields(turns: number): void {
  let sum = 0
  for (let i = 0; i < turns; i++) {
    const sample = field + (i & 1023) * 16
    i32[sample + 0] = sum
    sum = (sum + i32[sample + 5]) | 0
  }
}

/**
 * Many short calls, as in kernel code. V8 would compile one call with a loop of millions of turns while it
 * runs (on-stack replacement), and does not fold a module's constants in such code.
 */
function inCalls(turns: number, loop: (turns: number) => void): void {
  for (let left = turns; left > 0; left -= 2000) loop(2000)
}

function slabPair(turns: number): void {
  for (let i = 0; i < turns; i++) slab.free(i32, slab.allocate(thread))
}

function ringPair(turns: number): void {
  for (let i = 0; i < turns; i++) {
    ring.push(i)
    ring.pop()
  }
}

function heapPair(turns: number): void {
  for (let i = 0; i < turns; i++) heap.free(thread, heap.allocate(thread, 64 + (i & 255)))
}

let last: Uint8Array | undefined

function newArrays(turns: number): void {
  for (let i = 0; i < turns; i++) last = new Uint8Array(64 + (i & 255))
  if (last?.length === 0) throw new Error('an array of 64 bytes or more has none')
}

export async function* rows(): AsyncIterable<Row> {
  yield await compare({
    row: 'arena/lock-uncontended',
    against: 'compare-exchange-pair',
    ours: () => timed(TURNS, lockPair),
    base: () => timed(TURNS, barePair),
    target: { most: 1.5 },
  })
  yield await compare({
    row: 'arena/record-access',
    against: 'literal-index',
    ours: () => timed(10 * TURNS, turns => inCalls(turns, namedFields)),
    base: () => timed(10 * TURNS, turns => inCalls(turns, literalFields)),
    target: { most: 1.1 },
  })
  yield await compare({
    row: 'arena/slab-allocate-free',
    against: 'compare-exchange-pair',
    ours: () => timed(TURNS, slabPair),
    base: () => timed(TURNS, barePair),
  })
  yield await compare({
    row: 'arena/ring-push-pop',
    against: 'compare-exchange-pair',
    ours: () => timed(TURNS, ringPair),
    base: () => timed(TURNS, barePair),
  })
  yield await compare({
    row: 'arena/heap-allocate-free',
    against: 'a new Uint8Array of that size',
    ours: () => timed(TURNS / 4, heapPair),
    base: () => timed(TURNS / 4, newArrays),
  })
  yield* kickToWake()
}

/**
 * Two threads take turns. Ours: the whole protocol of halt and kick. Baseline: one word with `Atomics.wait`
 * and `Atomics.notify`. Half a round trip is one kick to wake.
 */
async function* kickToWake(): AsyncIterable<Row> {
  const partner = new Worker(new URL('./arena-partner.mjs', import.meta.url), {
    workerData: { buffer: arena.buffer, pair },
  })
  const ask = (kind: 'kick' | 'bare', turns: number): Promise<void> => {
    i32[pair + CpuRecord.kicks] = 0
    partner.postMessage({ kind, turns })
    return new Promise(resolve => partner.once('message', () => resolve()))
  }
  const turns = 4000
  const other = pair + CpuRecord.words
  const kick = async (): Promise<number> => {
    await ask('kick', turns)
    return timed(turns * 2, () => {
      for (let i = 0; i < turns; i++) {
        kickCpu(i32, other)
        haltBlocking(i32, pair, 1000)
      }
    })
  }
  const bareWait = async (): Promise<number> => {
    const mine = pair + CpuRecord.mail
    const theirs = other + CpuRecord.mail
    Atomics.store(i32, mine, 0)
    Atomics.store(i32, theirs, 0)
    await ask('bare', turns)
    return timed(turns * 2, () => {
      for (let i = 0; i < turns; i++) {
        Atomics.store(i32, theirs, 1)
        Atomics.notify(i32, theirs, 1)
        Atomics.wait(i32, mine, 0, 1000)
        Atomics.store(i32, mine, 0)
      }
    })
  }
  yield await compare({
    row: 'arena/kick-to-wake',
    against: 'wait-notify-pair',
    ours: kick,
    base: bareWait,
    target: { most: 1.3 },
  })
  await partner.terminate()
}
