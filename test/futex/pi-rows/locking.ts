import { expect } from 'vitest'
import { FUTEX_LOCK_PI, FUTEX_UNLOCK_PI } from '../../../src/futex/operations/call.ts'
import { EDEADLK, EFAULT, EINVAL, ESRCH } from '../../../src/futex/core/errno.ts'
import { type PiRow, P, WAITERS, DIED, NOBODY, lock, unlock, cast, queue, drain } from './row.ts'

export const locking: PiRow[] = [
  [
    'LOCK_PI of a free word writes the TID, and nothing else',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(lock(0))).toBe(0)
      expect(b.view[0]).toBe(a.tid)
    },
  ],
  [
    'LOCK_PI and UNLOCK_PI ignore their value argument',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(lock(0, { val: 77 }))).toBe(0)
      expect(await a.call(unlock(0, { val: 78 }))).toBe(0)
      expect(b.view[0]).toBe(0)
    },
  ],
  [
    'LOCK_PI of a lock that the caller holds returns EDEADLK',
    async b => {
      const [a] = await cast(b, 1)
      await a.call(lock(0))
      expect(await a.call(lock(0))).toBe(-EDEADLK)
      expect(b.view[0]).toBe(a.tid)
    },
  ],
  [
    'LOCK_PI of a word that its holder took without a call finds the holder by its TID',
    async b => {
      const [a, c] = await cast(b, 2)
      b.view[0] = a.tid
      const wait = await c.start(lock(0))
      expect(await wait.isDone()).toBe(false)
      expect(await a.call(unlock(0))).toBe(0)
      expect(await wait.result).toBe(0)
    },
  ],
  [
    'LOCK_PI of a held word sets WAITERS and sleeps',
    async b => {
      const q = await queue(b, 2)
      expect(b.view[0]).toBe(WAITERS | q.actors[0].tid)
      expect(await q.waits[0].isDone()).toBe(false)
      await drain(q)
    },
  ],
  [
    'UNLOCK_PI gives the lock to the waiter, WAITERS in the word',
    async b => {
      const { actors, waits } = await queue(b, 2)
      expect(await actors[0].call(unlock(0))).toBe(0)
      expect(b.view[0]).toBe(WAITERS | actors[1].tid)
      expect(await waits[0].result).toBe(0)
      expect(b.view[0]).toBe(WAITERS | actors[1].tid)
    },
  ],
  [
    'an owner that waited for the lock and unlocks it leaves 0, although the word has WAITERS',
    async b => {
      const { actors, waits } = await queue(b, 2)
      await actors[0].call(unlock(0))
      await waits[0].result
      expect(await actors[1].call(unlock(0))).toBe(0)
      expect(b.view[0]).toBe(0)
    },
  ],
  [
    'waiters of one priority get the lock first come, first served',
    async b => {
      const { actors, waits } = await queue(b, 4)
      for (let at = 0; at < 3; at++) {
        expect(await actors[at].call(unlock(0))).toBe(0)
        expect(b.view[0] & ~WAITERS).toBe(actors[at + 1].tid)
        expect(await waits[at].result).toBe(0)
      }
    },
  ],
  [
    'waiters get the lock in the order of their priorities',
    async b => {
      const { actors, waits } = await queue(b, 4, 100, 90, 60, 80)
      const order: number[] = []
      let holder = 0
      for (let turn = 0; turn < 3; turn++) {
        await actors[holder].call(unlock(0))
        holder = actors.findIndex(({ tid }) => tid === (b.view[0] & ~WAITERS))
        order.push(holder)
        await waits[holder - 1].result
      }
      expect(order).toEqual([2, 3, 1])
    },
  ],
  [
    'LOCK_PI of a free word with WAITERS takes it and drops the bit',
    async b => {
      const [a] = await cast(b, 1)
      b.view[0] = WAITERS
      expect(await a.call(lock(0))).toBe(0)
      expect(b.view[0]).toBe(a.tid)
    },
  ],
  [
    'LOCK_PI of a word whose owner died takes it, and OWNER_DIED stays',
    async b => {
      const [a] = await cast(b, 1)
      b.view[0] = DIED
      expect(await a.call(lock(0))).toBe(0)
      expect(b.view[0]).toBe(DIED | a.tid)
    },
  ],
  [
    'LOCK_PI of a word whose owner died drops WAITERS when the waiters have gone',
    async b => {
      const [a] = await cast(b, 1)
      b.view[0] = DIED | WAITERS
      expect(await a.call(lock(0))).toBe(0)
      expect(b.view[0]).toBe(DIED | a.tid)
    },
  ],
  [
    'LOCK_PI of a word with an unknown TID returns ESRCH, and has set WAITERS',
    async b => {
      const [a] = await cast(b, 1)
      b.view[0] = NOBODY
      expect(await a.call(lock(0))).toBe(-ESRCH)
      expect(b.view[0]).toBe(WAITERS | NOBODY)
    },
  ],
  [
    'LOCK_PI of a word whose holder has ended returns ESRCH',
    async b => {
      const [a, c] = await cast(b, 2)
      await a.call(lock(0))
      await a.end()
      expect(await c.call(lock(0))).toBe(-ESRCH)
    },
  ],
  [
    'LOCK_PI of a word with OWNER_DIED and an unknown TID returns ESRCH too',
    async b => {
      const [a] = await cast(b, 1)
      b.view[0] = DIED | NOBODY
      expect(await a.call(lock(0))).toBe(-ESRCH)
      expect(b.view[0]).toBe(WAITERS | DIED | NOBODY)
    },
  ],
  [
    'LOCK_PI at an address that is not aligned returns EINVAL, beyond the end EFAULT',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(lock(0.5))).toBe(-EINVAL)
      expect(await a.call(lock(1 << 20))).toBe(-EFAULT)
      expect(await a.call(lock(-1))).toBe(-EFAULT)
    },
  ],
  [
    'a private lock passes to its waiters as a shared one',
    async b => {
      const [a, c] = await cast(b, 2)
      await a.call(lock(0, { op: FUTEX_LOCK_PI | P }))
      const wait = await c.start(lock(0, { op: FUTEX_LOCK_PI | P }))
      expect(await a.call(unlock(0, { op: FUTEX_UNLOCK_PI | P }))).toBe(0)
      expect(await wait.result).toBe(0)
      expect(b.view[0]).toBe(WAITERS | c.tid)
    },
  ],
  [
    'two mappings of one buffer have one shared lock',
    async b => {
      const [a, c] = await cast(b, 2)
      await a.call(lock(0))
      const wait = await c.start(lock(0, { map: 1 }))
      expect(await a.call(unlock(0))).toBe(0)
      expect(await wait.result).toBe(0)
    },
  ],
]
