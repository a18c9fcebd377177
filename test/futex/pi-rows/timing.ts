import { expect } from 'vitest'
import {
  FUTEX_CLOCK_REALTIME,
  FUTEX_CMP_REQUEUE_PI,
  FUTEX_LOCK_PI,
  FUTEX_LOCK_PI2,
  FUTEX_TRYLOCK_PI,
  FUTEX_UNLOCK_PI,
} from '../../../src/futex/operations/call.ts'
import { EINVAL, ENOSYS, ETIMEDOUT } from '../../../src/futex/core/errno.ts'
import { type PiRow, WAITERS, PAST, LATE, lock, unlock, tryLock, cast } from './row.ts'

export const timing: PiRow[] = [
  [
    'LOCK_PI whose timeout has passed returns ETIMEDOUT, and WAITERS stays',
    async b => {
      const [a, c] = await cast(b, 2)
      await a.call(lock(0))
      expect(await c.call(lock(0, { timeout: PAST }))).toBe(-ETIMEDOUT)
      expect(b.view[0]).toBe(WAITERS | a.tid)
      expect(b.queued()).toBe(0)
    },
  ],
  [
    'LOCK_PI of a free word takes it although its timeout has passed',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(lock(0, { timeout: PAST }))).toBe(0)
    },
  ],
  [
    'LOCK_PI measures by the wall clock: a time of today has not passed, one of last year has',
    async b => {
      const [a, c] = await cast(b, 2)
      await a.call(lock(0))
      const wait = await c.start(lock(0, { timeout: LATE }))
      expect(await wait.isDone()).toBe(false)
      await a.call(unlock(0))
      expect(await wait.result).toBe(0)
      const lastYear = { sec: Math.floor(Date.now() / 1000) - 31_536_000, nsec: 0 }
      expect(await a.call(lock(0, { timeout: lastYear }))).toBe(-ETIMEDOUT)
    },
  ],
  [
    'LOCK_PI2 measures by the monotonic clock, or by the wall clock with its flag',
    async b => {
      const [a, c] = await cast(b, 2)
      await a.call(lock(0, { op: FUTEX_LOCK_PI2 }))
      expect(await c.call(lock(0, { op: FUTEX_LOCK_PI2, timeout: PAST }))).toBe(-ETIMEDOUT)
      const now = { sec: Math.floor(Date.now() / 1000) - 10, nsec: 0 }
      const realtime = FUTEX_LOCK_PI2 | FUTEX_CLOCK_REALTIME
      expect(await c.call(lock(0, { op: realtime, timeout: now }))).toBe(-ETIMEDOUT)
      const wait = await c.start(lock(0, { op: FUTEX_LOCK_PI2, timeout: now }))
      expect(await wait.isDone()).toBe(false)
      await a.call(unlock(0))
      expect(await wait.result).toBe(0)
    },
  ],
  [
    'LOCK_PI with an invalid timeout returns EINVAL, before any other check',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(lock(1 << 20, { timeout: { sec: -1, nsec: 0 } }))).toBe(-EINVAL)
      expect(await a.call(lock(0, { timeout: { sec: 0, nsec: 1_000_000_000 } }))).toBe(-EINVAL)
      expect(b.view[0]).toBe(0)
    },
  ],
  [
    'TRYLOCK_PI and UNLOCK_PI ignore the timeout',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(tryLock(0, { timeout: { sec: -1, nsec: 0 } }))).toBe(0)
      expect(await a.call(unlock(0, { timeout: { sec: -1, nsec: 0 } }))).toBe(0)
    },
  ],
  [
    'CLOCK_REALTIME with LOCK_PI, TRYLOCK_PI, UNLOCK_PI and CMP_REQUEUE_PI returns ENOSYS',
    async b => {
      const [a] = await cast(b, 1)
      for (const op of [FUTEX_LOCK_PI, FUTEX_TRYLOCK_PI, FUTEX_UNLOCK_PI, FUTEX_CMP_REQUEUE_PI]) {
        expect(await a.call(lock(0, { op: op | FUTEX_CLOCK_REALTIME, word2: 1 }))).toBe(-ENOSYS)
      }
    },
  ],
  [
    'a waiter that timed out does not get the lock: the next one does',
    async b => {
      const [a, c, d] = await cast(b, 3)
      await a.call(lock(0))
      expect(await c.call(lock(0, { timeout: PAST }))).toBe(-ETIMEDOUT)
      const wait = await d.start(lock(0))
      await a.call(unlock(0))
      expect(await wait.result).toBe(0)
      expect(b.view[0]).toBe(WAITERS | d.tid)
    },
  ],
]
