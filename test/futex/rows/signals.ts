import { expect } from 'vitest'
import { FUTEX_WAKE } from '../../../src/futex/operations/call.ts'
import { EINTR } from '../../../src/futex/core/errno.ts'
import { type Row, LATE, U32, wait } from './row.ts'

/** Only a task can get a signal, and the only signal is a kill. */
export const signalRows: Row[] = [
  [
    'a kill ends a wait with EINTR, and the waiter is off its queue',
    async b => {
      const one = await b.start(wait(0))
      b.kill(one)
      expect(await one.result).toBe(-EINTR)
      expect(b.call(FUTEX_WAKE, 0, 1)).toBe(0)
    },
  ],
  [
    'a kill ends a wait that has a timeout too',
    async b => {
      const one = await b.start(wait(0, 0, { timeout: LATE }))
      b.kill(one)
      expect(await one.result).toBe(-EINTR)
    },
  ],
  [
    'a kill after a wake does not undo the wake',
    async b => {
      const one = await b.start(wait(0))
      const { fx } = b
      fx.futexSync(b.at(0), FUTEX_WAKE, 1)
      b.kill(one)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'a kill ends a wait at a vector, at every word',
    async b => {
      const one = await b.start({ waitv: [0, 1].map(word => ({ word, val: 0, flags: U32 })) })
      b.kill(one)
      expect(await one.result).toBe(-EINTR)
      expect(b.call(FUTEX_WAKE, 0, 1) + b.call(FUTEX_WAKE, 1, 1)).toBe(0)
    },
  ],
]
