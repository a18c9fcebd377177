import { beforeEach, expect, test, vi } from 'vitest'
import type { FutexContext } from '../../futex/core/context.ts'
import { HOLDER_WORDS, Holders } from './holders.ts'

const dead = new Set<number>()
/** Async code holds its shares under the name of its thread. */
const THREAD = 20
vi.mock('../../futex/core/owner.ts', () => ({
  findOwner: (_: FutexContext, tid: number): number => (dead.has(tid) ? 0 : tid),
}))

const context = {} as FutexContext
let holders: Holders

beforeEach(() => {
  dead.clear()
  holders = new Holders(new Int32Array(new SharedArrayBuffer(4 * HOLDER_WORDS)), 0)
})

test('a share that another owner released is not released again when its holder dies', () => {
  holders.add(5, 1)
  // Async code holds one too: it must not be taken for what 7 gives back.
  holders.add(THREAD, 1)
  holders.remove(7, 1)
  dead.add(5)
  expect(holders.takeDead(context)).toBe(0)
})

test('more holders than names, and async ones, release their own: the names of the others stay reliable', () => {
  for (let tid = 1; tid <= 9; tid++) holders.add(tid, 1)
  holders.add(THREAD, 1)
  holders.remove(9, 1)
  holders.remove(THREAD, 1)
  dead.add(1)
  expect(holders.takeDead(context)).toBe(1)
})

test('a holder of several shares may have a name for some of them', () => {
  for (let tid = 1; tid <= 7; tid++) holders.add(tid, 1)
  holders.add(8, 3)
  holders.remove(8, 3)
  dead.add(2)
  expect(holders.takeDead(context)).toBe(1)
})
