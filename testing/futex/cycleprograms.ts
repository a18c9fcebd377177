import { assert } from '../../src/arena/assert.ts'
import { acquire, release } from '../../src/arena/sync/spinlock.ts'
import type { Setup } from '../../src/checker/check.ts'
import type { PreparedWait } from '../../src/futex/operations/call.ts'
import { EDEADLK } from '../../src/futex/core/errno.ts'
import { exitOwner } from '../../src/futex/recovery/exit.ts'
import { ourQueue } from './lockprograms.ts'
import { type CheckedOwner, checkedLocks, PRIORITIES } from './locksetup.ts'
import { PI } from '../../src/futex/robust/mutex.ts'
import { makeOwner } from '../../src/futex/core/owner.ts'
import { queueAndWalk, queueForLock } from '../../src/futex/pi/pi.ts'
import { walkChain } from '../../src/futex/pi/pichain.ts'
import { takeOff } from '../../src/futex/core/queue.ts'
import { Bucket, Futex, Owner, PROMISE, Waiter } from '../../src/futex/core/records.ts'
import { threadWaiter } from '../../src/futex/core/sleep.ts'
import { lockFutex, unlockFutex } from '../../src/futex/core/table.ts'
import { makeWaiter, MATCH_ANY } from '../../src/futex/operations/waitwake.ts'

const F = 0
const G = 1
const H = 2
/** Enough that each lock has its own bucket: lockers of different locks meet only through the owners. */
const BUCKETS = 16

/** How a locker queues at a locked futex and walks the chain: the product's function, or a broken one. */
export type Walk = typeof queueAndWalk

/**
 * A locker of a contended lock, as a thread of the check. Its waiter exists, and it begins with the futex's
 * lock.
 */
function comer({ fx, owner, mutexes }: CheckedOwner, lock: number, walk: Walk): () => number {
  const { context } = fx
  const { i32, thread } = context
  const { word } = mutexes[lock]
  const waiter = makeWaiter(context, MATCH_ANY, threadWaiter(undefined, owner))
  i32[waiter + Waiter.lockOwner] = owner.record
  const futex = lockFutex(context, word.sharedBucket, word.mapped.backing, word.index, 0)
  release(thread, futex + Futex.lock)
  return () => {
    context.enter()
    Atomics.add(i32, word.sharedBucket + Bucket.waiters, 1)
    acquire(thread, futex + Futex.lock)
    const result = walk(context, futex, waiter)
    context.leave()
    return result
  }
}

/** Queues, and leaves the walk for later. */
const queueOnly: Walk = (context, futex, waiter) => {
  queueForLock(context, futex, waiter)
  unlockFutex(context, futex)
  return 1
}

/**
 * Chains that are never a cycle, but appear as one to a walker that reads link after link (see both races in
 * waitcycle.ts). O holds H and locks F, where P waits already; A holds F and waits for G, which B holds; Q
 * waits at H.
 *
 *   'gives up'   A gives up; then B locks H
 *   'ends'       B ends, so A owns G; then Z is created in B's record and locks H
 */
export function nearCycle(change: 'gives up' | 'ends', walk: Walk = queueAndWalk): Setup {
  return () => {
    const { i32, threads } = checkedLocks(PI, 5, { buckets: BUCKETS })
    const [p, o, a, b, q] = threads
    const take = ({ mutexes, owner }: CheckedOwner, lock: number): void =>
      assert(mutexes[lock].tryLock(owner) === 0, 'the lock is free')
    const priorityOf = ({ owner }: CheckedOwner): number => i32[owner.record + Owner.priority]
    take(a, F)
    take(b, G)
    take(o, H)
    ourQueue(p, F)
    ourQueue(q, H)
    const waits = ourQueue(a, G) as PreparedWait
    const last = comer(b, H, queueOnly)
    return {
      threads: {
        walker: comer(o, F, walk),
        others() {
          if (change === 'gives up') takeOff(a.fx.context, waits.waiters[0])
          else {
            exitOwner(b.fx.context, b.owner.record)
            const z = makeOwner(b.fx.context, { kind: PROMISE, priority: PRIORITIES[3] })
            assert(z === b.owner.record, 'the new owner gets the only free record')
          }
          return last()
        },
      },
      final({ results }) {
        for (const result of results) assert(result !== -EDEADLK, 'no deadlock is reported, as there is none')
        assert(i32[a.owner.record + Owner.blockedOn] === 0, 'A runs')
        assert(priorityOf(p) === PRIORITIES[0], 'P is the best')
        assert(priorityOf(o) === PRIORITIES[1], 'only worse owners wait for O')
        assert(priorityOf(a) === PRIORITIES[0], 'A inherits from P')
        assert(priorityOf(b) === PRIORITIES[3], 'no owner waits for B, or for the new owner of its record')
      },
    }
  }
}

/** The walk of a queued locker, as at the end of queueAndWalk. */
function walkLate({ fx: { context }, owner: { record } }: CheckedOwner, holder: number): number {
  context.enter()
  const waiter = context.i32[record + Owner.blockedOn]
  const told = walkChain(context, holder, record) !== 0 && takeOff(context, waiter)
  context.leave()
  return told ? -EDEADLK : 1
}

/**
 * O holds H and locks F, A holds F and locks H: at least one of them gets EDEADLK, and nothing of its wait is
 * left. `later`: A queues, and walks after O has finished. If the cycle still exists, or O got EDEADLK, that
 * walk finds it.
 */
export function closedCycle(later: boolean): Setup {
  return () => {
    const { i32, threads } = checkedLocks(PI, 4, { buckets: BUCKETS })
    const [o, a, ...others] = threads
    assert(a.mutexes[F].tryLock(a.owner) === 0 && o.mutexes[H].tryLock(o.owner) === 0, 'both locks are free')
    ourQueue(others[0], F)
    ourQueue(others[1], H)
    return {
      threads: {
        o: comer(o, F, queueAndWalk),
        a: comer(a, H, later ? queueOnly : queueAndWalk),
      },
      final({ results }) {
        const told = [results[0], later ? walkLate(a, o.owner.record) : results[1]]
        assert(told.includes(-EDEADLK), 'one of the two gets EDEADLK')
        for (const [at, { owner }] of [o, a].entries()) {
          const waits = i32[owner.record + Owner.blockedOn] !== 0
          assert(waits === (told[at] !== -EDEADLK), 'an owner with EDEADLK does not wait')
        }
        assert(
          i32[o.owner.record + Owner.priority] === PRIORITIES[0],
          'the better owner has its own priority',
        )
        const due = told[0] === -EDEADLK ? PRIORITIES[1] : PRIORITIES[0]
        assert(i32[a.owner.record + Owner.priority] === due, 'the other inherits from it while it waits')
      },
    }
  }
}
