import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Arena, ArenaFullError, ArenaPlan } from './arena.ts'
import { PayloadHeap } from './heap.ts'
import { acquire } from '../sync/spinlock.ts'
import { KernelThread } from '../sync/thread.ts'

function makeHeap(bytes: number): { heap: PayloadHeap; thread: KernelThread; arena: Arena; control: number } {
  const plan = new ArenaPlan()
  const region = PayloadHeap.reserve(plan, bytes, 'heapBytes')
  const arena = Arena.create(plan)
  const heap = new PayloadHeap(arena, region, 'heapBytes')
  heap.initialize()
  return { heap, arena, thread: new KernelThread(arena, 0), control: region.start }
}

test('blocks never overlap and keep what was written, over 100,000 random operations', () => {
  let operations = 0
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(), fc.nat(3000)), { minLength: 1000, maxLength: 1100 }), steps => {
      const { heap, thread, arena } = makeHeap(128 * 1024)
      const live: { pointer: number; bytes: number; mark: number }[] = []
      for (const [choice, size] of steps) {
        operations++
        if (choice % 3 < 2) {
          const bytes = size % (choice % 7 === 0 ? 3000 : 100)
          const pointer = heap.tryAllocate(thread, bytes)
          if (pointer === 0) continue
          expect(heap.capacityOf(pointer)).toBeGreaterThanOrEqual(bytes)
          arena.u8.fill(choice & 255, pointer * 4, pointer * 4 + bytes)
          live.push({ pointer, bytes, mark: choice & 255 })
        } else if (live.length > 0) {
          const [{ pointer, bytes, mark }] = live.splice(choice % live.length, 1)
          const body = arena.u8.subarray(pointer * 4, pointer * 4 + bytes)
          expect(body.every(byte => byte === mark)).toBe(true)
          heap.free(thread, pointer)
        }
        if (operations % 64 === 0) heap.verify(thread)
      }
      for (const { pointer } of live) heap.free(thread, pointer)
      heap.verify(thread)
      expect(heap.usedBlocks()).toBe(0)
      expect(heap.usedBytes()).toBe(0)
    }),
    { numRuns: 100 },
  )
  expect(operations).toBeGreaterThanOrEqual(100_000)
})

test('a million operations of filling, freeing at random and refilling do not fragment the heap', () => {
  const total = 4 << 20
  const { heap, thread } = makeHeap(total)
  let state = 12345
  const random = (below: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  // Sizes as payloads have them: most small, some of a few KiB, a few large.
  const size = (): number =>
    random(10) < 8 ? 16 + random(200) : random(10) < 9 ? random(4096) : random(64 * 1024)
  let live: number[] = []
  let operations = 0
  const filled: number[] = []
  while (operations < 1_000_000) {
    for (let misses = 0; misses < 8; ) {
      const pointer = heap.tryAllocate(thread, size())
      operations++
      misses = pointer === 0 ? misses + 1 : 0
      if (pointer !== 0) live.push(pointer)
    }
    filled.push(heap.usedBytes() / total)
    const kept: number[] = []
    for (const pointer of live) {
      if (random(2) === 0) {
        kept.push(pointer)
      } else {
        heap.free(thread, pointer)
        operations++
      }
    }
    live = kept
  }
  heap.verify(thread)
  // Each time it said "full", most of it was really in use; and it was so at the end as at the start.
  expect(Math.min(...filled)).toBeGreaterThan(0.85)
  expect(filled.at(-1)).toBeGreaterThan(0.9 * filled[0])
  for (const pointer of live) heap.free(thread, pointer)
  expect(heap.usedBlocks()).toBe(0)
  expect(heap.largestFree(thread)).toBeGreaterThan(total * 0.99)
})

test('a full heap says so with sizes and the option, and changes nothing', () => {
  const { heap, thread } = makeHeap(64 * 1024)
  const pointer = heap.allocate(thread, 40_000)
  expect(() => heap.allocate(thread, 40_000)).toThrow(ArenaFullError)
  expect(() => heap.allocate(thread, 40_000)).toThrow(
    /payload heap is full \(64 KiB, 39\.1 KiB in use, 39\.1 KiB asked for\); raise the option `heapBytes`/,
  )
  expect(() => heap.allocate(thread, 1 << 30)).toThrow(ArenaFullError)
  expect(heap.usedBlocks()).toBe(1)
  heap.free(thread, pointer)
  heap.verify(thread)
})

test('payloads are 8-byte aligned', () => {
  const { heap, thread } = makeHeap(64 * 1024)
  for (let bytes = 0; bytes < 100; bytes++) expect(heap.allocate(thread, bytes) % 2).toBe(0)
})

test('a double free and a pointer into the middle of a payload are caught', () => {
  const { heap, thread } = makeHeap(64 * 1024)
  const pointer = heap.allocate(thread, 100)
  heap.allocate(thread, 100)
  expect(() => heap.free(thread, pointer + 2)).toThrow(/not the start/)
  expect(() => heap.free(thread, 3)).toThrow(/not into the payload heap/)
  heap.free(thread, pointer)
  expect(() => heap.free(thread, pointer)).toThrow(/double free|not the start/)
  heap.verify(thread)
})

test('after its holder died the heap is rebuilt from its tiles, and unpublished blocks are freed', () => {
  const { heap, arena, thread, control } = makeHeap(64 * 1024)
  const dead = new KernelThread(arena, 7)
  const settled = heap.allocate(dead, 200)
  heap.publish(settled)
  heap.allocate(dead, 300)
  const own = heap.allocate(thread, 50)
  heap.free(thread, heap.allocate(thread, 70))
  acquire(dead, control)
  // The thread dies here, having ruined the lists and the counts.
  arena.i32.fill(0x5555, control + 4, control + 200)
  expect(heap.repair(thread, 7)).toBe(1)
  heap.verify(thread)
  expect(heap.usedBlocks()).toBe(2)
  heap.free(thread, settled)
  heap.free(thread, own)
  heap.verify(thread)
  expect(heap.usedBlocks()).toBe(0)
})

test('an invalid size is refused with the name of its option', () => {
  for (const bytes of [0, -1, 1000, Number.NaN, 65536.5]) {
    expect(() => PayloadHeap.reserve(new ArenaPlan(), bytes, 'heapBytes')).toThrow(`heapBytes: ${bytes}`)
  }
})
