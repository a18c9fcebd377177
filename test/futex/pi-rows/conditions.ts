import { expect } from 'vitest'
import {
  FUTEX_CLOCK_REALTIME,
  FUTEX_REQUEUE,
  FUTEX_WAIT,
  FUTEX_WAIT_REQUEUE_PI,
  FUTEX_WAKE,
} from '../../../src/futex/operations/call.ts'
import { EAGAIN, EDEADLK, EFAULT, EINVAL, ESRCH, ETIMEDOUT } from '../../../src/futex/core/errno.ts'
import type { Started } from '../actors.ts'
import { type PiRow, WAITERS, NOBODY, PAST, lock, unlock, waitAt, requeue, settles, cast } from './row.ts'

export const conditions: PiRow[] = [
  [
    'WAIT_REQUEUE_PI with one address for both words returns EINVAL',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(waitAt(0, 0))).toBe(-EINVAL)
      expect(await a.call(waitAt(1 << 20, 1 << 20))).toBe(-EINVAL)
    },
  ],
  [
    'WAIT_REQUEUE_PI with two addresses of one word returns EINVAL, after the comparison',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(waitAt(0, 0, { map2: 1 }))).toBe(-EINVAL)
      expect(await a.call(waitAt(0, 0, { map2: 1, val: 5 }))).toBe(-EAGAIN)
    },
  ],
  [
    'WAIT_REQUEUE_PI checks the address of the lock before its own',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(waitAt(1 << 20, 0.5))).toBe(-EINVAL)
      expect(await a.call(waitAt(0.5, 1 << 20))).toBe(-EFAULT)
    },
  ],
  [
    'WAIT_REQUEUE_PI with another value in the word returns EAGAIN',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(waitAt(1, 0, { val: 5 }))).toBe(-EAGAIN)
    },
  ],
  [
    'WAIT_REQUEUE_PI whose time has passed returns ETIMEDOUT, by either clock',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(waitAt(1, 0, { timeout: PAST }))).toBe(-ETIMEDOUT)
      const op = FUTEX_WAIT_REQUEUE_PI | FUTEX_CLOCK_REALTIME
      expect(await a.call(waitAt(1, 0, { op, timeout: PAST }))).toBe(-ETIMEDOUT)
      expect(b.queued()).toBe(0)
    },
  ],
  [
    'WAKE and REQUEUE return EINVAL at a waiter for a move to a lock',
    async b => {
      const [a, c] = await cast(b, 2)
      const wait = await c.start(waitAt(1, 0))
      expect(await a.call({ op: FUTEX_WAKE, word: 1, val: 1 })).toBe(-EINVAL)
      expect(await a.call({ op: FUTEX_REQUEUE, word: 1, val: 0, val2: 1, word2: 2 })).toBe(-EINVAL)
      expect(await a.call(requeue(1, 0, 0))).toBe(1)
      expect(await wait.result).toBe(0)
    },
  ],
  [
    'LOCK_PI of a word with a waiter for a move returns EINVAL',
    async b => {
      const [a, c] = await cast(b, 2)
      const wait = await c.start(waitAt(1, 0))
      expect(await a.call(lock(1))).toBe(-EINVAL)
      expect(await a.call(requeue(1, 0, 0))).toBe(1)
      expect(await wait.result).toBe(0)
    },
  ],
  [
    'CMP_REQUEUE_PI must wake exactly one: other numbers, and negative ones, are EINVAL',
    async b => {
      const [a] = await cast(b, 1)
      for (const val of [0, 2, -1]) expect(await a.call(requeue(1, 0, 1, { val }))).toBe(-EINVAL)
      expect(await a.call(requeue(1, 0, -1))).toBe(-EINVAL)
      expect(await a.call(requeue(1 << 20, 0, 1, { val: 2 }))).toBe(-EINVAL)
    },
  ],
  [
    'CMP_REQUEUE_PI with one address for both, or two of one word, returns EINVAL',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(requeue(0, 0, 1))).toBe(-EINVAL)
      expect(await a.call(requeue(0, 0, 1, { map2: 1 }))).toBe(-EINVAL)
      expect(await a.call(requeue(0, 0, 1, { map2: 1, val3: 9 }))).toBe(-EINVAL)
    },
  ],
  [
    'CMP_REQUEUE_PI with another value in the word returns EAGAIN, without waiters 0',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(requeue(1, 0, 1, { val3: 5 }))).toBe(-EAGAIN)
      expect(await a.call(requeue(1, 0, 1))).toBe(0)
      expect(b.view[0]).toBe(0)
    },
  ],
  [
    'CMP_REQUEUE_PI gives a free lock to the first waiter, without WAITERS if no waiter is left',
    async b => {
      const [a, c, d] = await cast(b, 3)
      const one = await c.start(waitAt(1, 0))
      const two = await d.start(waitAt(1, 0))
      expect(await a.call(requeue(1, 0, 0))).toBe(1)
      expect(b.view[0]).toBe(c.tid)
      expect(await one.result).toBe(0)
      expect(await two.isDone()).toBe(false)
      await c.call(unlock(0))
      expect(await a.call(requeue(1, 0, 5))).toBe(1)
      expect(b.view[0]).toBe(WAITERS | d.tid)
      expect(await two.result).toBe(0)
      expect(await d.call(unlock(0))).toBe(0)
      expect(b.view[0]).toBe(0)
    },
  ],
  [
    'CMP_REQUEUE_PI gives a free lock to the first waiter and moves the others, which get it in turn',
    async b => {
      const actors = await cast(b, 4)
      const waits: Started[] = []
      for (const actor of actors.slice(1)) waits.push(await actor.start(waitAt(1, 0)))
      expect(await actors[0].call(requeue(1, 0, 100))).toBe(3)
      expect(b.view[0]).toBe(WAITERS | actors[1].tid)
      for (let at = 1; at < 4; at++) {
        expect(await waits[at - 1].result).toBe(0)
        expect(await actors[at].call(unlock(0))).toBe(0)
      }
      expect(b.view[0]).toBe(0)
    },
  ],
  [
    'CMP_REQUEUE_PI moves the given number to a held lock, and one more in the place of the one to wake',
    async b => {
      const actors = await cast(b, 5)
      await actors[0].call(lock(0))
      const waits: Started[] = []
      for (const actor of actors.slice(1)) waits.push(await actor.start(waitAt(1, 0)))
      expect(await actors[0].call(requeue(1, 0, 2))).toBe(3)
      expect(b.view[0]).toBe(WAITERS | actors[0].tid)
      expect(await actors[0].call(requeue(1, 0, 0))).toBe(1)
      expect(await actors[0].call(requeue(1, 0, 1))).toBe(0)
      for (let at = 0; at < 4; at++) {
        await actors[at].call(unlock(0))
        expect(await waits[at].result).toBe(0)
      }
    },
  ],
  [
    'moved waiters get the lock in the order of their priorities, and its owner inherits from them',
    async b => {
      const actors = await cast(b, 4, 110, 100, 60, 80)
      await actors[0].call(lock(0))
      const waits: Started[] = []
      for (const actor of actors.slice(1)) waits.push(await actor.start(waitAt(1, 0)))
      await settles(() => b.priorityOf(actors[0].tid)).toBe(110)
      expect(await actors[0].call(requeue(1, 0, 5))).toBe(3)
      await settles(() => b.priorityOf(actors[0].tid)).toBe(60)
      await actors[0].call(unlock(0))
      expect(b.view[0] & ~WAITERS).toBe(actors[2].tid)
      expect(await waits[1].result).toBe(0)
      await actors[2].call(unlock(0))
      expect(await waits[2].result).toBe(0)
      await actors[3].call(unlock(0))
      expect(await waits[0].result).toBe(0)
    },
  ],
  [
    'CMP_REQUEUE_PI to another lock than the waiter named returns EINVAL, and the waiter stays',
    async b => {
      const [a, c] = await cast(b, 2)
      const wait = await c.start(waitAt(1, 0))
      expect(await a.call(requeue(1, 2, 1))).toBe(-EINVAL)
      expect(b.view[2]).toBe(0)
      expect(await a.call(requeue(1, 0, 1))).toBe(1)
      expect(await wait.result).toBe(0)
    },
  ],
  [
    'CMP_REQUEUE_PI returns EINVAL at a waiter for a plain wake',
    async b => {
      const [a, c] = await cast(b, 2)
      const wait = await c.start({ op: FUTEX_WAIT, word: 1, val: 0 })
      expect(await a.call(requeue(1, 0, 1))).toBe(-EINVAL)
      expect(await a.call({ op: FUTEX_WAKE, word: 1, val: 1 })).toBe(1)
      expect(await wait.result).toBe(0)
    },
  ],
  [
    'CMP_REQUEUE_PI to a lock that the waiter holds itself returns EDEADLK, and the waiter stays',
    async b => {
      const [a, c] = await cast(b, 2)
      await c.call(lock(0))
      const wait = await c.start(waitAt(1, 0))
      expect(await a.call(requeue(1, 0, 1))).toBe(-EDEADLK)
      expect(await wait.isDone()).toBe(false)
      b.view[0] = 0
      expect(await a.call(requeue(1, 0, 1))).toBe(1)
      expect(await wait.result).toBe(0)
    },
  ],
  [
    'CMP_REQUEUE_PI that would close a cycle returns EDEADLK, and the waiter stays',
    async b => {
      const [a, c, d] = await cast(b, 3)
      await c.call(lock(2))
      await d.call(lock(0))
      const held = await d.start(lock(2))
      const wait = await c.start(waitAt(1, 0))
      expect(await a.call(requeue(1, 0, 1))).toBe(-EDEADLK)
      expect(await wait.isDone()).toBe(false)
      expect(b.queued()).toBe(2)
      b.view[0] = 0
      expect(await a.call(requeue(1, 0, 1))).toBe(1)
      expect(await wait.result).toBe(0)
      await c.call(unlock(2))
      expect(await held.result).toBe(0)
    },
  ],
  [
    'CMP_REQUEUE_PI to a lock with an unknown TID returns ESRCH, and the waiter stays',
    async b => {
      const [a, c] = await cast(b, 2)
      const wait = await c.start(waitAt(1, 0))
      b.view[0] = NOBODY
      expect(await a.call(requeue(1, 0, 1))).toBe(-ESRCH)
      expect(await wait.isDone()).toBe(false)
      b.view[0] = 0
      expect(await a.call(requeue(1, 0, 1))).toBe(1)
      expect(await wait.result).toBe(0)
    },
  ],
  [
    'a moved waiter that times out at the lock returns ETIMEDOUT, and the owner inherits no more',
    async b => {
      const [a, c] = await cast(b, 2, 100, 60)
      await a.call(lock(0))
      const ms = b.kind === 'task' ? b.sim.s.now() : performance.now()
      const soon = { sec: Math.floor((ms + 60) / 1000), nsec: Math.floor(((ms + 60) % 1000) * 1e6) }
      const wait = await c.start(waitAt(1, 0, { timeout: soon }))
      expect(await a.call(requeue(1, 0, 1))).toBe(1)
      expect(await wait.result).toBe(-ETIMEDOUT)
      await settles(() => b.priorityOf(a.tid)).toBe(100)
      expect(await a.call(unlock(0))).toBe(0)
    },
  ],
]
