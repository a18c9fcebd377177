import { expect } from 'vitest'
import {
  CLOCK_MONOTONIC,
  CLOCK_REALTIME,
  FUTEX2_PRIVATE,
  FUTEX_REQUEUE,
  FUTEX_WAKE,
} from '../../../src/futex/operations/call.ts'
import { EAGAIN, EFAULT, EINVAL, ETIMEDOUT } from '../../../src/futex/core/errno.ts'
import { P, type Row, U32 } from './row.ts'

export const vectors: Row[] = [
  [
    'waitv returns the index of the word that was woken',
    async b => {
      const flags = U32
      const one = await b.start({ waitv: [0, 1, 2].map(word => ({ word, val: 0, flags })) })
      expect(b.call(FUTEX_WAKE, 1, 1)).toBe(1)
      expect(await one.result).toBe(1)
    },
  ],
  [
    'waitv removes its waiters from every queue when one word is woken',
    async b => {
      const one = await b.start({ waitv: [0, 1, 2].map(word => ({ word, val: 0, flags: U32 })) })
      b.call(FUTEX_WAKE, 0, 1)
      expect(await one.result).toBe(0)
      expect(b.call(FUTEX_WAKE, 1, 1)).toBe(0)
      expect(b.call(FUTEX_WAKE, 2, 1)).toBe(0)
    },
  ],
  [
    'waitv with another value in any word returns EAGAIN',
    async b => {
      b.view[2] = 1
      const call = { waitv: [0, 1, 2].map(word => ({ word, val: 0, flags: U32 })) }
      expect(await (await b.start(call)).result).toBe(-EAGAIN)
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(0)
    },
  ],
  [
    'waitv takes an absolute time',
    async b => {
      const call = { waitv: [{ word: 0, val: 0, flags: U32 }], timeout: { sec: 0, nsec: 1 } }
      expect(await (await b.start(call)).result).toBe(-ETIMEDOUT)
    },
  ],
  [
    'waitv with a private and a shared word is woken by a private and by a shared wake',
    async b => {
      const one = await b.start({
        waitv: [
          { word: 0, val: 0, flags: U32 | FUTEX2_PRIVATE },
          { word: 1, val: 0, flags: U32 },
        ],
      })
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(0)
      expect(b.call(FUTEX_WAKE | P, 0, 1)).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'waitv with flags, no words, too many words or an unknown clock returns EINVAL',
    b => {
      const entry = { uaddr: b.at(0), val: 0, flags: U32 }
      expect(b.fx.waitvSync([entry], 1, null, CLOCK_MONOTONIC)).toBe(-EINVAL)
      expect(b.fx.waitvSync([], 0, null, CLOCK_MONOTONIC)).toBe(-EINVAL)
      expect(b.fx.waitvSync(null, 0, null, CLOCK_MONOTONIC)).toBe(-EINVAL)
      expect(
        b.fx.waitvSync(
          Array.from({ length: 129 }, () => entry),
          0,
          null,
          CLOCK_MONOTONIC,
        ),
      ).toBe(-EINVAL)
      expect(b.fx.waitvSync([entry], 0, { sec: 0, nsec: 1 }, 7)).toBe(-EINVAL)
      expect(b.fx.waitvSync([entry], 0, { sec: -1, nsec: 1 }, CLOCK_REALTIME)).toBe(-EINVAL)
    },
  ],
  [
    'waitv with a word of another size, or unknown flags, returns EINVAL',
    b => {
      for (const flags of [0, 1, 3, U32 | 0x40]) {
        expect(b.fx.waitvSync([{ uaddr: b.at(0), val: 0, flags }], 0, null, CLOCK_MONOTONIC)).toBe(-EINVAL)
      }
    },
  ],
  [
    'waitv with a bad address returns EFAULT or EINVAL, and waits at no word',
    b => {
      const good = { uaddr: b.at(0), val: 0, flags: U32 }
      expect(b.fx.waitvSync([good, { uaddr: b.at(99), val: 0, flags: U32 }], 0, null, CLOCK_MONOTONIC)).toBe(
        -EFAULT,
      )
      expect(b.fx.waitvSync([good, { uaddr: b.at(0.5), val: 0, flags: U32 }], 0, null, CLOCK_MONOTONIC)).toBe(
        -EINVAL,
      )
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(0)
    },
  ],
  [
    'a waiter of waitv can be moved, and is woken at its new word',
    async b => {
      const one = await b.start({ waitv: [0, 1].map(word => ({ word, val: 0, flags: U32 })) })
      expect(b.call(FUTEX_REQUEUE, 0, 0, 1, 2)).toBe(1)
      expect(b.call(FUTEX_WAKE, 2, 1)).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
]
