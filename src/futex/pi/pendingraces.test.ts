import { expect, test } from 'vitest'
import { listFirst, listRemove } from '../../arena/trees/list.ts'
import { acquire } from '../../arena/sync/spinlock.ts'
import { check, found } from '../../checker/check.ts'
import { EBUSY, ETIMEDOUT } from '../core/errno.ts'
import { ourWay, type Way } from '../../../testing/futex/lockprograms.ts'
import type { CheckedOwner } from '../../../testing/futex/locksetup.ts'
import { PI } from '../robust/mutex.ts'
import { FUTEX_PENDING, HOLDER_MASK, holderOf } from '../core/owner.ts'
import { tryToTake, isCalled } from './pending.ts'
import { isPending, takePendingWord } from './pendingword.ts'
import {
  boosted,
  calledInVain,
  endedBlindly,
  type Rest,
  taken,
  takerDies,
} from '../../../testing/futex/pendingprograms.ts'
import { handOver, lockPi, type PreparedLock } from './pi.ts'
import { topWaiter, unblock } from './pichain.ts'
import { Bucket, Futex, QUEUE_NONE, Owner, Waiter, QUEUE_WOKEN } from '../core/records.ts'
import { exitOwner } from '../recovery/exit.ts'
import { threadWaiter } from '../core/sleep.ts'
import { unlockFutex, unlockFutexUnlessDead } from '../core/table.ts'
import { freeWaiters } from '../operations/waitwake.ts'

/** One preemption is enough to show each race. */
const BOUNDED = { explorer: 'preemption-bounded', preemptions: 1 } as const
const ASLEEP = /is blocked and no thread is left|lost wakeup/i

/** Takes a pending lock by one compare-exchange, if `may` agrees. */
function takes(may: (priority: number, seen: number) => boolean): Way {
  return {
    ...ourWay,
    lock(thread, lock, mayTimeOut) {
      const { i32: words, index } = thread.mutexes[lock].word
      const seen = Atomics.load(words, index)
      const { i32 } = thread.fx.context
      if (isPending(seen) && may(i32[thread.owner.record + Owner.basePriority], seen)) {
        const now = Atomics.load(words, index)
        const taken = FUTEX_PENDING | thread.owner.tid
        if (isPending(now) && Atomics.compareExchange(words, index, now, taken) === now) return 0
      }
      return ourWay.lock(thread, lock, mayTimeOut)
    },
  }
}

test('an owner that takes a pending lock without comparing priorities overtakes the waiter', () => {
  expect(found(taken('a lower owner', { way: takes(() => true) }), BOUNDED)).toMatch(
    /does not overtake the waiter/,
  )
})

test('an owner that takes a pending lock by an old comparison overtakes the waiter', () => {
  const way = takes((priority, seen) => priority <= (seen & HOLDER_MASK))
  expect(
    found(
      boosted(thread => (way.lock(thread, 0, true) === 0 ? 0 : -EBUSY)),
      BOUNDED,
    ),
  ).toMatch(/does not overtake the waiter/)
})

test('an owner that ignores the boost mark overtakes a boosted waiter', () => {
  const hasty = ({ fx, owner, mutexes }: CheckedOwner): number =>
    takePendingWord(fx.context, owner, mutexes[0].word) ? 0 : -EBUSY
  const blindly = boosted(hasty, 'by a thread that cannot access the word')
  expect(found(blindly, BOUNDED)).toMatch(/does not overtake the waiter/)
})

test('after a boost by a thread that cannot access the word, no owner of the old priority overtakes the waiter', () => {
  const blindly = boosted(undefined, 'by a thread that cannot access the word')
  expect(check('boosted', {}, blindly)).toMatchObject({ ok: true, complete: true })
})

/** Gives the lock to its waiter, and leaves the ended owner's TID in the word. */
function givesUnwritten({ fx: { context } }: CheckedOwner, owner: number): void {
  const { i32, thread } = context
  const futex = listFirst(i32, owner + Owner.contended) - Futex.contended
  acquire(thread, futex + Futex.lock)
  handOver(context, futex, topWaiter(i32, futex))
  unlockFutexUnlessDead(context, futex)
  exitOwner(context, owner)
}

test('a lock that is given to its waiter while its word names the ended owner is refused to others', () => {
  expect(found(endedBlindly(givesUnwritten), BOUNDED)).toMatch(/had the lock|had it, or found/)
})

/** A waiter for lock 0 that runs on its own until `step` returns its result. */
function waitsBy(
  step: (thread: CheckedOwner, waiter: number, mayTimeOut: boolean) => number | undefined,
): Rest {
  return (thread, mayTimeOut) => {
    const { fx, owner, mutexes } = thread
    const { context } = fx
    const { i32 } = context
    const caller = threadWaiter(undefined, owner)
    const prepared = lockPi(context, caller, mutexes[0].word, true, Infinity, false) as PreparedLock
    const [waiter] = prepared.waiters
    return () => {
      for (;;) {
        Atomics.store(i32, waiter + Waiter.signal, 0)
        const result = step(thread, waiter, mayTimeOut)
        if (result !== undefined) {
          freeWaiters(context, prepared.waiters)
          return result
        }
        Atomics.wait(i32, waiter + Waiter.signal, 0)
      }
    }
  }
}

/** Takes the lock only if it is still free, and does not mark itself as waiting. */
const shy: Rest = waitsBy(({ fx, mutexes }, waiter) => {
  const { context } = fx
  const { i32 } = context
  if (isCalled(i32, waiter)) {
    Atomics.store(i32, waiter + Waiter.called, 0)
    const { word } = mutexes[0]
    if (holderOf(Atomics.load(word.i32, word.index)) === 0) tryToTake(context, waiter)
  }
  return Atomics.load(i32, waiter + Waiter.queue) === QUEUE_WOKEN ? 0 : undefined
})

test('a called waiter that is too late and does not mark itself as waiting is never called again', () => {
  expect(found(taken('an equal owner', { rest: shy }), BOUNDED)).toMatch(ASLEEP)
})

test('and it sleeps for ever when the owner that was first dies with the lock', () => {
  expect(found(takerDies(PI, shy), { crashes: { max: 1, threads: [0] } })).toMatch(ASLEEP)
})

/** Gives up, and does not pass its call on. */
const silent: Rest = waitsBy(({ fx }, waiter) => {
  const { context } = fx
  const { i32, thread } = context
  const futex = Atomics.load(i32, waiter + Waiter.queue)
  acquire(thread, futex + Futex.lock)
  unblock(context, waiter)
  Atomics.store(i32, waiter + Waiter.queue, QUEUE_NONE)
  listRemove(i32, futex + Futex.waiters, waiter)
  Atomics.sub(i32, i32[futex + Futex.bucket] + Bucket.waiters, 1)
  unlockFutex(context, futex)
  return -ETIMEDOUT
})

test('a called waiter that gives up without passing its call on leaves the lock pending for ever', () => {
  expect(found(calledInVain(silent))).toMatch(ASLEEP)
})
