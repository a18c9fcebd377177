import { expect } from 'vitest'
import {
  FUTEX_LOCK_PI,
  FUTEX_PRIVATE_FLAG,
  FUTEX_UNLOCK_PI,
  FUTEX_WAIT,
  FUTEX_WAKE,
} from '../../../src/futex/operations/call.ts'
import { EINVAL, ESRCH } from '../../../src/futex/core/errno.ts'
import { pointerTo, ROBUST_HEAD_BYTES, ROBUST_LIST_LIMIT } from '../../../src/futex/robust/robust.ts'
import type { Actor, ActorBench, Started } from '../actors.ts'
import { DIED, type PiRow, WAITERS } from './row.ts'

/** The place of a row's list: the head, then entries of two words and a lock each. */
const HEAD = 1000
const ENTRIES = 1100
const ENTRY = 4
/** The distance from an entry to its lock, in bytes. */
const OFFSET = 8

const entryAt = (at: number): number => ENTRIES + at * ENTRY
const wordAt = (at: number): number => entryAt(at) + OFFSET / 4

function point(b: ActorBench, at: number, to: number): void {
  b.mapped[0].f64[at / 2] = to
}

function pointer(b: ActorBench, index: number, pi = false): number {
  return pointerTo(b.mapped[0].name, index * 4) + (pi ? 1 : 0)
}

/** Writes a list of the first `count` entries; those in `pi` have the PI bit. */
function writeList(b: ActorBench, count: number, pi: readonly number[] = [], offset = OFFSET): void {
  const target = (at: number): number =>
    at === count ? pointer(b, HEAD) : pointer(b, entryAt(at), pi.includes(at))
  point(b, HEAD, target(0))
  b.view[HEAD + 2] = offset
  point(b, HEAD + 4, 0)
  for (let at = 0; at < count; at++) point(b, entryAt(at), target(at + 1))
}

async function withList(b: ActorBench, count: number, pi: readonly number[] = []): Promise<Actor> {
  writeList(b, count, pi)
  const a = await b.actor()
  expect(await a.setRobustList(HEAD, ROBUST_HEAD_BYTES)).toBe(0)
  return a
}

const sleepAt = async (b: ActorBench, word: number, more: object = {}): Promise<Started> =>
  (await b.actor()).start({ op: FUTEX_WAIT, word, val: b.view[word], ...more })

const wakeAt = async (b: ActorBench, word: number, count = 100): Promise<number> =>
  (await b.actor()).call({ op: FUTEX_WAKE, word, val: count })

