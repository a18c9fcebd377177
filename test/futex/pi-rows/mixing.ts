import { expect } from 'vitest'
import {
  FUTEX_CMP_REQUEUE,
  FUTEX_REQUEUE,
  FUTEX_WAIT,
  FUTEX_WAKE,
  FUTEX_WAKE_BITSET,
  FUTEX_WAKE_OP,
} from '../../../src/futex/operations/call.ts'
import { EINVAL } from '../../../src/futex/core/errno.ts'
import { CMP_EQ, encodeOp, OP_OR } from '../../../src/futex/operations/wakeop.ts'
import { type PiRow, WAITERS, DIED, lock, unlock, tryLock, cast, queue, drain } from './row.ts'

export const mixing: PiRow[] = [
  [
    'LOCK_PI of a word with a waiter for a wake returns EINVAL, even if it is free',
    async b => {
      const [a, c] = await cast(b, 2)
      const wait = await c.start({ op: FUTEX_WAIT, word: 0, val: 0 })
      expect(await a.call(lock(0))).toBe(-EINVAL)
      expect(await a.call(tryLock(0))).toBe(-EINVAL)
      expect(await a.call({ op: FUTEX_WAKE, word: 0, val: 1 })).toBe(1)
      expect(await wait.result).toBe(0)
    },
  ],
  [
    'UNLOCK_PI of a word with a waiter for a wake returns EINVAL',
    async b => {
      const [a, c] = await cast(b, 2)
      await a.call(lock(0))
      const wait = await c.start({ op: FUTEX_WAIT, word: 0, val: a.tid })
      expect(await a.call(unlock(0))).toBe(-EINVAL)
      expect(b.view[0]).toBe(a.tid)
      expect(await a.call({ op: FUTEX_WAKE, word: 0, val: 1 })).toBe(1)
      expect(await wait.result).toBe(0)
      expect(await a.call(unlock(0))).toBe(0)
    },
  ],
  [
    'WAKE, WAKE_BITSET, REQUEUE, CMP_REQUEUE and WAKE_OP return EINVAL at a waiter for a lock',
    async b => {
      const q = await queue(b, 2)
      const d = await b.actor()
      const val3 = b.view[0]
      expect(await d.call({ op: FUTEX_WAKE, word: 0, val: 1 })).toBe(-EINVAL)
      expect(await d.call({ op: FUTEX_WAKE_BITSET, word: 0, val: 1, val3: -1 })).toBe(-EINVAL)
      expect(await d.call({ op: FUTEX_REQUEUE, word: 0, val: 1, val2: 1, word2: 1 })).toBe(-EINVAL)
      expect(await d.call({ op: FUTEX_CMP_REQUEUE, word: 0, val: 1, val2: 1, word2: 1, val3 })).toBe(-EINVAL)
      const op = encodeOp(OP_OR, 0, CMP_EQ, 0)
      expect(await d.call({ op: FUTEX_WAKE_OP, word: 0, val: 1, val2: 1, word2: 1, val3: op })).toBe(-EINVAL)
      await drain(q)
    },
  ],
  [
    'LOCK_PI of a contended word whose TID was overwritten with another one returns EINVAL',
    async b => {
      const q = await queue(b, 2)
      const d = await b.actor()
      const word = b.view[0]
      b.view[0] = WAITERS | q.actors[1].tid
      expect(await d.call(lock(0))).toBe(-EINVAL)
      b.view[0] = word
      await drain(q)
    },
  ],
  [
    'LOCK_PI of a contended word that was overwritten with 0 returns EINVAL',
    async b => {
      const q = await queue(b, 2)
      const d = await b.actor()
      const word = b.view[0]
      b.view[0] = 0
      expect(await d.call(lock(0))).toBe(-EINVAL)
      b.view[0] = word
      await drain(q)
    },
  ],
  [
    'LOCK_PI of a contended word whose owner is dying, OWNER_DIED without a TID, waits',
    async b => {
      const q = await queue(b, 2)
      const d = await b.actor()
      const word = b.view[0]
      b.view[0] = WAITERS | DIED
      const wait = await d.start(lock(0))
      expect(await wait.isDone()).toBe(false)
      b.view[0] = word
      await drain({ actors: [...q.actors, d], waits: [...q.waits, wait] })
    },
  ],
  [
    'plain waiters can be moved to a word that is a lock, and its calls then return EINVAL',
    async b => {
      const q = await queue(b, 2)
      const [d, e] = await cast(b, 2)
      const wait = await d.start({ op: FUTEX_WAIT, word: 1, val: 0 })
      expect(await e.call({ op: FUTEX_REQUEUE, word: 1, val: 0, val2: 1, word2: 0 })).toBe(1)
      expect(await q.actors[0].call(unlock(0))).toBe(0)
      expect(await q.waits[0].result).toBe(0)
      expect(await q.actors[1].call(unlock(0))).toBe(-EINVAL)
      expect(await e.call({ op: FUTEX_WAKE, word: 0, val: 1 })).toBe(1)
      expect(await wait.result).toBe(0)
      expect(await q.actors[1].call(unlock(0))).toBe(0)
    },
  ],
]
