import { expect } from 'vitest'
import {
  FUTEX_CLOCK_REALTIME,
  FUTEX_WAIT_BITSET,
  FUTEX_WAKE,
  FUTEX_WAKE_BITSET,
} from '../../../src/futex/operations/call.ts'
import { EAGAIN, EINVAL, ETIMEDOUT } from '../../../src/futex/core/errno.ts'
import { type Row, wait, results, wakeAll } from './row.ts'

export const bitsets: Row[] = [
  [
    'WAIT_BITSET with no bit returns EINVAL',
    async b => {
      expect(await (await b.start({ op: FUTEX_WAIT_BITSET, word: 0, val: 0, val3: 0 })).result).toBe(-EINVAL)
    },
  ],
  [
    'WAIT_BITSET with no bit is found before a bad value and a bad address',
    async b => {
      b.view[0] = 1
      expect(await (await b.start({ op: FUTEX_WAIT_BITSET, word: 0, val: 0, val3: 0 })).result).toBe(-EINVAL)
      expect(await (await b.start({ op: FUTEX_WAIT_BITSET, word: 99, val: 0, val3: 0 })).result).toBe(-EINVAL)
    },
  ],
  [
    'WAKE_BITSET with no bit returns EINVAL, before a bad address',
    b => {
      expect(b.call(FUTEX_WAKE_BITSET, 0, 1, null, undefined, 0)).toBe(-EINVAL)
      expect(b.call(FUTEX_WAKE_BITSET, 99, 1, null, undefined, 0)).toBe(-EINVAL)
    },
  ],
  [
    'WAKE_BITSET wakes only waiters with a bit in common',
    async b => {
      const one = await b.start({ op: FUTEX_WAIT_BITSET, word: 0, val: 0, val3: 0b0011 })
      const two = await b.start({ op: FUTEX_WAIT_BITSET, word: 0, val: 0, val3: 0b0100 })
      expect(b.call(FUTEX_WAKE_BITSET, 0, 10, null, undefined, 0b1000)).toBe(0)
      expect(b.call(FUTEX_WAKE_BITSET, 0, 10, null, undefined, 0b0110)).toBe(2)
      expect(await results([one, two])).toEqual([0, 0])
    },
  ],
  [
    'waiters that the bitset skips do not count',
    async b => {
      const other = await b.start({ op: FUTEX_WAIT_BITSET, word: 0, val: 0, val3: 1 })
      const ours = await b.start({ op: FUTEX_WAIT_BITSET, word: 0, val: 0, val3: 2 })
      expect(b.call(FUTEX_WAKE_BITSET, 0, 1, null, undefined, 2)).toBe(1)
      expect([await other.isDone(), await ours.isDone()]).toEqual([false, true])
      wakeAll(b, 0)
      await results([other, ours])
    },
  ],
  [
    'the highest bit is a bit like any other',
    async b => {
      const one = await b.start({ op: FUTEX_WAIT_BITSET, word: 0, val: 0, val3: 0x8000_0000 })
      expect(b.call(FUTEX_WAKE_BITSET, 0, 1, null, undefined, 0x7fff_ffff)).toBe(0)
      expect(b.call(FUTEX_WAKE_BITSET, 0, 1, null, undefined, 0x8000_0000)).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'a plain WAKE wakes every bitset',
    async b => {
      const one = await b.start({ op: FUTEX_WAIT_BITSET, word: 0, val: 0, val3: 8 })
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'a plain WAIT is woken by every bitset',
    async b => {
      const one = await b.start(wait(0))
      expect(b.call(FUTEX_WAKE_BITSET, 0, 1, null, undefined, 0x10)).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'WAIT_BITSET takes an absolute time: one that has passed times out',
    async b => {
      const call = { op: FUTEX_WAIT_BITSET, word: 0, val: 0, val3: -1, timeout: { sec: 0, nsec: 1 } }
      expect(await (await b.start(call)).result).toBe(-ETIMEDOUT)
    },
  ],
  [
    'WAIT_BITSET with CLOCK_REALTIME takes the time of day',
    async b => {
      const op = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME
      expect(
        await (await b.start({ op, word: 0, val: 0, val3: -1, timeout: { sec: 1, nsec: 0 } })).result,
      ).toBe(-ETIMEDOUT)
      const later = { sec: Math.floor(Date.now() / 1000) + 1000, nsec: 0 }
      const one = await b.start({ op, word: 0, val: 0, val3: -1, timeout: later })
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'WAIT_BITSET with another value returns EAGAIN',
    async b => {
      expect(await (await b.start({ op: FUTEX_WAIT_BITSET, word: 0, val: 3, val3: -1 })).result).toBe(-EAGAIN)
    },
  ],
]
