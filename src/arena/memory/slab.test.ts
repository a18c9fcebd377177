import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Arena, ArenaFullError, ArenaPlan } from './arena.ts'
import { LINE_WORDS } from './record.ts'
import { Slab } from './slab.ts'
import { KernelThread } from '../sync/thread.ts'

function makeSlab(
  capacity: number,
  lineAligned = false,
): { slab: Slab; thread: KernelThread; i32: Int32Array } {
  const plan = new ArenaPlan()
  const slab = new Slab(plan, { name: 'records', capacity, words: 5, option: 'records', lineAligned })
  const arena = Arena.create(plan)
  slab.initialize(arena.i32)
  return { slab, thread: new KernelThread(arena, 0), i32: arena.i32 }
}

test('a slab behaves as a set of free slots does, over 100,000 random operations', () => {
  let operations = 0
  fc.assert(
    fc.property(
      fc.constantFrom(1, 3, 31, 32, 33, 70, 1025),
      fc.array(fc.nat(), { minLength: 1000, maxLength: 1100 }),
      (capacity, choices) => {
        const { slab, thread, i32 } = makeSlab(capacity)
        const live = new Map<number, number>()
        const stale: number[] = []
        for (const choice of choices) {
          operations++
          if (choice % 5 < 3) {
            if (live.size === capacity) {
              expect(() => slab.allocate(thread)).toThrow(ArenaFullError)
              continue
            }
            const pointer = slab.allocate(thread)
            expect(live.has(pointer)).toBe(false)
            live.set(pointer, slab.handleOf(i32, pointer))
            i32.fill(pointer, pointer, pointer + 5)
          } else if (live.size > 0) {
            const [pointer, handle] = [...live][choice % live.size]
            expect(slab.resolve(i32, handle)).toBe(pointer)
            expect(Array.from(i32.subarray(pointer, pointer + 5))).toEqual(Array(5).fill(pointer))
            slab.free(i32, pointer)
            live.delete(pointer)
            stale.push(handle)
          }
          if (stale.length > 0) expect(slab.resolve(i32, stale[choice % stale.length])).toBe(0)
        }
        expect(slab.count(i32)).toBe(live.size)
      },
    ),
    { numRuns: 100 },
  )
  expect(operations).toBeGreaterThanOrEqual(100_000)
})

test('every slot of a slab with three levels of bitmap can be taken, given back and taken again', () => {
  const capacity = 32 * 32 * 3 + 17
  const { slab, thread, i32 } = makeSlab(capacity)
  for (let round = 0; round < 2; round++) {
    const pointers = new Set<number>()
    for (let i = 0; i < capacity; i++) pointers.add(slab.allocate(thread))
    expect(pointers.size).toBe(capacity)
    expect(slab.tryAllocate(thread)).toBe(0)
    for (const pointer of pointers) slab.free(i32, pointer)
    expect(slab.count(i32)).toBe(0)
  }
})

test('a full slab says which, how large, and what to raise, and changes nothing', () => {
  const { slab, thread, i32 } = makeSlab(2)
  slab.allocate(thread)
  slab.allocate(thread)
  expect(() => slab.allocate(thread)).toThrow(
    "the arena's records is full (2 slots); raise the option `records` at boot",
  )
  expect(slab.count(i32)).toBe(2)
})

test('a double free and a pointer between slots are caught', () => {
  const { slab, thread, i32 } = makeSlab(4)
  const pointer = slab.allocate(thread)
  expect(() => slab.free(i32, pointer + 1)).toThrow(/not into this slab/)
  slab.free(i32, pointer)
  expect(() => slab.free(i32, pointer)).toThrow(/double free/)
})

test('a handle outlives neither the free nor the next life of its slot', () => {
  const { slab, thread, i32 } = makeSlab(1)
  const first = slab.handleOf(i32, slab.allocate(thread))
  slab.free(i32, slab.resolve(i32, first))
  expect(slab.resolve(i32, first)).toBe(0)
  const again = slab.allocate(thread)
  expect(slab.resolve(i32, first)).toBe(0)
  expect(slab.resolve(i32, slab.handleOf(i32, again))).toBe(again)
})

