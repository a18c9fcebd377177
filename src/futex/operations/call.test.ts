import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { KernelThread } from '../../arena/sync/thread.ts'
import { EAGAIN, EFAULT, EINVAL } from '../core/errno.ts'
import { Futexes } from '../core/futexes.ts'
import { initializeFutexes, reserveFutexes } from '../core/layout.ts'
import {
  CLOCK_MONOTONIC,
  FUTEX2_SIZE_U32,
  FUTEX_LOCK_PI,
  FUTEX_UNLOCK_PI,
  FUTEX_WAIT,
  FUTEX_WAIT_BITSET,
  FUTEX_WAKE,
  type WaitvEntry,
} from './call.ts'

function boot(): { fx: Futexes; view: Int32Array<SharedArrayBuffer> } {
  const plan = new ArenaPlan()
  const layout = reserveFutexes(plan, { waiters: 16, buckets: 4, mappings: 4, spaces: 2 })
  const arena = Arena.create(plan, { debug: true })
  initializeFutexes(arena, layout)
  const fx = new Futexes(new KernelThread(arena, 64), layout, { now: () => performance.now() })
  const view = new Int32Array(new SharedArrayBuffer(64))
  fx.map(view.buffer)
  return { fx, view }
}

/** Seconds that are near a limit of this code, and the greatest of Linux. */
const FAR = [2 ** 46 / 1000, 2 ** 46 / 1000 + 1e9, 2 ** 62, 2 ** 63]

test.each(FAR)('a timeout of %d seconds does not end a wait', async sec => {
  const { fx, view } = boot()
  for (const op of [FUTEX_WAIT, FUTEX_WAIT_BITSET]) {
    let ended = false
    const uaddr = { view, index: 0 }
    const waiting = fx.futexAsync(uaddr, op, 0, { sec, nsec: 0 }, null, -1)
    void waiting.then(() => (ended = true))
    for (let turn = 0; turn < 5; turn++) await new Promise(resolve => setImmediate(resolve))
    expect(ended).toBe(false)
    expect(fx.futexSync(uaddr, FUTEX_WAKE, 1)).toBe(1)
    expect(await waiting).toBe(0)
  }
})

test('a timeout of 0 in place of a pointer is none, and any other number is a bad address', () => {
  const { fx, view } = boot()
  const uaddr = { view, index: 0 }
  expect(fx.futexSync(uaddr, FUTEX_LOCK_PI, 0, 0)).toBe(0)
  expect(fx.futexSync(uaddr, FUTEX_UNLOCK_PI, 0)).toBe(0)
  expect(fx.futexSync(uaddr, FUTEX_WAIT, 1, 0)).toBe(-EAGAIN)
  expect(fx.futexSync(uaddr, FUTEX_WAIT, 1, 8)).toBe(-EFAULT)
})

test('an index before a view is a bad address, although the buffer has a word there', () => {
  const { fx, view } = boot()
  const part = view.subarray(2, 4)
  expect(fx.futexSync({ view: part, index: -1 }, FUTEX_WAKE, 1)).toBe(-EFAULT)
  expect(fx.futexSync({ view: part, index: 2 }, FUTEX_WAKE, 1)).toBe(-EFAULT)
  expect(fx.futexSync({ view: part, index: 1 }, FUTEX_WAKE, 1)).toBe(0)
})

test('a vector is refused for a value that does not fit its word, before any address', () => {
  const { fx, view } = boot()
  const wait = (...entries: WaitvEntry[]): number => fx.waitvSync(entries, 0, null, CLOCK_MONOTONIC)
  const entry = (val: number, uaddr: WaitvEntry['uaddr'] = { view, index: 0 }): WaitvEntry => {
    return { uaddr, val, flags: FUTEX2_SIZE_U32 }
  }
  expect(wait(entry(2 ** 32))).toBe(-EINVAL)
  expect(wait(entry(-(2 ** 31) - 1))).toBe(-EINVAL)
  expect(wait(entry(0, null), entry(2 ** 32))).toBe(-EINVAL)
  expect(wait(entry(2 ** 32 - 1))).toBe(-EAGAIN)
  view[0] = -1
  expect(wait(entry(1))).toBe(-EAGAIN)
  expect(wait(entry(0, null))).toBe(-EFAULT)
  expect(wait(null as never)).toBe(-EFAULT)
  expect(fx.waitvSync(undefined as never, 0, undefined as never, 0)).toBe(-EINVAL)
})
