import { expect } from 'vitest'
import { FUTEX_LOCK_PI2 } from '../../../src/futex/operations/call.ts'
import { EAGAIN, EDEADLK, ETIMEDOUT } from '../../../src/futex/core/errno.ts'
import type { Started } from '../actors.ts'
import { type PiRow, WAITERS, lock, unlock, tryLock, settles, cast, queue, drain } from './row.ts'

export const inheriting: PiRow[] = [
  [
    'the owner of a lock has the priority of its best waiter until it unlocks',
    async b => {
      const { actors, waits } = await queue(b, 3, 100, 60, 80)
      await settles(() => b.priorityOf(actors[0].tid)).toBe(60)
      await actors[0].call(unlock(0))
      await settles(() => b.priorityOf(actors[0].tid)).toBe(100)
      expect(await waits[0].result).toBe(0)
      await settles(() => b.priorityOf(actors[1].tid)).toBe(60)
      await actors[1].call(unlock(0))
      expect(await waits[1].result).toBe(0)
    },
  ],
  [
    'a waiter of a lower priority changes nothing',
    async b => {
      const q = await queue(b, 2, 60, 100)
      await settles(() => b.priorityOf(q.actors[0].tid)).toBe(60)
      await drain(q)
    },
  ],
  [
    'an inherited priority ends when the waiter times out',
    async b => {
      const [a, c] = await cast(b, 2, 100, 60)
      await a.call(lock(0))
      const ms = b.kind === 'task' ? b.sim.s.now() : performance.now()
      const soon = { sec: Math.floor((ms + 30) / 1000), nsec: Math.floor(((ms + 30) % 1000) * 1e6) }
      const wait = await c.start(lock(0, { op: FUTEX_LOCK_PI2, timeout: soon }))
      expect(await wait.result).toBe(-ETIMEDOUT)
      await settles(() => b.priorityOf(a.tid)).toBe(100)
    },
  ],
  [
    'with two contended locks the better priority counts, and the other one after its unlock',
    async b => {
      const [a, c, d] = await cast(b, 3, 100, 60, 80)
      await a.call(lock(0))
      await a.call(lock(1))
      const one = await c.start(lock(0))
      const two = await d.start(lock(1))
      await settles(() => b.priorityOf(a.tid)).toBe(60)
      await a.call(unlock(0))
      await settles(() => b.priorityOf(a.tid)).toBe(80)
      await a.call(unlock(1))
      await settles(() => b.priorityOf(a.tid)).toBe(100)
      expect(await one.result).toBe(0)
      expect(await two.result).toBe(0)
    },
  ],
  [
    'a priority goes along a chain of waiters, and back',
    async b => {
      const [a, c, d, e] = await cast(b, 4, 110, 100, 90, 60)
      await a.call(lock(0))
      await c.call(lock(1))
      const one = await c.start(lock(0))
      await d.call(lock(2))
      const two = await d.start(lock(1))
      await settles(() => [a, c, d].map(({ tid }) => b.priorityOf(tid))).toEqual([90, 90, 90])
      const three = await e.start(lock(2))
      await settles(() => [a, c, d].map(({ tid }) => b.priorityOf(tid))).toEqual([60, 60, 60])
      await a.call(unlock(0))
      expect(await one.result).toBe(0)
      await settles(() => [a, c, d].map(({ tid }) => b.priorityOf(tid))).toEqual([110, 60, 60])
      await c.call(unlock(0))
      await c.call(unlock(1))
      expect(await two.result).toBe(0)
      await settles(() => [a, c, d].map(({ tid }) => b.priorityOf(tid))).toEqual([110, 100, 60])
      await d.call(unlock(2))
      expect(await three.result).toBe(0)
      await settles(() => b.priorityOf(d.tid)).toBe(90)
    },
  ],
  [
    'a change of priority moves a waiter in its queue, and changes the priority of the owner',
    async b => {
      const { actors, waits } = await queue(b, 3, 100, 90, 80)
      await settles(() => b.priorityOf(actors[0].tid)).toBe(80)
      await actors[1].setPriority(50)
      await settles(() => b.priorityOf(actors[0].tid)).toBe(50)
      await actors[0].setPriority(40)
      await actors[1].setPriority(95)
      await settles(() => b.priorityOf(actors[0].tid)).toBe(40)
      await actors[0].setPriority(100)
      await settles(() => b.priorityOf(actors[0].tid)).toBe(80)
      await actors[0].call(unlock(0))
      expect(b.view[0] & ~WAITERS).toBe(actors[2].tid)
      expect(await waits[1].result).toBe(0)
      await actors[2].call(unlock(0))
      expect(await waits[0].result).toBe(0)
    },
  ],
  [
    'when two would wait for each other, the second gets EDEADLK, and the first its lock',
    async b => {
      const [a, c] = await cast(b, 2)
      await a.call(lock(0))
      await c.call(lock(1))
      const wait = await a.start(lock(1))
      expect(await c.call(lock(0))).toBe(-EDEADLK)
      expect(b.queued()).toBe(1)
      await c.call(unlock(1))
      expect(await wait.result).toBe(0)
    },
  ],
  [
    'the owner that would close a cycle of four gets EDEADLK, and the boosts are undone',
    async b => {
      const actors = await cast(b, 4, 100, 90, 80, 70)
      for (const [at, actor] of actors.entries()) await actor.call(lock(at))
      const waits: Started[] = []
      for (let at = 0; at < 3; at++) waits.push(await actors[at].start(lock(at + 1)))
      expect(await actors[3].call(lock(0))).toBe(-EDEADLK)
      await settles(() => actors.map(({ tid }) => b.priorityOf(tid))).toEqual([100, 90, 80, 70])
      for (let at = 3; at > 0; at--) {
        await actors[at].call(unlock(at))
        expect(await waits[at - 1].result).toBe(0)
        if (at > 1) expect(await actors[at - 1].call(unlock(at))).toBe(0)
      }
    },
  ],
  [
    'TRYLOCK_PI does not search for cycles: it does not wait',
    async b => {
      const [a, c] = await cast(b, 2)
      await a.call(lock(0))
      await c.call(lock(1))
      const wait = await a.start(lock(1))
      expect(await c.call(tryLock(0))).toBe(-EAGAIN)
      await c.call(unlock(1))
      expect(await wait.result).toBe(0)
    },
  ],
]
