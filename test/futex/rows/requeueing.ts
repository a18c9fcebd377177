import { expect } from 'vitest'
import {
  FUTEX_CMP_REQUEUE,
  FUTEX_REQUEUE,
  FUTEX_WAIT,
  FUTEX_WAIT_BITSET,
  FUTEX_WAKE,
  FUTEX_WAKE_BITSET,
} from '../../../src/futex/operations/call.ts'
import { EAGAIN, EFAULT, EINVAL, ETIMEDOUT } from '../../../src/futex/core/errno.ts'
import { type Row, P, wait, many, doneCount, results, wakeAll } from './row.ts'

export const requeueing: Row[] = [
  [
    'REQUEUE wakes some and moves the rest; it returns the sum',
    async b => {
      const all = await many(b, 5)
      expect(b.call(FUTEX_REQUEUE, 0, 1, 3, 1)).toBe(4)
      expect(await doneCount(all)).toBe(1)
      expect(b.call(FUTEX_WAKE, 0, 10)).toBe(1)
      expect(b.call(FUTEX_WAKE, 1, 10)).toBe(3)
      expect(await results(all)).toEqual([0, 0, 0, 0, 0])
    },
  ],
  [
    'REQUEUE without waiters returns 0',
    b => {
      expect(b.call(FUTEX_REQUEUE, 0, 1, 1, 1)).toBe(0)
    },
  ],
  [
    'REQUEUE keeps the order of the moved waiters, behind those already there',
    async b => {
      const there = await b.start(wait(1))
      const [first, second] = await many(b, 2)
      expect(b.call(FUTEX_REQUEUE, 0, 0, 10, 1)).toBe(2)
      b.call(FUTEX_WAKE, 1, 1)
      expect([await there.isDone(), await first.isDone(), await second.isDone()]).toEqual([
        true,
        false,
        false,
      ])
      b.call(FUTEX_WAKE, 1, 1)
      expect([await first.isDone(), await second.isDone()]).toEqual([true, false])
      wakeAll(b, 1)
      expect(await second.result).toBe(0)
    },
  ],
  [
    'REQUEUE puts a waiter of higher priority before those already there',
    async b => {
      const there = await b.start(wait(1, 0, { priority: 40 << 2 }))
      const high = await b.start(wait(0, 0, { priority: 3 << 2 }))
      expect(b.call(FUTEX_REQUEUE, 0, 0, 1, 1)).toBe(1)
      b.call(FUTEX_WAKE, 1, 1)
      expect([await there.isDone(), await high.isDone()]).toEqual([false, true])
      wakeAll(b, 1)
      await results([there, high])
    },
  ],
  [
    'a moved waiter times out at its new word',
    async b => {
      let moved = 0
      // On a busy machine a wait may time out before the move: then a longer one begins.
      for (let sec = 0; moved === 0 && sec < 60; sec = sec * 2 + 1) {
        const one = await b.start(wait(0, 0, { timeout: { sec, nsec: 30_000_000 } }))
        moved = b.call(FUTEX_REQUEUE, 0, 0, 1, 1)
        expect(await one.result).toBe(-ETIMEDOUT)
      }
      expect(moved).toBe(1)
      expect(b.call(FUTEX_WAKE, 1, 1)).toBe(0)
    },
  ],
  [
    'REQUEUE of a negative number of wakes or moves returns EINVAL, before a bad address',
    async b => {
      const [one] = await many(b, 1)
      expect(b.call(FUTEX_REQUEUE, 0, -1, 1, 1)).toBe(-EINVAL)
      expect(b.call(FUTEX_REQUEUE, 0, 1, -1, 1)).toBe(-EINVAL)
      expect(b.call(FUTEX_REQUEUE, 99, -1, 1, 1)).toBe(-EINVAL)
      wakeAll(b, 0)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'REQUEUE to or from a bad address returns EFAULT or EINVAL, and moves no waiter',
    async b => {
      const [one] = await many(b, 1)
      expect(b.call(FUTEX_REQUEUE, 0, 0, 1, 99)).toBe(-EFAULT)
      expect(b.call(FUTEX_REQUEUE, 0, 0, 1, 0.5)).toBe(-EINVAL)
      expect(b.call(FUTEX_REQUEUE, 99, 0, 1, 0)).toBe(-EFAULT)
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'REQUEUE of nothing at all does nothing',
    async b => {
      const [one] = await many(b, 1)
      expect(b.call(FUTEX_REQUEUE, 0, 0, 0, 1)).toBe(0)
      expect(await one.isDone()).toBe(false)
      wakeAll(b, 0)
      await one.result
    },
  ],
  [
    'REQUEUE onto the same word counts, and keeps the order',
    async b => {
      const [first, second, third] = await many(b, 3)
      expect(b.call(FUTEX_REQUEUE, 0, 1, 10, 0)).toBe(3)
      expect(await first.result).toBe(0)
      b.call(FUTEX_WAKE, 0, 1)
      expect([await second.isDone(), await third.isDone()]).toEqual([true, false])
      wakeAll(b, 0)
      expect(await third.result).toBe(0)
    },
  ],
  [
    'REQUEUE moves regardless of bitsets, and the bitset goes with the waiter',
    async b => {
      const one = await b.start({ op: FUTEX_WAIT_BITSET, word: 0, val: 0, val3: 4 })
      expect(b.call(FUTEX_REQUEUE, 0, 0, 1, 1)).toBe(1)
      expect(b.call(FUTEX_WAKE_BITSET, 1, 1, null, undefined, 3)).toBe(0)
      expect(b.call(FUTEX_WAKE_BITSET, 1, 1, null, undefined, 4)).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'waiters can be moved there and back again',
    async b => {
      const all = await many(b, 3)
      expect(b.call(FUTEX_REQUEUE, 0, 0, 10, 1)).toBe(3)
      expect(b.call(FUTEX_REQUEUE, 1, 0, 2, 0)).toBe(2)
      expect(b.call(FUTEX_WAKE, 0, 10)).toBe(2)
      expect(b.call(FUTEX_WAKE, 1, 10)).toBe(1)
      expect(await results(all)).toEqual([0, 0, 0])
    },
  ],
  [
    'CMP_REQUEUE with another value returns EAGAIN and moves no waiter',
    async b => {
      const [one] = await many(b, 1)
      expect(b.call(FUTEX_CMP_REQUEUE, 0, 1, 1, 1, 5)).toBe(-EAGAIN)
      expect(await one.isDone()).toBe(false)
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(1)
      await one.result
    },
  ],
  [
    'CMP_REQUEUE with another value returns EAGAIN also without waiters',
    b => {
      expect(b.call(FUTEX_CMP_REQUEUE, 0, 1, 1, 1, 5)).toBe(-EAGAIN)
      expect(b.call(FUTEX_CMP_REQUEUE, 0, 1, 1, 1, 0)).toBe(0)
    },
  ],
  [
    'CMP_REQUEUE with the value wakes and moves as REQUEUE',
    async b => {
      b.view[0] = 0
      const all = await many(b, 4)
      b.view[0] = 8
      expect(b.call(FUTEX_CMP_REQUEUE, 0, 1, 0x7fff_ffff, 1, 8)).toBe(4)
      expect(await doneCount(all)).toBe(1)
      expect(b.call(FUTEX_WAKE, 1, 10)).toBe(3)
      expect(await results(all)).toEqual([0, 0, 0, 0])
    },
  ],
  [
    'CMP_REQUEUE compares the first word, not the second',
    async b => {
      b.view[1] = 3
      const [one] = await many(b, 1)
      expect(b.call(FUTEX_CMP_REQUEUE, 0, 0, 1, 1, 0)).toBe(1)
      wakeAll(b, 1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'CMP_REQUEUE checks numbers and addresses before the value',
    b => {
      expect(b.call(FUTEX_CMP_REQUEUE, 0, -1, 1, 1, 5)).toBe(-EINVAL)
      expect(b.call(FUTEX_CMP_REQUEUE, 0, 1, 1, 99, 5)).toBe(-EFAULT)
    },
  ],
  [
    'private REQUEUE moves private waiters only',
    async b => {
      const priv = await b.start(wait(0, 0, { op: FUTEX_WAIT | P }))
      const open = await b.start(wait(0))
      expect(b.call(FUTEX_REQUEUE | P, 0, 0, 10, 1)).toBe(1)
      expect(b.call(FUTEX_WAKE | P, 1, 10)).toBe(1)
      expect(await priv.result).toBe(0)
      wakeAll(b, 0)
      expect(await open.result).toBe(0)
    },
  ],
]
