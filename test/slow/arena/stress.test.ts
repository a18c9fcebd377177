import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { Arena } from '../../../src/arena/memory/arena.ts'
import { PayloadHeap } from '../../../src/arena/memory/heap.ts'
import { lockRank } from '../../../src/arena/sync/lockorder.ts'
import { Rcu } from '../../../src/arena/sync/rcu.ts'
import { initLock } from '../../../src/arena/sync/spinlock.ts'
import { KernelThread } from '../../../src/arena/sync/thread.ts'
import { Board, stressLayout, type StressLayout, type StressWork } from './layout.ts'

/** Runs real threads concurrently on one arena. Returns the error count of each, and the arena. */
async function stress(
  scenario: string,
  threads: number,
  turns: number,
): Promise<{ wrong: number; arena: Arena; layout: StressLayout; thread: KernelThread; heap: PayloadHeap }> {
  const layout = stressLayout()
  const arena = Arena.create(layout.plan)
  const heap = new PayloadHeap(arena, layout.heap, 'heap')
  initLock(arena.i32, layout.board + Board.lock, lockRank('unranked'))
  layout.slab.initialize(arena.i32)
  heap.initialize()
  new Rcu(layout.rcu, 4).initialize(arena.i32)
  const counts = await Promise.all(
    Array.from({ length: threads }, (_, id) => {
      const workerData: StressWork = { scenario, id, threads, turns, buffer: arena.buffer }
      const worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData })
      return new Promise<number>((resolve, reject) => {
        worker.once('message', resolve)
        worker.once('error', reject)
      })
    }),
  )
  const wrong = counts.reduce((sum, count) => sum + count, 0)
  return { wrong, arena, layout, heap, thread: new KernelThread(arena, 64) }
}

test('two threads count under one spin lock and no increment is lost', async () => {
  const { wrong, arena, layout } = await stress('lock', 2, 100_000)
  expect(wrong).toBe(0)
  const words = arena.i32.subarray(layout.board + Board.plain, layout.board + Board.plain + 8)
  expect(Array.from(words)).toEqual(Array(8).fill(200_000))
})

test('more threads than cores count under one spin lock: holders are descheduled, waiters park', async () => {
  const { wrong, arena, layout } = await stress('lock', 4, 30_000)
  expect(wrong).toBe(0)
  expect(arena.i32[layout.board + Board.plain]).toBe(120_000)
  expect(arena.i32[layout.board + Board.lock]).toBe(0)
})

test('an SPSC ring between two threads delivers everything once, in order', async () => {
  const { wrong } = await stress('spsc', 2, 200_000)
  expect(wrong).toBe(0)
})

test('threads never get the same slot of a slab, and every slot is freed', async () => {
  const { wrong, arena, layout, thread } = await stress('slab', 2, 300_000)
  expect(wrong).toBe(0)
  expect(layout.slab.count(arena.i32)).toBe(0)
  for (let i = 0; i < layout.slab.capacity; i++) layout.slab.allocate(thread)
})

test('payloads allocated on either thread and freed on the other arrive whole, and none leaks', async () => {
  const { wrong, heap, thread } = await stress('heap', 2, 50_000)
  expect(wrong).toBe(0)
  heap.verify(thread)
  expect(heap.usedBlocks()).toBe(0)
})

test('readers under RCU never see an item after it was freed, and every item is freed at the end', async () => {
  const { wrong, arena, layout } = await stress('rcu', 2, 50_000)
  expect(wrong).toBe(0)
  expect(layout.slab.count(arena.i32)).toBe(0)
})