test('records start on cache lines when asked', () => {
  const { slab, thread } = makeSlab(8, true)
  for (let i = 0; i < 8; i++) expect(slab.allocate(thread) % LINE_WORDS).toBe(0)
})

test('reclaim frees what a dead thread had not published, and nothing else', () => {
  const { slab, i32 } = makeSlab(64)
  const arena = Arena.attach(i32.buffer as SharedArrayBuffer)
  const dead = new KernelThread(arena, 5)
  const alive = new KernelThread(arena, 6)
  const settled = slab.allocate(dead)
  slab.publish(i32, settled)
  const lost = [slab.allocate(dead), slab.allocate(dead)]
  const kept = slab.allocate(alive)
  expect(slab.reclaim(i32, 5)).toBe(2)
  expect(slab.isAllocated(i32, settled)).toBe(true)
  expect(slab.isAllocated(i32, kept)).toBe(true)
  for (const pointer of lost) expect(slab.isAllocated(i32, pointer)).toBe(false)
  expect(slab.count(i32)).toBe(2)
})

/** Two threads with a slab object each, over one arena. `bits`: the first word of the bitmap. */
function twoThreads(capacity: number) {
  const { slab, thread, i32 } = makeSlab(capacity)
  const other = new Slab(new ArenaPlan(), { name: 'records', capacity, words: 5, option: 'records' })
  const otherThread = new KernelThread(thread.arena, 1)
  const bits = (): number => i32[slab['levels'][0].start]
  return { slab, thread, other, otherThread, i32, bits }
}

test('a thread takes slots from the stock of another before the slab is full', () => {
  const { slab, thread, other, otherThread, i32 } = twoThreads(40)
  const taken = new Set([slab.allocate(thread)])
  for (let left = 39; left > 0; left--) taken.add(other.allocate(otherThread))
  expect(taken.size).toBe(40)
  expect(other.tryAllocate(otherThread)).toBe(0)
  expect(slab.tryAllocate(thread)).toBe(0)
  for (const pointer of taken) slab.free(i32, pointer)
  for (let left = 40; left > 0; left--) taken.delete(other.allocate(otherThread))
  expect(taken.size).toBe(0)
})

test('slots that a thread frees are its next stock, and come back to the others when it frees elsewhere', () => {
  const { slab, thread, other, otherThread, i32, bits } = twoThreads(96)
  const taken = Array.from({ length: 96 }, () => slab.allocate(thread))
  for (const pointer of taken.slice(0, 32)) other.free(i32, pointer)
  expect(bits()).toBe(-1)
  expect(taken.indexOf(other.allocate(otherThread))).toBeLessThan(32)
  other.free(i32, taken[32])
  other.free(i32, taken[64])
  expect(taken.indexOf(slab.allocate(thread))).toBe(32)
})

test('the stock of a thread that ends or dies is free in the bitmap', () => {
  const { slab, thread, i32, bits } = twoThreads(96)
  const [kept, freed] = [slab.allocate(thread), slab.allocate(thread)]
  slab.publish(i32, kept)
  slab.free(i32, freed)
  expect(bits()).toBe(-1)
  slab.giveBack(i32)
  expect(bits()).toBe(1)
  slab.free(i32, slab.allocate(thread))
  expect(bits()).toBe(-1)
  expect(slab.reclaim(i32, 0)).toBe(0)
  expect(bits()).toBe(1)
})

test('an invalid capacity is refused with the name of its option', () => {
  for (const capacity of [0, -1, 1.5, Number.NaN, 2 ** 30]) {
    expect(() => new Slab(new ArenaPlan(), { name: 'tasks', capacity, words: 4, option: 'tasks' })).toThrow(
      `tasks: ${capacity}`,
    )
  }
})
