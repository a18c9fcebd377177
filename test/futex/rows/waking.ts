import { expect } from 'vitest'
import { FUTEX_CLOCK_REALTIME, FUTEX_FD, FUTEX_WAKE } from '../../../src/futex/operations/call.ts'
import { EFAULT, EINVAL, ENOSYS } from '../../../src/futex/core/errno.ts'
import { type Row, wait, many, doneCount, results, wakeAll } from './row.ts'

export const waking: Row[] = [
  [
    'WAKE without waiters returns 0',
    b => {
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(0)
    },
  ],
  [
    'WAKE wakes at most the given number',
    async b => {
      const all = await many(b, 4)
      expect(b.call(FUTEX_WAKE, 0, 3)).toBe(3)
      expect(await doneCount(all)).toBe(3)
      expect(b.call(FUTEX_WAKE, 0, 3)).toBe(1)
      expect(await results(all)).toEqual([0, 0, 0, 0])
    },
  ],
  [
    'WAKE of INT_MAX wakes all',
    async b => {
      const all = await many(b, 3)
      expect(b.call(FUTEX_WAKE, 0, 0x7fff_ffff)).toBe(3)
      expect(await results(all)).toEqual([0, 0, 0])
    },
  ],
  [
    'WAKE of 0 wakes one, as Linux counts',
    async b => {
      const all = await many(b, 2)
      expect(b.call(FUTEX_WAKE, 0, 0)).toBe(1)
      wakeAll(b, 0)
      await results(all)
    },
  ],
  [
    'WAKE of a negative number wakes one',
    async b => {
      const all = await many(b, 3)
      expect(b.call(FUTEX_WAKE, 0, -5)).toBe(1)
      wakeAll(b, 0)
      await results(all)
    },
  ],
  [
    'WAKE does not read the word',
    async b => {
      const one = await b.start(wait(0))
      b.view[0] = 77
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'waiters of one priority are woken in the order of their arrival',
    async b => {
      const [first, second, third] = await many(b, 3)
      b.call(FUTEX_WAKE, 0, 1)
      expect([await first.isDone(), await second.isDone(), await third.isDone()]).toEqual([
        true,
        false,
        false,
      ])
      b.call(FUTEX_WAKE, 0, 1)
      expect([await second.isDone(), await third.isDone()]).toEqual([true, false])
      b.call(FUTEX_WAKE, 0, 1)
      expect(await third.result).toBe(0)
    },
  ],
  [
    'a waiter of higher priority is woken before earlier ones',
    async b => {
      const low = await b.start(wait(0, 0, { priority: 50 << 2 }))
      const high = await b.start(wait(0, 0, { priority: 5 << 2 }))
      const middle = await b.start(wait(0, 0, { priority: 20 << 2 }))
      b.call(FUTEX_WAKE, 0, 1)
      expect([await low.isDone(), await high.isDone(), await middle.isDone()]).toEqual([false, true, false])
      b.call(FUTEX_WAKE, 0, 1)
      expect([await low.isDone(), await middle.isDone()]).toEqual([false, true])
      b.call(FUTEX_WAKE, 0, 1)
      expect(await low.result).toBe(0)
    },
  ],
  [
    'WAKE at an address that is not aligned returns EINVAL, beyond the end EFAULT',
    b => {
      expect(b.call(FUTEX_WAKE, 0.5, 1)).toBe(-EINVAL)
      expect(b.call(FUTEX_WAKE, 64, 1)).toBe(-EFAULT)
      expect(b.fx.futexSync(null, FUTEX_WAKE, 1)).toBe(-EFAULT)
    },
  ],
  [
    'WAKE with CLOCK_REALTIME returns ENOSYS',
    b => {
      expect(b.call(FUTEX_WAKE | FUTEX_CLOCK_REALTIME, 0, 1)).toBe(-ENOSYS)
    },
  ],
  [
    'FUTEX_FD returns ENOSYS, and so do unknown operations',
    b => {
      expect(b.call(FUTEX_FD, 0, 0)).toBe(-ENOSYS)
      for (const op of [14, 15, 64, 127]) expect(b.call(op, 0, 0)).toBe(-ENOSYS)
    },
  ],
  [
    'an unknown operation is found before a bad address',
    b => {
      expect(b.call(99, 5000, 0)).toBe(-ENOSYS)
    },
  ],
]
