import { expect } from 'vitest'
import { EAGAIN, EINTR } from '../../../src/futex/core/errno.ts'
import { type PiRow, lock, unlock, waitAt, requeue, settles, cast, queue } from './row.ts'

/** Only a task can get a signal, and the only signal is a kill. */
export const piSignalRows: PiRow[] = [
  [
    'a kill ends a wait for a lock with EINTR, and the inherited priority ends',
    async b => {
      const { actors, waits } = await queue(b, 2, 100, 60)
      b.kill(actors[1])
      expect(await waits[0].result).toBe(-EINTR)
      await settles(() => b.priorityOf(actors[0].tid)).toBe(100)
    },
  ],
  [
    'a kill after the lock was passed does not undo it',
    async b => {
      const { actors, waits } = await queue(b, 2)
      b.view[5] = 1
      expect(await actors[0].call(unlock(0))).toBe(0)
      b.kill(actors[1])
      expect(await waits[0].result).toBe(0)
    },
  ],
  [
    'a kill at a condition is EINTR, and after the move to the lock EAGAIN',
    async b => {
      const [a, c] = await cast(b, 2)
      const wait = await c.start(waitAt(1, 0))
      b.kill(c)
      expect(await wait.result).toBe(-EINTR)
      await a.call(lock(0))
      const again = await c.start(waitAt(1, 0))
      expect(await a.call(requeue(1, 0, 1))).toBe(1)
      b.kill(c)
      expect(await again.result).toBe(-EAGAIN)
      expect(await a.call(unlock(0))).toBe(0)
    },
  ],
]
