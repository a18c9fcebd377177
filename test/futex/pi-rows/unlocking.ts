import { expect } from 'vitest'
import { EFAULT, EINVAL, EPERM, ETIMEDOUT } from '../../../src/futex/core/errno.ts'
import { type PiRow, WAITERS, DIED, PAST, lock, unlock, cast, queue, drain } from './row.ts'

export const unlocking: PiRow[] = [
  [
    'UNLOCK_PI without waiters frees the word',
    async b => {
      const [a] = await cast(b, 1)
      await a.call(lock(0))
      expect(await a.call(unlock(0))).toBe(0)
      expect(b.view[0]).toBe(0)
    },
  ],
  [
    'UNLOCK_PI of a free word returns EPERM',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(unlock(0))).toBe(-EPERM)
    },
  ],
  [
    'UNLOCK_PI of a lock of another owner returns EPERM',
    async b => {
      const [a, c] = await cast(b, 2)
      await a.call(lock(0))
      expect(await c.call(unlock(0))).toBe(-EPERM)
      expect(b.view[0]).toBe(a.tid)
    },
  ],
  [
    'UNLOCK_PI by a former waiter that gave up returns EPERM',
    async b => {
      const [a, c] = await cast(b, 2)
      await a.call(lock(0))
      expect(await c.call(lock(0, { timeout: PAST }))).toBe(-ETIMEDOUT)
      expect(await c.call(unlock(0))).toBe(-EPERM)
    },
  ],
  [
    'UNLOCK_PI drops WAITERS and OWNER_DIED without waiters',
    async b => {
      const [a] = await cast(b, 1)
      b.view[0] = WAITERS | DIED | a.tid
      expect(await a.call(unlock(0))).toBe(0)
      expect(b.view[0]).toBe(0)
    },
  ],
  [
    'UNLOCK_PI drops OWNER_DIED when it gives the lock to a waiter',
    async b => {
      const [a, c] = await cast(b, 2)
      b.view[0] = DIED | a.tid
      const wait = await c.start(lock(0))
      expect(b.view[0]).toBe(WAITERS | DIED | a.tid)
      expect(await a.call(unlock(0))).toBe(0)
      expect(b.view[0]).toBe(WAITERS | c.tid)
      expect(await wait.result).toBe(0)
    },
  ],
  [
    'UNLOCK_PI reads the word before it checks the address: EPERM where it is not aligned, EFAULT beyond the end',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(unlock(0.5))).toBe(-EPERM)
      expect(await a.call(unlock(1 << 20))).toBe(-EFAULT)
    },
  ],
  [
    'UNLOCK_PI by an owner whose TID was written into a contended word that it does not hold returns EINVAL',
    async b => {
      const q = await queue(b, 2)
      const [, , d] = [...q.actors, await b.actor()]
      const word = b.view[0]
      b.view[0] = WAITERS | d.tid
      expect(await d.call(unlock(0))).toBe(-EINVAL)
      b.view[0] = word
      await drain(q)
    },
  ],
]
