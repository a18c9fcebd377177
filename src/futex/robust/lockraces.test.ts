import { expect, test } from 'vitest'
import { listRemove } from '../../arena/trees/list.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { found } from '../../checker/check.ts'
import { prepareWordWait } from '../operations/call.ts'
import { nearCycle, type Walk } from '../../../testing/futex/cycleprograms.ts'
import { EDEADLK, ESRCH } from '../core/errno.ts'
import {
  chainAgainst,
  handedOn,
  killed,
  killedFirst,
  type Leave,
  ourWay,
  type Queue,
  type Way,
} from '../../../testing/futex/lockprograms.ts'
import type { CheckedOwner } from '../../../testing/futex/locksetup.ts'
import { PI, PLAIN, ROBUST, tryLockWord, WordMutex } from './mutex.ts'
import { insertByPriority } from '../core/order.ts'
import { FUTEX_TID_MASK, FUTEX_WAITERS, holderOf, ownerPriority } from '../core/owner.ts'
import { lockAtomic, queueForLock } from '../pi/pi.ts'
import { updateTop } from '../pi/pichain.ts'
import { takeOff } from '../core/queue.ts'
import { Bucket, Futex, Owner, Waiter } from '../core/records.ts'
import { clearPending, makeRoom } from './robustlist.ts'
import { threadWaiter } from '../core/sleep.ts'
import { lockOrCreateFutex, unlockFutex } from '../core/table.ts'
import { makeWaiter, MATCH_ANY, wake } from '../operations/waitwake.ts'

const MORTAL = { crashes: { max: 1, threads: [0] } }

/** Unlocks the word without a check for waiters. */
const carelessUnlock: Way = {
  ...ourWay,
  unlock({ mutexes, owner }, lock) {
    const { i32, index } = mutexes[lock].word
    Atomics.store(i32, index, 0)
    return owner.tid === 0 ? 1 : 0
  },
}

test('an unlock that does not check for waiters leaves them asleep', () => {
  for (const kind of [PLAIN, PI] as const) {
    expect(found(handedOn(kind, 2, { way: carelessUnlock }))).toMatch(
      /is blocked and no thread is left|lost wakeup/i,
    )
  }
})

/** Wakes the next waiter only if the lock is free: its holder has taken it without WAITERS, perhaps. */
const forgetfulLeave: Leave = ({ fx, mutexes, owner }, lock) => {
  const { word } = mutexes[lock]
  if (holderOf(Atomics.load(word.i32, word.index)) === 0) wake(fx.context, word, true, 1, MATCH_ANY)
  clearPending(owner)
}

test('a killed waiter that leaves its wakeup to a holder that knows of none loses it', () => {
  const options = { explorer: 'preemption-bounded', preemptions: 1 } as const
  expect(found(killedFirst(PLAIN, forgetfulLeave), options)).toMatch(
    /is blocked and no thread is left|lost wakeup/i,
  )
})

/** Queues for the lock and walks the chain without asking again, under the lock, whether it is still so. */
const hastyQueue: Queue = ({ fx, owner, mutexes }, lock) => {
  const { context } = fx
  const { i32, thread } = context
  const { word } = mutexes[lock]
  const waiter = makeWaiter(context, MATCH_ANY, threadWaiter(undefined, owner))
  Atomics.add(i32, word.sharedBucket + Bucket.waiters, 1)
  const futex = lockOrCreateFutex(context, word.sharedBucket, word.mapped.backing, word.index, 0)
  lockAtomic(context, futex, word, owner.record, owner.tid, false)
  queueForLock(context, futex, waiter)
  const holder = i32[futex + Futex.pi]
  unlockFutex(context, futex)
  acquire(thread, holder + Owner.lock)
  const next = i32[holder + Owner.blockedOn]
  const at = next === 0 ? 0 : Atomics.load(i32, next + Waiter.queue)
  release(thread, holder + Owner.lock)
  if (at <= 0) return 0
  acquire(thread, at + Futex.lock)
  acquire(thread, holder + Owner.lock)
  const priority = ownerPriority(context, holder)
  release(thread, holder + Owner.lock)
  listRemove(i32, at + Futex.waiters, next)
  i32[next + Waiter.priority] = priority
  insertByPriority(i32, at, next)
  updateTop(context, at)
  release(thread, at + Futex.lock)
  return 0
}

test('a walk that does not check again moves a waiter that has left', () => {
  expect(found(chainAgainst('unlock', hastyQueue))).toMatch(/on no list|foreign removal|double insert|links/i)
})