export const robustRows: PiRow[] = [
  [
    'setRobustList with a length other than that of a head returns EINVAL',
    async b => {
      const a = await b.actor()
      for (const bytes of [0, 8, ROBUST_HEAD_BYTES - 4, ROBUST_HEAD_BYTES + 8]) {
        expect(await a.setRobustList(HEAD, bytes)).toBe(-EINVAL)
      }
    },
  ],
  [
    'getRobustList returns the head of the own list, or of the list of another owner',
    async b => {
      const a = await withList(b, 0)
      const expected = { head: pointer(b, HEAD), bytes: ROBUST_HEAD_BYTES }
      expect(await a.getRobustList(0)).toEqual(expected)
      expect(await a.getRobustList(a.tid)).toEqual(expected)
      const other = await b.actor()
      expect(await other.getRobustList(a.tid)).toEqual(expected)
      expect(await other.getRobustList(0)).toEqual({ head: 0, bytes: ROBUST_HEAD_BYTES })
    },
  ],
  [
    'getRobustList of an unknown TID returns ESRCH',
    async b => {
      const a = await b.actor()
      expect(await a.getRobustList(0x3fff_fff0)).toBe(-ESRCH)
    },
  ],
  [
    'setRobustList can remove the list',
    async b => {
      const a = await withList(b, 1)
      b.view[wordAt(0)] = a.tid
      expect(await a.setRobustList(null, ROBUST_HEAD_BYTES)).toBe(0)
      await a.end()
      expect(b.view[wordAt(0)]).not.toBe(DIED)
    },
  ],
  [
    'an empty list is no list',
    async b => {
      const a = await withList(b, 0)
      await a.end()
      expect(b.queued()).toBe(0)
    },
  ],
  [
    'when the owner ends, each of its words loses the TID and gets OWNER_DIED',
    async b => {
      const a = await withList(b, 3)
      for (let at = 0; at < 3; at++) b.view[wordAt(at)] = a.tid
      await a.end()
      for (let at = 0; at < 3; at++) expect(b.view[wordAt(at)]).toBe(DIED)
    },
  ],
  [
    'a word on the list that is free, or that another owner holds, stays unchanged',
    async b => {
      const a = await withList(b, 3)
      const other = await b.actor()
      b.view[wordAt(0)] = other.tid
      b.view[wordAt(1)] = 0
      b.view[wordAt(2)] = WAITERS
      await a.end()
      expect([0, 1, 2].map(at => b.view[wordAt(at)])).toEqual([other.tid, 0, WAITERS])
    },
  ],
  [
    'WAITERS stays, and one waiter is woken',
    async b => {
      const a = await withList(b, 1)
      b.view[wordAt(0)] = WAITERS | a.tid
      const one = await sleepAt(b, wordAt(0))
      const two = await sleepAt(b, wordAt(0))
      await a.end()
      expect(b.view[wordAt(0)]).toBe(WAITERS | DIED)
      expect(await one.result).toBe(0)
      expect(await two.isDone()).toBe(false)
      expect(await wakeAt(b, wordAt(0))).toBe(1)
      expect(await two.result).toBe(0)
    },
  ],
  [
    'without WAITERS no waiter is woken',
    async b => {
      const a = await withList(b, 1)
      b.view[wordAt(0)] = a.tid
      const one = await sleepAt(b, wordAt(0))
      await a.end()
      expect(b.view[wordAt(0)]).toBe(DIED)
      expect(await one.isDone()).toBe(false)
      expect(await wakeAt(b, wordAt(0))).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'only waiters of shared calls are woken, not private ones',
    async b => {
      const a = await withList(b, 1)
      b.view[wordAt(0)] = WAITERS | a.tid
      const one = await sleepAt(b, wordAt(0), { op: FUTEX_WAIT | FUTEX_PRIVATE_FLAG })
      await a.end()
      expect(await one.isDone()).toBe(false)
      const waker = await b.actor()
      expect(await waker.call({ op: FUTEX_WAKE | FUTEX_PRIVATE_FLAG, word: wordAt(0), val: 1 })).toBe(1)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'an entry that is pending and not on the list is marked like the others',
    async b => {
      const a = await withList(b, 1)
      b.view[wordAt(0)] = a.tid
      b.view[wordAt(5)] = a.tid
      point(b, HEAD + 4, pointer(b, entryAt(5)))
      await a.end()
      expect([b.view[wordAt(0)], b.view[wordAt(5)]]).toEqual([DIED, DIED])
    },
  ],
  [
    'an entry that is pending and on the list is marked once, and one waiter woken',
    async b => {
      const a = await withList(b, 2)
      b.view[wordAt(1)] = WAITERS | a.tid
      point(b, HEAD + 4, pointer(b, entryAt(1)))
      const one = await sleepAt(b, wordAt(1))
      const two = await sleepAt(b, wordAt(1))
      await a.end()
      expect(b.view[wordAt(1)]).toBe(WAITERS | DIED)
      expect(await one.result).toBe(0)
      expect(await two.isDone()).toBe(false)
      expect(await wakeAt(b, wordAt(1))).toBe(1)
      await two.result
    },
  ],
  [
    'a pending word that is free may have lost its wakeup: one waiter is woken',
    async b => {
      const a = await withList(b, 0)
      point(b, HEAD + 4, pointer(b, entryAt(0)))
      const one = await sleepAt(b, wordAt(0))
      const two = await sleepAt(b, wordAt(0))
      await a.end()
      expect(b.view[wordAt(0)]).toBe(0)
      expect(await one.result).toBe(0)
      expect(await two.isDone()).toBe(false)
      expect(await wakeAt(b, wordAt(0))).toBe(1)
      await two.result
    },
  ],
  [
    'a pending word that has OWNER_DIED and no TID may have lost its wakeup too',
    async b => {
      const a = await withList(b, 0)
      point(b, HEAD + 4, pointer(b, entryAt(0)))
      b.view[wordAt(0)] = WAITERS | DIED
      const one = await sleepAt(b, wordAt(0))
      await a.end()
      expect(b.view[wordAt(0)]).toBe(WAITERS | DIED)
      expect(await one.result).toBe(0)
    },
  ],
  [
    'a pending word that another owner has taken stays unchanged',
    async b => {
      const a = await withList(b, 0)
      const other = await b.actor()
      point(b, HEAD + 4, pointer(b, entryAt(0)))
      b.view[wordAt(0)] = WAITERS | other.tid
      const one = await sleepAt(b, wordAt(0))
      await a.end()
      expect(b.view[wordAt(0)]).toBe(WAITERS | other.tid)
      expect(await one.isDone()).toBe(false)
      expect(await wakeAt(b, wordAt(0))).toBe(1)
      await one.result
    },
  ],
  [
    'a pending pi word that is free wakes no waiter',
    async b => {
      const a = await withList(b, 0)
      point(b, HEAD + 4, pointer(b, entryAt(0), true))
      const one = await sleepAt(b, wordAt(0))
      await a.end()
      expect(await one.isDone()).toBe(false)
      expect(await wakeAt(b, wordAt(0))).toBe(1)
      await one.result
    },
  ],
  [
    'a pi lock on the list goes to its top waiter, which sees OWNER_DIED',
    async b => {
      const a = await withList(b, 1, [0])
      const [c, d] = [await b.actor(), await b.actor()]
      expect(await a.call({ op: FUTEX_LOCK_PI, word: wordAt(0) })).toBe(0)
      const one = await c.start({ op: FUTEX_LOCK_PI, word: wordAt(0) })
      const two = await d.start({ op: FUTEX_LOCK_PI, word: wordAt(0) })
      await a.end()
      expect(await one.result).toBe(0)
      expect(b.view[wordAt(0)]).toBe(WAITERS | DIED | c.tid)
      expect(await c.call({ op: FUTEX_UNLOCK_PI, word: wordAt(0) })).toBe(0)
      expect(await two.result).toBe(0)
      expect(b.view[wordAt(0)]).toBe(WAITERS | d.tid)
    },
  ],
  [
    'a pi lock without waiters gets OWNER_DIED, and the next owner sees it',
    async b => {
      const a = await withList(b, 1, [0])
      const c = await b.actor()
      expect(await a.call({ op: FUTEX_LOCK_PI, word: wordAt(0) })).toBe(0)
      await a.end()
      expect(b.view[wordAt(0)]).toBe(DIED)
      expect(await c.call({ op: FUTEX_LOCK_PI, word: wordAt(0) })).toBe(0)
      expect(b.view[wordAt(0)]).toBe(DIED | c.tid)
    },
  ],
  [
    'a pi lock that is on no list also goes to its top waiter, with OWNER_DIED',
    async b => {
      const [a, c] = [await b.actor(), await b.actor()]
      expect(await a.call({ op: FUTEX_LOCK_PI, word: 0 })).toBe(0)
      const one = await c.start({ op: FUTEX_LOCK_PI, word: 0 })
      await a.end()
      expect(await one.result).toBe(0)
      expect(b.view[0]).toBe(WAITERS | DIED | c.tid)
    },
  ],
  [
    'plain and pi locks may be on one list',
    async b => {
      const a = await withList(b, 3, [1])
      const c = await b.actor()
      b.view[wordAt(0)] = a.tid
      b.view[wordAt(2)] = WAITERS | a.tid
      expect(await a.call({ op: FUTEX_LOCK_PI, word: wordAt(1) })).toBe(0)
      const one = await c.start({ op: FUTEX_LOCK_PI, word: wordAt(1) })
      const two = await sleepAt(b, wordAt(2))
      await a.end()
      expect(await one.result).toBe(0)
      expect(await two.result).toBe(0)
      expect([0, 1, 2].map(at => b.view[wordAt(at)])).toEqual([DIED, WAITERS | DIED | c.tid, WAITERS | DIED])
    },
  ],
  [
    'the futex offset may be negative',
    async b => {
      writeList(b, 2, [], -4)
      const a = await b.actor()
      expect(await a.setRobustList(HEAD, ROBUST_HEAD_BYTES)).toBe(0)
      b.view[entryAt(0) - 1] = a.tid
      b.view[entryAt(1) - 1] = a.tid
      await a.end()
      expect([b.view[entryAt(0) - 1], b.view[entryAt(1) - 1]]).toEqual([DIED, DIED])
    },
  ],
  [
    'at most 2048 entries are read',
    async b => {
      const count = ROBUST_LIST_LIMIT + 2
      const a = await withList(b, count)
      for (let at = 0; at < count; at++) b.view[wordAt(at)] = a.tid
      await a.end()
      expect(b.view[wordAt(ROBUST_LIST_LIMIT - 1)]).toBe(DIED)
      expect(b.view[wordAt(ROBUST_LIST_LIMIT)]).toBe(a.tid)
    },
  ],
  [
    'a cyclic list ends, and the pending entry is handled after it',
    async b => {
      const a = await withList(b, 3)
      for (let at = 0; at < 3; at++) b.view[wordAt(at)] = a.tid
      point(b, entryAt(2), pointer(b, entryAt(1)))
      b.view[wordAt(9)] = a.tid
      point(b, HEAD + 4, pointer(b, entryAt(9)))
      await a.end()
      expect([0, 1, 2, 9].map(at => b.view[wordAt(at)])).toEqual([DIED, DIED, DIED, DIED])
    },
  ],
  [
    'a list with an entry that points to itself ends',
    async b => {
      const a = await withList(b, 1)
      b.view[wordAt(0)] = a.tid
      point(b, entryAt(0), pointer(b, entryAt(0)))
      await a.end()
      expect(b.view[wordAt(0)]).toBe(DIED)
    },
  ],
  [
    'a list that points outside the buffer ends after that entry',
    async b => {
      const a = await withList(b, 3)
      for (let at = 0; at < 3; at++) b.view[wordAt(at)] = a.tid
      point(b, entryAt(1), pointer(b, 1 << 22))
      await a.end()
      expect([0, 1, 2].map(at => b.view[wordAt(at)])).toEqual([DIED, DIED, a.tid])
    },
  ],
  [
    'invalid pointers end the list: not a number, negative, a fraction, an unknown buffer',
    async b => {
      for (const wrong of [Number.NaN, -8, 0.5, Infinity, pointerTo(0x1f_ffff, 64), 3]) {
        const a = await withList(b, 2)
        for (let at = 0; at < 2; at++) b.view[wordAt(at)] = a.tid
        point(b, entryAt(0), wrong)
        await a.end()
        expect([0, 1].map(at => b.view[wordAt(at)])).toEqual([DIED, a.tid])
      }
    },
  ],
  [
    'a word that is not aligned ends the list',
    async b => {
      const a = await withList(b, 2)
      for (let at = 0; at < 2; at++) b.view[wordAt(at)] = a.tid
      b.view[HEAD + 2] = OFFSET + 1
      await a.end()
      expect([0, 1].map(at => b.view[wordAt(at)])).toEqual([a.tid, a.tid])
    },
  ],
  [
    'an invalid or empty head is ignored',
    async b => {
      const a = await b.actor()
      expect(await a.setRobustList(HEAD, ROBUST_HEAD_BYTES)).toBe(0)
      await a.end()
      const c = await b.actor()
      expect(await c.setRobustList((1 << 15) - 2, ROBUST_HEAD_BYTES)).toBe(0)
      await c.end()
      expect(b.queued()).toBe(0)
    },
  ],
]
