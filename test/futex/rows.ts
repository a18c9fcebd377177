import { expect } from 'vitest'
import {
  CLOCK_MONOTONIC,
  CLOCK_REALTIME,
  FUTEX2_PRIVATE,
  FUTEX2_SIZE_U32,
  FUTEX_CLOCK_REALTIME,
  FUTEX_CMP_REQUEUE,
  FUTEX_FD,
  FUTEX_PRIVATE_FLAG,
  FUTEX_REQUEUE,
  FUTEX_WAIT,
  FUTEX_WAIT_BITSET,
  FUTEX_WAKE,
  FUTEX_WAKE_BITSET,
  FUTEX_WAKE_OP,
} from '../../src/futex/call.ts'
import { EAGAIN, EFAULT, EINTR, EINVAL, ENOSYS, ETIMEDOUT } from '../../src/futex/errno.ts'
import {
  CMP_EQ,
  CMP_GE,
  CMP_GT,
  CMP_LE,
  CMP_LT,
  CMP_NE,
  encodeOp,
  OP_ADD,
  OP_ANDN,
  OP_ARG_SHIFT,
  OP_OR,
  OP_SET,
  OP_XOR,
} from '../../src/futex/wakeop.ts'
import type { Bench, Pending } from './bench.ts'

/** One behaviour a row: what Linux does, done here. */
export type Row = [name: string, run: (bench: Bench) => Promise<void> | void]

const P = FUTEX_PRIVATE_FLAG
const SOON = { sec: 0, nsec: 2_000_000 }
const LATE = { sec: 1000, nsec: 0 }
const U32 = FUTEX2_SIZE_U32

const wait = (word: number, val = 0, more: object = {}): { op: number; word: number; val: number } => ({
  op: FUTEX_WAIT,
  word,
  val,
  ...more,
})
const many = async (bench: Bench, count: number, word = 0): Promise<Pending[]> => {
  const started: Pending[] = []
  for (let i = 0; i < count; i++) started.push(await bench.start(wait(word)))
  return started
}
const doneCount = async (pending: Pending[]): Promise<number> => {
  let count = 0
  for (const one of pending) if (await one.isDone()) count++
  return count
}
const results = (pending: Pending[]): Promise<number[]> => Promise.all(pending.map(one => one.result))
const wakeAll = (bench: Bench, ...words: number[]): void => {
  for (const word of words) bench.call(FUTEX_WAKE, word, 1000)
}

