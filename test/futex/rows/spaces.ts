import { expect } from 'vitest'
import { FUTEX_REQUEUE, FUTEX_WAIT, FUTEX_WAKE } from '../../../src/futex/operations/call.ts'
import { EFAULT } from '../../../src/futex/core/errno.ts'
import { type Row, P, wait } from './row.ts'

export const spaces: Row[] = [
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
    'unmapping ends the private futexes of the mapping: sleeping waiters get EFAULT',
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
    'a buffer that is mapped again has new futexes',
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
    'a waiter that was moved to a mapping gets EFAULT when it is unmapped',
    async b => {
      const one = await b.start(wait(0, 0, { op: FUTEX_WAIT | P }))
      expect(b.fx.futexSync(b.at(0), FUTEX_REQUEUE | P, 0, 1, b.at(0, 1))).toBe(1)
      b.fx.unmap(b.mapped[1])
      b.settle()
      expect(await one.result).toBe(-EFAULT)
    },
  ],
]
