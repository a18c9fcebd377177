import { expect } from 'vitest'
import {
  FUTEX_CLOCK_REALTIME,
  FUTEX_CMP_REQUEUE,
  FUTEX_CMP_REQUEUE_PI,
  FUTEX_LOCK_PI,
  FUTEX_LOCK_PI2,
  FUTEX_PRIVATE_FLAG,
  FUTEX_REQUEUE,
  FUTEX_TRYLOCK_PI,
  FUTEX_UNLOCK_PI,
  FUTEX_WAIT,
  FUTEX_WAIT_REQUEUE_PI,
  FUTEX_WAKE,
  FUTEX_WAKE_BITSET,
  FUTEX_WAKE_OP,
  type Timespec,
} from '../../src/futex/call.ts'
import {
  EAGAIN,
  EDEADLK,
  EFAULT,
  EINTR,
  EINVAL,
  ENOSYS,
  EPERM,
  ESRCH,
  ETIMEDOUT,
} from '../../src/futex/errno.ts'
import { CMP_EQ, encodeOp, OP_OR } from '../../src/futex/wakeop.ts'
import type { Actor, ActorBench, ActorCall, Started } from './actors.ts'

/** One behaviour a row: what Linux does, done here. */
export type PiRow = [name: string, run: (bench: ActorBench) => Promise<void>]

const P = FUTEX_PRIVATE_FLAG
export const WAITERS: number = 0x8000_0000 | 0
export const DIED = 0x4000_0000
const NOBODY = 0x3fff_fff0
const PAST: Timespec = { sec: 0, nsec: 0 }
const LATE: Timespec = { sec: 4_000_000_000, nsec: 0 }

const lock = (word: number, more: object = {}): ActorCall => ({ op: FUTEX_LOCK_PI, word, ...more })
const unlock = (word: number, more: object = {}): ActorCall => ({ op: FUTEX_UNLOCK_PI, word, ...more })
const tryLock = (word: number, more: object = {}): ActorCall => ({ op: FUTEX_TRYLOCK_PI, word, ...more })
const waitAt = (word: number, lockWord: number, more: object = {}): ActorCall => ({
  op: FUTEX_WAIT_REQUEUE_PI,
  word,
  word2: lockWord,
  ...more,
})
const requeue = (word: number, lockWord: number, moves: number, more: object = {}): ActorCall => ({
  op: FUTEX_CMP_REQUEUE_PI,
  word,
  val: 1,
  val2: moves,
  word2: lockWord,
  ...more,
})

/** A thread is seen to be queued before it has taken its priority along the chain. */
const settles: typeof expect.poll = look => expect.poll(look, { timeout: 30_000, interval: 1 })

async function cast(b: ActorBench, count: number, ...priorities: number[]): Promise<Actor[]> {
  const actors: Actor[] = []
  for (let at = 0; at < count; at++) actors.push(await b.actor(priorities[at]))
  return actors
}

/** The first actor holds word 0, the others wait for it, in their order. */
async function queue(
  b: ActorBench,
  count: number,
  ...priorities: number[]
): Promise<{ actors: Actor[]; waits: Started[] }> {
  const actors = await cast(b, count, ...priorities)
  expect(await actors[0].call(lock(0))).toBe(0)
  const waits: Started[] = []
  for (const actor of actors.slice(1)) waits.push(await actor.start(lock(0)))
  return { actors, waits }
}

/** Everyone who waits gets the lock and lets it go. */
async function drain({ actors, waits }: { actors: Actor[]; waits: Started[] }): Promise<void> {
  expect(await actors[0].call(unlock(0))).toBe(0)
  const left = actors.slice(1).map((actor, at) => ({ actor, wait: waits[at] }))
  while (left.length > 0) {
    let served = -1
    for (const [at, { wait }] of left.entries()) if (await wait.isDone()) served = at
    const [{ actor, wait }] = left.splice(served, 1)
    expect(await wait.result).toBe(0)
    expect(await actor.call(unlock(0))).toBe(0)
  }
}