/** Follows the chain, and does not read the links again under each lock. */
const credulous: Walk = (context, futex, waiter) => {
  const { i32, thread } = context
  const who = i32[waiter + Waiter.lockOwner]
  queueForLock(context, futex, waiter)
  let owner = i32[futex + Futex.pi]
  unlockFutex(context, futex)
  while (owner !== 0 && owner !== who) {
    acquire(thread, owner + Owner.lock)
    const next = i32[owner + Owner.blockedOn]
    const at = next === 0 ? 0 : Atomics.load(i32, next + Waiter.queue)
    release(thread, owner + Owner.lock)
    if (at <= 0) return 0
    acquire(thread, at + Futex.lock)
    acquire(thread, owner + Owner.lock)
    const waits = i32[owner + Owner.blockedOn] === next && Atomics.load(i32, next + Waiter.queue) === at
    release(thread, owner + Owner.lock)
    owner = waits ? Atomics.load(i32, at + Futex.pi) : 0
    release(thread, at + Futex.lock)
  }
  return owner === who && takeOff(context, waiter) ? -EDEADLK : 0
}

test.for(['gives up', 'ends'] as const)(
  'a walk that combines links which were never true together reports a false deadlock (%s)',
  change => {
    expect(found(nearCycle(change, credulous))).toMatch(/no deadlock is reported, as there is none/)
  },
)

/** Carries the priority along, to the owner of the record that it has reached. */
const carrying: Walk = (context, futex, waiter) => {
  const { i32, thread } = context
  queueForLock(context, futex, waiter)
  const owner = i32[futex + Futex.pi]
  const next = i32[owner + Owner.blockedOn]
  unlockFutex(context, futex)
  const at = next === 0 ? 0 : Atomics.load(i32, next + Waiter.queue)
  if (at <= 0) return 0
  const last = Atomics.load(i32, at + Futex.pi)
  if (last === 0) return 0
  acquire(thread, last + Owner.lock)
  i32[last + Owner.priority] = Math.min(i32[last + Owner.priority], i32[waiter + Waiter.priority])
  release(thread, last + Owner.lock)
  return 0
}

test('a walk that carries a priority and does not read it again makes an unrelated owner inherit', () => {
  expect(found(nearCycle('ends', carrying), { races: false })).toMatch(
    /no owner waits for B, or for the new owner of its record/,
  )
})

/** Takes the word first, and says so on its list afterwards. */
const lateBook: Way = {
  ...ourWay,
  lock({ fx, mutexes, owner }, lock) {
    const { i32, index } = mutexes[lock].word
    if (!tryLockWord(i32, index, owner.tid)) return 1
    makeRoom(fx.context, owner)
    owner.pending[0] = (mutexes[lock] as unknown as { entry: number }).entry
    return 0
  },
}

test('a robust lock that becomes pending after it was taken is lost with an owner that dies in between', () => {
  // A later caller sees by the TID that the owner has died; a sleeping waiter does not.
  const blind = WordMutex.prototype as unknown as { markDead(): boolean }
  const { markDead } = blind
  blind.markDead = () => false
  try {
    expect(found(killed(ROBUST, 'locks and unlocks', { way: lateBook }), MORTAL)).toMatch(
      /the result is right/,
    )
  } finally {
    blind.markDead = markDead
  }
})

/** Sleeps at a plain lock without asking, once it is queued, whether the owner still lives. */
const trusting: Way = {
  ...ourWay,
  lock({ fx, mutexes, owner }: CheckedOwner, lock) {
    const { word } = mutexes[lock]
    for (;;) {
      const seen = Atomics.load(word.i32, word.index)
      if ((seen & FUTEX_TID_MASK) === 0) {
        if (Atomics.compareExchange(word.i32, word.index, seen, seen | owner.tid) === seen) return 0
        continue
      }
      const marked = seen | FUTEX_WAITERS
      if (Atomics.compareExchange(word.i32, word.index, seen, marked) !== seen) continue
      const prepared = prepareWordWait(
        fx.context,
        threadWaiter(undefined, owner),
        word,
        true,
        marked,
        Infinity,
        MATCH_ANY,
      )
      if (typeof prepared !== 'number') fx.blockFor(prepared)
      if (Atomics.load(word.i32, word.index) === marked) return -ESRCH
    }
  },
}

test('a waiter that does not check the owner again after it queued sleeps for ever when the owner has just died', () => {
  expect(found(killed(PLAIN, 'dies with it', { way: trusting }), MORTAL)).toMatch(
    /is blocked and no thread is left|lost wakeup/i,
  )
})
