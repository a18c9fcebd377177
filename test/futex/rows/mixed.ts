import { expect } from 'vitest'
import { FUTEX_REQUEUE, FUTEX_WAKE, FUTEX_WAKE_OP } from '../../../src/futex/operations/call.ts'
import { EINVAL } from '../../../src/futex/core/errno.ts'
import { CMP_EQ, encodeOp, OP_SET } from '../../../src/futex/operations/wakeop.ts'
import type { Bench } from '../bench.ts'
import { type Row, many, doneCount, results, wakeAll } from './row.ts'

/** Marks the waiter at the head of the table as a waiter for a pi lock. */
const makePi = (b: Bench): void => b.markPi()

export const mixed: Row[] = [
  [
    'WAKE returns EINVAL at a pi waiter, and earlier waiters stay woken',
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
    'REQUEUE and WAKE_OP return EINVAL at a pi waiter',
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
