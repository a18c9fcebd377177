import { expect } from 'vitest'
import { FUTEX_CLOCK_REALTIME, FUTEX_WAIT, FUTEX_WAKE } from '../../../src/futex/operations/call.ts'
import { EAGAIN, EFAULT, EINVAL, ENOSYS, ETIMEDOUT } from '../../../src/futex/core/errno.ts'
import { type Row, P, SOON, LATE, wait, wakeAll } from './row.ts'

export const waiting: Row[] = [
  [
    'WAIT with another value in the word returns EAGAIN',
    async b => {
      b.view[0] = 5
      expect(await (await b.start(wait(0, 4))).result).toBe(-EAGAIN)
    },
  ],
  [
    'WAIT compares all 32 bits, as unsigned or as signed',
    async b => {
      b.view[0] = -1
      const one = await b.start(wait(0, 0xffff_ffff))
      expect(await one.isDone()).toBe(false)
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'WAIT returns 0 when it is woken',
    async b => {
      const one = await b.start(wait(0))
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'WAIT returns 0 when it is woken even if the word has not changed',
    async b => {
      b.view[3] = 9
      const one = await b.start(wait(3, 9))
      b.call(FUTEX_WAKE, 3, 1)
      expect(await one.result).toBe(0)
      expect(b.view[3]).toBe(9)
    },
  ],
  [
    'WAIT sleeps on when the word changes without a wake',
    async b => {
      const one = await b.start(wait(0))
      b.view[0] = 1
      expect(await one.isDone()).toBe(false)
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'WAIT with a timeout that passes returns ETIMEDOUT, not 0',
    async b => {
      expect(await (await b.start(wait(0, 0, { timeout: SOON }))).result).toBe(-ETIMEDOUT)
    },
  ],
  [
    'WAIT with a timeout of 0 returns ETIMEDOUT',
    async b => {
      expect(await (await b.start(wait(0, 0, { timeout: { sec: 0, nsec: 0 } }))).result).toBe(-ETIMEDOUT)
    },
  ],
  [
    'WAIT with a timeout of 0 compares the word first',
    async b => {
      b.view[0] = 1
      expect(await (await b.start(wait(0, 0, { timeout: { sec: 0, nsec: 0 } }))).result).toBe(-EAGAIN)
    },
  ],
  [
    'WAIT with a timeout that has not passed is woken normally',
    async b => {
      const one = await b.start(wait(0, 0, { timeout: LATE }))
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'a waiter that timed out is off the queue: a wake finds no waiter',
    async b => {
      expect(await (await b.start(wait(0, 0, { timeout: SOON }))).result).toBe(-ETIMEDOUT)
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(0)
    },
  ],
  [
    'WAIT with a negative timeout returns EINVAL',
    async b => {
      expect(await (await b.start(wait(0, 0, { timeout: { sec: -1, nsec: 0 } }))).result).toBe(-EINVAL)
    },
  ],
  [
    'WAIT with a second or more of nanoseconds returns EINVAL',
    async b => {
      expect(await (await b.start(wait(0, 0, { timeout: { sec: 0, nsec: 1_000_000_000 } }))).result).toBe(
        -EINVAL,
      )
      expect(await (await b.start(wait(0, 0, { timeout: { sec: 0, nsec: -1 } }))).result).toBe(-EINVAL)
    },
  ],
  [
    'a bad timeout is found before a bad value',
    async b => {
      b.view[0] = 1
      expect(await (await b.start(wait(0, 0, { timeout: { sec: -1, nsec: 0 } }))).result).toBe(-EINVAL)
    },
  ],
  [
    'a bad timeout is found before a bad address',
    async b => {
      expect(await (await b.start(wait(5000, 0, { timeout: { sec: -1, nsec: 0 } }))).result).toBe(-EINVAL)
    },
  ],
  [
    'WAIT beyond the end of the buffer returns EFAULT',
    async b => {
      expect(await (await b.start(wait(64))).result).toBe(-EFAULT)
      expect(await (await b.start(wait(-1))).result).toBe(-EFAULT)
    },
  ],
  [
    'WAIT at an address that is not aligned returns EINVAL, even beyond the end',
    async b => {
      expect(await (await b.start(wait(0.5))).result).toBe(-EINVAL)
      expect(await (await b.start(wait(1000.25))).result).toBe(-EINVAL)
    },
  ],
  [
    'WAIT with CLOCK_REALTIME returns ENOSYS, as the kernel does, against the manual',
    async b => {
      expect(await (await b.start(wait(0, 0, { op: FUTEX_WAIT | FUTEX_CLOCK_REALTIME }))).result).toBe(
        -ENOSYS,
      )
    },
  ],
  [
    'private waiters are woken by private wakes',
    async b => {
      const one = await b.start(wait(0, 0, { op: FUTEX_WAIT | P }))
      expect(b.call(FUTEX_WAKE | P, 0, 1)).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'a shared wake does not wake a private waiter, nor a private wake a shared one',
    async b => {
      const priv = await b.start(wait(0, 0, { op: FUTEX_WAIT | P }))
      const open = await b.start(wait(0))
      expect(b.call(FUTEX_WAKE, 0, 10)).toBe(1)
      expect(await priv.isDone()).toBe(false)
      expect(await open.result).toBe(0)
      expect(b.call(FUTEX_WAKE | P, 0, 10)).toBe(1)
      expect(await priv.result).toBe(0)
    },
  ],
  [
    'waiters at other words are not woken',
    async b => {
      const one = await b.start(wait(1))
      expect(b.call(FUTEX_WAKE, 0, 10)).toBe(0)
      expect(b.call(FUTEX_WAKE, 2, 10)).toBe(0)
      expect(await one.isDone()).toBe(false)
      wakeAll(b, 1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'WAIT at one word works again and again',
    async b => {
      for (let i = 0; i < 5; i++) {
        const one = await b.start(wait(0))
        expect(b.call(FUTEX_WAKE, 0, 1)).toBe(1)
        expect(await one.result).toBe(0)
      }
    },
  ],
]