const waiting: Row[] = [
  [
    'WAIT with another value in the word returns EAGAIN',
    async b => {
      b.view[0] = 5
      expect(await (await b.start(wait(0, 4))).result).toBe(-EAGAIN)
    },
  ],
  [
    'WAIT compares all 32 bits, as unsigned or signed alike',
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
    'WAIT with a timeout of nothing returns ETIMEDOUT',
    async b => {
      expect(await (await b.start(wait(0, 0, { timeout: { sec: 0, nsec: 0 } }))).result).toBe(-ETIMEDOUT)
    },
  ],
  [
    'WAIT with a timeout of nothing still looks at the word first',
    async b => {
      b.view[0] = 1
      expect(await (await b.start(wait(0, 0, { timeout: { sec: 0, nsec: 0 } }))).result).toBe(-EAGAIN)
    },
  ],
  [
    'WAIT with a timeout that has not passed is woken as any',
    async b => {
      const one = await b.start(wait(0, 0, { timeout: LATE }))
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'a waiter that timed out is off the queue: a wake finds nobody',
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
    'WAIT with CLOCK_REALTIME returns ENOSYS, as the kernel has it and the manual does not',
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
    'a private waiter is not met by a shared wake, nor the other way',
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
    'a word can be waited for again and again',
    async b => {
      for (let i = 0; i < 5; i++) {
        const one = await b.start(wait(0))
        expect(b.call(FUTEX_WAKE, 0, 1)).toBe(1)
        expect(await one.result).toBe(0)
      }
    },
  ],
]

const waking: Row[] = [
  [
    'WAKE with nobody waiting returns 0',
    b => {
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(0)
    },
  ],
  [
    'WAKE wakes at most as many as asked for',
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
    'WAKE does not look at the word',
    async b => {
      const one = await b.start(wait(0))
      b.view[0] = 77
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'waiters of one priority are woken in the order they came',
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
    'a waiter of higher priority is woken before those who came earlier',
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
    'FUTEX_FD returns ENOSYS, and so do numbers that are no operation',
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

const bitsets: Row[] = [
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
    'WAKE_BITSET wakes only those with a bit in common',
    async b => {
      const one = await b.start({ op: FUTEX_WAIT_BITSET, word: 0, val: 0, val3: 0b0011 })
      const two = await b.start({ op: FUTEX_WAIT_BITSET, word: 0, val: 0, val3: 0b0100 })
      expect(b.call(FUTEX_WAKE_BITSET, 0, 10, null, undefined, 0b1000)).toBe(0)
      expect(b.call(FUTEX_WAKE_BITSET, 0, 10, null, undefined, 0b0110)).toBe(2)
      expect(await results([one, two])).toEqual([0, 0])
    },
  ],
  [
    'those passed over by a bitset do not count against the number',
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
    'the highest bit is a bit as any other',
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

const requeueing: Row[] = [
  [
    'REQUEUE wakes some and moves the rest; it returns both together',
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
    'REQUEUE with nobody waiting returns 0',
    b => {
      expect(b.call(FUTEX_REQUEUE, 0, 1, 1, 1)).toBe(0)
    },
  ],
  [
    'REQUEUE keeps the order of those it moves, behind those already there',
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
    'a waiter that was moved times out where it is now',
    async b => {
      const one = await b.start(wait(0, 0, { timeout: { sec: 0, nsec: 30_000_000 } }))
      expect(b.call(FUTEX_REQUEUE, 0, 0, 1, 1)).toBe(1)
      expect(await one.result).toBe(-ETIMEDOUT)
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
    'REQUEUE to or from a bad address returns EFAULT or EINVAL, and moves nobody',
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
    'REQUEUE onto the same word counts and leaves everyone in order',
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
    'CMP_REQUEUE with another value returns EAGAIN and moves nobody',
    async b => {
      const [one] = await many(b, 1)
      expect(b.call(FUTEX_CMP_REQUEUE, 0, 1, 1, 1, 5)).toBe(-EAGAIN)
      expect(await one.isDone()).toBe(false)
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(1)
      await one.result
    },
  ],
  [
    'CMP_REQUEUE with another value returns EAGAIN even with nobody waiting',
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
    'CMP_REQUEUE looks at the first word, not the second',
    async b => {
      b.view[1] = 3
      const [one] = await many(b, 1)
      expect(b.call(FUTEX_CMP_REQUEUE, 0, 0, 1, 1, 0)).toBe(1)
      wakeAll(b, 1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'CMP_REQUEUE looks for bad numbers and addresses before the value',
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

/** Runs WAKE_OP on word 1 holding `old`, and says what it held afterwards and whether its waiter was woken. */
async function wakeOpOn(
  b: Bench,
  old: number,
  op: number,
  oparg: number,
  cmp: number,
  cmparg: number,
): Promise<{ now: number; woke: boolean; result: number }> {
  b.view[1] = 0
  const second = await b.start(wait(1))
  b.view[1] = old
  const result = b.call(FUTEX_WAKE_OP, 0, 1, 1, 1, encodeOp(op, oparg, cmp, cmparg))
  const woke = await second.isDone()
  const now = b.view[1]
  wakeAll(b, 1)
  await second.result
  return { now, woke, result }
}

const wakeOps: Row[] = [
  [
    'WAKE_OP SET stores its operand',
    async b => {
      expect(await wakeOpOn(b, 5, OP_SET, 7, CMP_EQ, 5)).toEqual({ now: 7, woke: true, result: 1 })
    },
  ],
  [
    'WAKE_OP ADD adds, and its operand is signed',
    async b => {
      expect((await wakeOpOn(b, 5, OP_ADD, 7, CMP_EQ, 5)).now).toBe(12)
      expect((await wakeOpOn(b, 5, OP_ADD, -7, CMP_EQ, 5)).now).toBe(-2)
    },
  ],
  [
    'WAKE_OP ADD wraps around',
    async b => {
      expect((await wakeOpOn(b, 0x7fff_ffff, OP_ADD, 1, CMP_NE, 0)).now).toBe(-0x8000_0000)
    },
  ],
  [
    'WAKE_OP OR, ANDN and XOR',
    async b => {
      expect((await wakeOpOn(b, 0b1100, OP_OR, 0b1010, CMP_EQ, 0b1100)).now).toBe(0b1110)
      expect((await wakeOpOn(b, 0b1100, OP_ANDN, 0b1010, CMP_EQ, 0b1100)).now).toBe(0b0100)
      expect((await wakeOpOn(b, 0b1100, OP_XOR, 0b1010, CMP_EQ, 0b1100)).now).toBe(0b0110)
    },
  ],
  [
    'a negative operand is extended to 32 bits before it is used',
    async b => {
      expect((await wakeOpOn(b, 0, OP_SET, -1, CMP_EQ, 0)).now).toBe(-1)
      expect((await wakeOpOn(b, 0x7000_0001, OP_ANDN, -2048, CMP_NE, 0)).now).toBe(1)
    },
  ],
  [
    'OPARG_SHIFT makes the operand a bit',
    async b => {
      expect((await wakeOpOn(b, 0, OP_OR | OP_ARG_SHIFT, 12, CMP_EQ, 0)).now).toBe(1 << 12)
      expect((await wakeOpOn(b, 0, OP_SET | OP_ARG_SHIFT, 31, CMP_EQ, 0)).now).toBe(1 << 31)
    },
  ],
  [
    'OPARG_SHIFT by more than 31, or less than 0, is taken modulo 32',
    async b => {
      expect((await wakeOpOn(b, 0, OP_SET | OP_ARG_SHIFT, 35, CMP_EQ, 0)).now).toBe(8)
      expect((await wakeOpOn(b, 0, OP_SET | OP_ARG_SHIFT, -1, CMP_EQ, 0)).now).toBe(1 << 31)
    },
  ],
  [
    'each comparison is of the old value with the argument, signed',
    async b => {
      const woke = async (old: number, cmp: number, arg: number): Promise<boolean> =>
        (await wakeOpOn(b, old, OP_SET, 0, cmp, arg)).woke
      expect([await woke(3, CMP_EQ, 3), await woke(4, CMP_EQ, 3)]).toEqual([true, false])
      expect([await woke(3, CMP_NE, 3), await woke(4, CMP_NE, 3)]).toEqual([false, true])
      expect([await woke(-5, CMP_LT, 3), await woke(3, CMP_LT, 3)]).toEqual([true, false])
      expect([await woke(3, CMP_LE, 3), await woke(4, CMP_LE, 3)]).toEqual([true, false])
      expect([await woke(4, CMP_GT, 3), await woke(-4, CMP_GT, 3)]).toEqual([true, false])
      expect([await woke(3, CMP_GE, 3), await woke(2, CMP_GE, 3)]).toEqual([true, false])
    },
  ],
  [
    'the argument of a comparison is signed: 0xfff is -1',
    async b => {
      expect((await wakeOpOn(b, -1, OP_SET, 0, CMP_EQ, 0xfff)).woke).toBe(true)
      expect((await wakeOpOn(b, 0xfff, OP_SET, 0, CMP_EQ, 0xfff)).woke).toBe(false)
      expect((await wakeOpOn(b, 0, OP_SET, 0, CMP_GT, -2048)).woke).toBe(true)
    },
  ],
  [
    'WAKE_OP wakes at the first word whatever the comparison says',
    async b => {
      const [first] = await many(b, 1)
      expect(b.call(FUTEX_WAKE_OP, 0, 1, 1, 1, encodeOp(OP_SET, 1, CMP_EQ, 9))).toBe(1)
      expect(await first.result).toBe(0)
      expect(b.view[1]).toBe(1)
    },
  ],
  [
    'WAKE_OP returns those woken at both words together, each within its number',
    async b => {
      const first = await many(b, 3)
      const second = await many(b, 3, 1)
      expect(b.call(FUTEX_WAKE_OP, 0, 2, 1, 1, encodeOp(OP_ADD, 0, CMP_EQ, 0))).toBe(3)
      expect([await doneCount(first), await doneCount(second)]).toEqual([2, 1])
      wakeAll(b, 0, 1)
      await results([...first, ...second])
    },
  ],
  [
    'WAKE_OP changes the word with nobody waiting anywhere',
    b => {
      b.view[1] = 4
      expect(b.call(FUTEX_WAKE_OP, 0, 1, 1, 1, encodeOp(OP_ADD, 3, CMP_EQ, 0))).toBe(0)
      expect(b.view[1]).toBe(7)
    },
  ],
  [
    'WAKE_OP with an unknown operation returns ENOSYS and changes nothing',
    async b => {
      const [first] = await many(b, 1)
      b.view[1] = 4
      for (const op of [5, 6, 7])
        expect(b.call(FUTEX_WAKE_OP, 0, 1, 1, 1, encodeOp(op, 3, CMP_EQ, 4))).toBe(-ENOSYS)
      expect(b.view[1]).toBe(4)
      expect(await first.isDone()).toBe(false)
      wakeAll(b, 0)
      await first.result
    },
  ],
  [
    'WAKE_OP with an unknown comparison returns ENOSYS after it has changed the word, and wakes nobody',
    async b => {
      const [first] = await many(b, 1)
      b.view[1] = 4
      expect(b.call(FUTEX_WAKE_OP, 0, 1, 1, 1, encodeOp(OP_ADD, 3, 6, 4))).toBe(-ENOSYS)
      expect(b.view[1]).toBe(7)
      expect(await first.isDone()).toBe(false)
      wakeAll(b, 0)
      await first.result
    },
  ],
  [
    'WAKE_OP at bad addresses returns EFAULT or EINVAL and changes nothing',
    b => {
      b.view[1] = 4
      expect(b.call(FUTEX_WAKE_OP, 99, 1, 1, 1, encodeOp(OP_SET, 0, CMP_EQ, 0))).toBe(-EFAULT)
      expect(b.call(FUTEX_WAKE_OP, 0, 1, 1, 99, encodeOp(OP_SET, 0, CMP_EQ, 0))).toBe(-EFAULT)
      expect(b.call(FUTEX_WAKE_OP, 0.5, 1, 1, 1, encodeOp(OP_SET, 0, CMP_EQ, 0))).toBe(-EINVAL)
      expect(b.view[1]).toBe(4)
    },
  ],
  [
    'WAKE_OP on one word for both changes it and wakes twice',
    async b => {
      const all = await many(b, 2)
      expect(b.call(FUTEX_WAKE_OP, 0, 1, 1, 0, encodeOp(OP_SET, 1, CMP_EQ, 0))).toBe(2)
      expect(b.view[0]).toBe(1)
      expect(await results(all)).toEqual([0, 0])
    },
  ],
]

const vectors: Row[] = [
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
    'waitv leaves every queue when one word is woken',
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
    'waitv with a private and a shared word is woken at each as each',
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
    'waitv with a bad address returns EFAULT or EINVAL, and waits at none',
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
    'a waiter of waitv can be moved, and is woken where it went',
    async b => {
      const one = await b.start({ waitv: [0, 1].map(word => ({ word, val: 0, flags: U32 })) })
      expect(b.call(FUTEX_REQUEUE, 0, 0, 1, 2)).toBe(1)
      expect(b.call(FUTEX_WAKE, 2, 1)).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
]

const spaces: Row[] = [
  [
    'two mappings of one buffer share its shared futexes',
    async b => {
      const one = await b.start(wait(0, 0, { map: 1 }))
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'two mappings of one buffer do not share its private futexes',
    async b => {
      const one = await b.start(wait(0, 0, { map: 1, op: FUTEX_WAIT | P }))
      expect(b.call(FUTEX_WAKE | P, 0, 1)).toBe(0)
      expect(b.fx.futexSync(b.at(0, 1), FUTEX_WAKE | P, 1)).toBe(1)
      b.settle()
      expect(await one.result).toBe(0)
    },
  ],
  [
    'unmapping ends the private futexes of the mapping: those asleep get EFAULT',
    async b => {
      const one = await b.start(wait(0, 0, { map: 1, op: FUTEX_WAIT | P }))
      b.fx.unmap(b.mapped[1])
      b.settle()
      expect(await one.result).toBe(-EFAULT)
      expect(b.fx.futexSync(b.at(0, 1), FUTEX_WAKE | P, 1)).toBe(-EFAULT)
    },
  ],
  [
    'unmapping one of two mappings leaves the shared futexes to the other',
    async b => {
      const one = await b.start(wait(0, 0, { map: 1 }))
      b.fx.unmap(b.mapped[1])
      b.settle()
      expect(await one.isDone()).toBe(false)
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'unmapping the last mapping ends the shared futexes too',
    async b => {
      b.fx.unmap(b.mapped[1])
      const one = await b.start(wait(0))
      b.fx.unmap(b.mapped[0])
      b.settle()
      expect(await one.result).toBe(-EFAULT)
    },
  ],
  [
    'a buffer mapped anew has new futexes',
    async b => {
      const one = await b.start(wait(0, 0, { op: FUTEX_WAIT | P }))
      const again = b.fx.map(b.mapped[0].buffer)
      expect(b.fx.futexSync({ view: again.i32, index: 0 }, FUTEX_WAKE | P, 1)).toBe(0)
      expect(await one.isDone()).toBe(false)
      expect(b.call(FUTEX_WAKE | P, 0, 1)).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'a waiter that is moved to a mapping that goes away gets EFAULT',
    async b => {
      const one = await b.start(wait(0, 0, { op: FUTEX_WAIT | P }))
      expect(b.fx.futexSync(b.at(0), FUTEX_REQUEUE | P, 0, 1, b.at(0, 1))).toBe(1)
      b.fx.unmap(b.mapped[1])
      b.settle()
      expect(await one.result).toBe(-EFAULT)
    },
  ],
]

/** Marks the waiter at the head of the table as one that waits for a pi lock. */
const makePi = (b: Bench): void => b.markPi()

const mixed: Row[] = [
  [
    'WAKE that meets a pi waiter returns EINVAL, and those woken before it stay woken',
    async b => {
      const all = await many(b, 2)
      makePi(b)
      expect(b.call(FUTEX_WAKE, 0, 10)).toBe(-EINVAL)
      expect(await doneCount(all)).toBe(1)
      b.unmarkPi()
      wakeAll(b, 0)
      await results(all)
    },
  ],
  [
    'REQUEUE and WAKE_OP that meet a pi waiter return EINVAL',
    async b => {
      const all = await many(b, 1)
      makePi(b)
      expect(b.call(FUTEX_REQUEUE, 0, 1, 1, 1)).toBe(-EINVAL)
      expect(b.call(FUTEX_WAKE_OP, 0, 1, 1, 1, encodeOp(OP_SET, 0, CMP_EQ, 0))).toBe(-EINVAL)
      b.unmarkPi()
      wakeAll(b, 0)
      expect(await results(all)).toEqual([0])
    },
  ],
]

/** Only a task can get a signal. */
export const signalRows: Row[] = [
  [
    'a signal ends a wait with EINTR, and the waiter is off its queue',
    async b => {
      const one = await b.start(wait(0))
      b.signal(one)
      expect(await one.result).toBe(-EINTR)
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(0)
    },
  ],
  [
    'a kill ends a wait with EINTR, with a timeout too',
    async b => {
      const one = await b.start(wait(0, 0, { timeout: LATE }))
      b.kill(one)
      expect(await one.result).toBe(-EINTR)
    },
  ],
  [
    'a signal after a wake does not undo the wake',
    async b => {
      const one = await b.start(wait(0))
      const { fx } = b
      fx.futexSync(b.at(0), FUTEX_WAKE, 1)
      b.signal(one)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'a signal ends a wait at a vector, at every word',
    async b => {
      const one = await b.start({ waitv: [0, 1].map(word => ({ word, val: 0, flags: U32 })) })
      b.signal(one)
      expect(await one.result).toBe(-EINTR)
      expect(b.call(FUTEX_WAKE, 0, 1) + b.call(FUTEX_WAKE, 1, 1)).toBe(0)
    },
  ],
]

export const rows: Row[] = [
  ...waiting,
  ...waking,
  ...bitsets,
  ...requeueing,
  ...wakeOps,
  ...vectors,
  ...spaces,
  ...mixed,
]
