import { expect } from 'vitest'
import { FUTEX_WAKE_OP } from '../../../src/futex/operations/call.ts'
import { EFAULT, EINVAL, ENOSYS } from '../../../src/futex/core/errno.ts'
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
} from '../../../src/futex/operations/wakeop.ts'
import type { Bench } from '../bench.ts'
import { type Row, wait, many, doneCount, results, wakeAll } from './row.ts'

/** Runs WAKE_OP on word 1 with the value `old`. Returns the new value, and whether its waiter was woken. */
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

export const wakeOps: Row[] = [
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
    'OPARG_SHIFT by more than 31, or less than 0, is reduced modulo 32',
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
    'WAKE_OP wakes at the first word also when the comparison fails',
    async b => {
      const [first] = await many(b, 1)
      expect(b.call(FUTEX_WAKE_OP, 0, 1, 1, 1, encodeOp(OP_SET, 1, CMP_EQ, 9))).toBe(1)
      expect(await first.result).toBe(0)
      expect(b.view[1]).toBe(1)
    },
  ],
  [
    'WAKE_OP returns the sum of both words, each up to its own limit',
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
    'WAKE_OP changes the word also without waiters',
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
    'WAKE_OP with an unknown comparison returns ENOSYS after it has changed the word, and wakes no waiter',
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
