import { expect, test } from 'vitest'
import { Arena, ArenaFullError, ArenaPlan } from './arena.ts'
import { LINE_WORDS } from './record.ts'
import { KernelThread } from '../sync/thread.ts'

test('regions start on cache lines, never at 0, and do not overlap', () => {
  const plan = new ArenaPlan()
  const regions = [plan.reserve('a', 3), plan.reserve('b', 40), plan.reserve('c', 16)]
  let end = 1
  for (const region of regions) {
    expect(region.start % LINE_WORDS).toBe(0)
    expect(region.start).toBeGreaterThanOrEqual(end)
    end = region.start + region.words
  }
  expect(plan.words).toBeGreaterThanOrEqual(end)
})

test('the same plan gives the same pointers on every thread', () => {
  const make = (): number[] => {
    const plan = new ArenaPlan()
    return [plan.reserve('a', 5).start, plan.reserve('b', 500).start]
  }
  expect(make()).toEqual(make())
})

test('another thread attaches to the same words, with the same debug setting', () => {
  const plan = new ArenaPlan()
  const { start } = plan.reserve('a', 1)
  const arena = Arena.create(plan, { debug: true })
  const attached = Arena.attach(arena.buffer)
  arena.i32[start] = 42
  expect(attached.i32[start]).toBe(42)
  expect(attached.debug).toBe(true)
})

test('a buffer that is no arena is refused', () => {
  expect(() => Arena.attach(new SharedArrayBuffer(1024))).toThrow(/not a heddle arena/)
})

test('a plan beyond 8 GiB names the region that went over and what to lower', () => {
  const plan = new ArenaPlan()
  plan.reserve('tasks', 0x7fff_0000)
  expect(() => plan.reserve('payload heap', 0x2_0000)).toThrow(/payload heap.*8 GiB.*boot options/)
  expect(plan.regions.length).toBe(1)
})

test('the error for a full store names the store, its size and the option', () => {
  const error = new ArenaFullError('tasks', '8 slots', 'tasks', 8)
  expect(error).toMatchObject({
    name: 'ArenaFullError',
    code: 'ERR_HEDDLE_ARENA_FULL',
    option: 'tasks',
    capacity: 8,
  })
  expect(error.message).toBe("the arena's tasks is full (8 slots); raise the option `tasks` at boot")
})

test('a thread id that no lock word can hold is refused', () => {
  const arena = Arena.create(new ArenaPlan())
  for (const id of [-1, 255, 1.5, Number.NaN]) expect(() => new KernelThread(arena, id)).toThrow(`id: ${id}`)
})