const locking: PiRow[] = [
  [
    'LOCK_PI of a free word writes the TID, and nothing else',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(lock(0))).toBe(0)
      expect(b.view[0]).toBe(a.tid)
    },
  ],
  [
    'LOCK_PI and UNLOCK_PI ignore the value that they are given',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(lock(0, { val: 77 }))).toBe(0)
      expect(await a.call(unlock(0, { val: 78 }))).toBe(0)
      expect(b.view[0]).toBe(0)
    },
  ],
  [
    'LOCK_PI of what one holds already returns EDEADLK',
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
    'who got the lock by waiting and lets it go leaves 0, though the word says WAITERS',
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
    'LOCK_PI of a word whose owner died takes it, and OWNER_DIED stays to be seen',
    async b => {
      const [a] = await cast(b, 1)
      b.view[0] = DIED
      expect(await a.call(lock(0))).toBe(0)
      expect(b.view[0]).toBe(DIED | a.tid)
    },
  ],
  [
    'LOCK_PI of a word whose owner died with waiters that are gone drops WAITERS',
    async b => {
      const [a] = await cast(b, 1)
      b.view[0] = DIED | WAITERS
      expect(await a.call(lock(0))).toBe(0)
      expect(b.view[0]).toBe(DIED | a.tid)
    },
  ],
  [
    'LOCK_PI of a word with a TID that nobody has returns ESRCH, and has set WAITERS',
    async b => {
      const [a] = await cast(b, 1)
      b.view[0] = NOBODY
      expect(await a.call(lock(0))).toBe(-ESRCH)
      expect(b.view[0]).toBe(WAITERS | NOBODY)
    },
  ],
  [
    'LOCK_PI of a word that someone held who has ended returns ESRCH',
    async b => {
      const [a, c] = await cast(b, 2)
      await a.call(lock(0))
      await a.end()
      expect(await c.call(lock(0))).toBe(-ESRCH)
    },
  ],
  [
    'LOCK_PI sees OWNER_DIED beside a TID that nobody has: ESRCH all the same',
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
    'a private lock passes from hand to hand as a shared one',
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

const unlocking: PiRow[] = [
  [
    'UNLOCK_PI with nobody waiting frees the word',
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
    'UNLOCK_PI of what another holds returns EPERM',
    async b => {
      const [a, c] = await cast(b, 2)
      await a.call(lock(0))
      expect(await c.call(unlock(0))).toBe(-EPERM)
      expect(b.view[0]).toBe(a.tid)
    },
  ],
  [
    'UNLOCK_PI by one who waits for the lock returns EPERM once it has given up',
    async b => {
      const [a, c] = await cast(b, 2)
      await a.call(lock(0))
      expect(await c.call(lock(0, { timeout: PAST }))).toBe(-ETIMEDOUT)
      expect(await c.call(unlock(0))).toBe(-EPERM)
    },
  ],
  [
    'UNLOCK_PI drops WAITERS and OWNER_DIED when nobody waits',
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
    'UNLOCK_PI reads the word before it looks at the address: EPERM where it is not aligned, EFAULT beyond the end',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(unlock(0.5))).toBe(-EPERM)
      expect(await a.call(unlock(1 << 20))).toBe(-EFAULT)
    },
  ],
  [
    'UNLOCK_PI of a word that was made to name another, who does not hold it: EINVAL for that one',
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

const trying: PiRow[] = [
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
    'TRYLOCK_PI of what one holds already returns EDEADLK',
    async b => {
      const [a] = await cast(b, 1)
      await a.call(lock(0))
      expect(await a.call(tryLock(0))).toBe(-EDEADLK)
    },
  ],
  [
    'TRYLOCK_PI takes a word whose owner died, and a TID that nobody has is ESRCH',
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
    'TRYLOCK_PI does not sleep behind those who wait',
    async b => {
      const q = await queue(b, 2)
      const d = await b.actor()
      expect(await d.call(tryLock(0))).toBe(-EAGAIN)
      await drain(q)
    },
  ],
]

