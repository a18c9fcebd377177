import { expect } from 'vitest'
import { EAGAIN, EDEADLK, ESRCH } from '../../../src/futex/core/errno.ts'
import { type PiRow, WAITERS, DIED, NOBODY, lock, unlock, tryLock, cast, queue, drain } from './row.ts'

export const trying: PiRow[] = [
  [
    'TRYLOCK_PI takes a free word',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(tryLock(0))).toBe(0)
      expect(b.view[0]).toBe(a.tid)
    },
  ],
  [
    'TRYLOCK_PI of a held word returns EAGAIN, and has set WAITERS',
    async b => {
      const [a, c] = await cast(b, 2)
      await a.call(lock(0))
      expect(await c.call(tryLock(0))).toBe(-EAGAIN)
      expect(b.view[0]).toBe(WAITERS | a.tid)
      expect(await a.call(unlock(0))).toBe(0)
      expect(b.view[0]).toBe(0)
    },
  ],
  [
    'TRYLOCK_PI of a lock that the caller holds returns EDEADLK',
    async b => {
      const [a] = await cast(b, 1)
      await a.call(lock(0))
      expect(await a.call(tryLock(0))).toBe(-EDEADLK)
    },
  ],
  [
    'TRYLOCK_PI takes a word whose owner died, and returns ESRCH for an unknown TID',
    async b => {
      const [a] = await cast(b, 1)
      b.view[0] = DIED | WAITERS
      expect(await a.call(tryLock(0))).toBe(0)
      expect(b.view[0]).toBe(DIED | a.tid)
      b.view[1] = NOBODY
      expect(await a.call(tryLock(1))).toBe(-ESRCH)
    },
  ],
  [
    'TRYLOCK_PI does not wait behind other waiters',
    async b => {
      const q = await queue(b, 2)
      const d = await b.actor()
      expect(await d.call(tryLock(0))).toBe(-EAGAIN)
      await drain(q)
    },
  ],
]
