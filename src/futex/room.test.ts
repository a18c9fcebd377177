import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../arena/arena.ts'
import { KernelThread } from '../arena/thread.ts'
import { Futexes } from './futexes.ts'
import { initializeFutexes, reserveFutexes } from './layout.ts'

const SIZES = { waiters: 4, buckets: 4, mappings: 4, spaces: 2 }

/** A thread that waits, and another that stays in the middle of a call meanwhile. */
function pair(): { waits: Futexes; looks: Futexes; view: Int32Array<SharedArrayBuffer> } {
  const plan = new ArenaPlan()
  const layout = reserveFutexes(plan, SIZES)
  const arena = Arena.create(plan, { debug: true })
  initializeFutexes(arena, layout)
  const now = (): number => performance.now()
  const waits = new Futexes(new KernelThread(arena, 64), layout, { now })
  const looks = new Futexes(new KernelThread(arena, 65), reserveFutexes(new ArenaPlan(), SIZES), { now })
  const view = new Int32Array(new SharedArrayBuffer(256))
  waits.map(view.buffer)
  return { waits, looks, view }
}

test('futexes that only wait to be freed are room for the next', () => {
  const { waits, looks, view } = pair()
  const { layout, i32 } = waits.context
  looks.context.enter()
  for (let at = 0; at < SIZES.waiters; at++)
    expect(waits.waitSync(waits.word(view, at), 0, { timeout: 0 })).toBe('timed-out')
  expect(layout.futexes.count(i32)).toBe(SIZES.waiters)
  looks.context.leave()
  expect(waits.waitSync(waits.word(view, 9), 0, { timeout: 0 })).toBe('timed-out')
})

test('where nothing waits to be freed, there is no room, and that is said at once', () => {
  const { waits, view } = pair()
  const { layout, thread } = waits.context
  for (let at = 0; at < SIZES.waiters; at++) layout.futexes.allocate(thread)
  expect(() => waits.waitSync(waits.word(view, 0), 0, { timeout: 0 })).toThrow(/futexes is full/)
})