const timing: PiRow[] = [
  [
    'LOCK_PI whose time has passed returns ETIMEDOUT, and WAITERS stays',
    async b => {
      const [a, c] = await cast(b, 2)
      await a.call(lock(0))
      expect(await c.call(lock(0, { timeout: PAST }))).toBe(-ETIMEDOUT)
      expect(b.view[0]).toBe(WAITERS | a.tid)
      expect(b.queued()).toBe(0)
    },
  ],
  [
    'LOCK_PI of a free word takes it though its time has passed',
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
    'LOCK_PI2 measures by the monotonic clock, or by the wall clock if it is told to',
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
    'LOCK_PI with a time that is none returns EINVAL, before anything else is looked at',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(lock(1 << 20, { timeout: { sec: -1, nsec: 0 } }))).toBe(-EINVAL)
      expect(await a.call(lock(0, { timeout: { sec: 0, nsec: 1_000_000_000 } }))).toBe(-EINVAL)
      expect(b.view[0]).toBe(0)
    },
  ],
  [
    'TRYLOCK_PI and UNLOCK_PI do not look at the time',
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
    'who timed out is not given the lock: the next one is',
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

const mixing: PiRow[] = [
  [
    'LOCK_PI of a word where someone waits for a wake returns EINVAL, even if it is free',
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
    'UNLOCK_PI of a word where someone waits for a wake returns EINVAL',
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
    'WAKE, WAKE_BITSET, REQUEUE, CMP_REQUEUE and WAKE_OP that meet one who waits for a lock return EINVAL',
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
    'LOCK_PI of a contended word that was made to name another returns EINVAL',
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
    'LOCK_PI of a contended word that was made 0 returns EINVAL',
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
    'plain waiters can be moved to a word that is a lock, and are then in its way',
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

const inheriting: PiRow[] = [
  [
    'who holds a lock has the priority of the best who waits for it, until it lets go',
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
    'what was inherited is undone when the waiter times out',
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
    'with two contended locks the better of both counts, and the other when one is gone',
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
    'a priority goes along a chain of those who wait, and back',
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
    'a change of priority moves a waiter in its queue, and what its owner inherits',
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
    'two who would wait for each other: the second gets EDEADLK, and the first its lock',
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
    'a circle of four is found by whoever closes it, and undone',
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
    'TRYLOCK_PI is not asked about circles: it does not wait',
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

const conditions: PiRow[] = [
  [
    'WAIT_REQUEUE_PI with one address for both words returns EINVAL',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(waitAt(0, 0))).toBe(-EINVAL)
      expect(await a.call(waitAt(1 << 20, 1 << 20))).toBe(-EINVAL)
    },
  ],
  [
    'WAIT_REQUEUE_PI with two addresses of one word returns EINVAL, after it has compared',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(waitAt(0, 0, { map2: 1 }))).toBe(-EINVAL)
      expect(await a.call(waitAt(0, 0, { map2: 1, val: 5 }))).toBe(-EAGAIN)
    },
  ],
  [
    'WAIT_REQUEUE_PI looks at the lock’s address before it looks at its own',
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
    'WAKE and REQUEUE that meet one who waits to be moved to a lock return EINVAL',
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
    'LOCK_PI of a word where someone waits to be moved returns EINVAL',
    async b => {
      const [a, c] = await cast(b, 2)
      const wait = await c.start(waitAt(1, 0))
      expect(await a.call(lock(1))).toBe(-EINVAL)
      expect(await a.call(requeue(1, 0, 0))).toBe(1)
      expect(await wait.result).toBe(0)
    },
  ],
  [
    'CMP_REQUEUE_PI wakes one, no more and no less: else EINVAL, and negative numbers are EINVAL',
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
    'CMP_REQUEUE_PI with another value in the word returns EAGAIN, with nobody waiting 0',
    async b => {
      const [a] = await cast(b, 1)
      expect(await a.call(requeue(1, 0, 1, { val3: 5 }))).toBe(-EAGAIN)
      expect(await a.call(requeue(1, 0, 1))).toBe(0)
      expect(b.view[0]).toBe(0)
    },
  ],
  [
    'CMP_REQUEUE_PI gives a free lock to the first waiter, without WAITERS if none is to be moved',
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
    'CMP_REQUEUE_PI gives a free lock to the first and moves the others, who get it in turn',
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
    'CMP_REQUEUE_PI moves to a held lock as many as it is told, and one more in the place of the one it woke',
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
    'those who were moved get the lock in the order of their priorities, and its owner inherits from them',
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
    'CMP_REQUEUE_PI that meets one who waits for a plain wake returns EINVAL',
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
    'CMP_REQUEUE_PI that would close a circle returns EDEADLK, and the waiter stays',
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
    'CMP_REQUEUE_PI to a lock whose TID nobody has returns ESRCH, and the waiter stays',
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
    'one who was moved to a lock and times out there returns ETIMEDOUT, and its owner inherits no more',
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

/** Only a task can get a signal. */
export const piSignalRows: PiRow[] = [
  [
    'a signal ends a wait for a lock with EINTR, and what was inherited is undone',
    async b => {
      const { actors, waits } = await queue(b, 2, 100, 60)
      b.signal(actors[1])
      expect(await waits[0].result).toBe(-EINTR)
      await settles(() => b.priorityOf(actors[0].tid)).toBe(100)
    },
  ],
  [
    'a kill ends a wait for a lock with EINTR, and what was inherited is undone',
    async b => {
      const { actors, waits } = await queue(b, 2, 100, 60)
      b.kill(actors[1])
      expect(await waits[0].result).toBe(-EINTR)
      await settles(() => b.priorityOf(actors[0].tid)).toBe(100)
    },
  ],
  [
    'a signal that comes after the lock was given does not undo it',
    async b => {
      const { actors, waits } = await queue(b, 2)
      b.view[5] = 1
      expect(await actors[0].call(unlock(0))).toBe(0)
      b.signal(actors[1])
      expect(await waits[0].result).toBe(0)
    },
  ],
  [
    'a signal at a condition is EINTR, and after the move to the lock EAGAIN',
    async b => {
      const [a, c] = await cast(b, 2)
      const wait = await c.start(waitAt(1, 0))
      b.signal(c)
      expect(await wait.result).toBe(-EINTR)
      await a.call(lock(0))
      const again = await c.start(waitAt(1, 0))
      expect(await a.call(requeue(1, 0, 1))).toBe(1)
      b.signal(c)
      expect(await again.result).toBe(-EAGAIN)
      expect(await a.call(unlock(0))).toBe(0)
    },
  ],
]

export const piRows: PiRow[] = [
  ...locking,
  ...unlocking,
  ...trying,
  ...timing,
  ...mixing,
  ...inheriting,
  ...conditions,
]
