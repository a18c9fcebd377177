import { assert } from '../../src/arena/assert.ts'
import type { Setup } from '../../src/checker/check.ts'
import { isBoosted } from '../../src/futex/pi/boost.ts'
import { EBUSY, EOWNERDEAD, ESRCH, ETIMEDOUT } from '../../src/futex/core/errno.ts'
import { asleep, ourQueue, ourWay, type Way } from './lockprograms.ts'
import { type CheckedLocks, type CheckedOwner, checkedLocks, wordAt } from './locksetup.ts'
import { type MutexKind, PI, ROBUST } from '../../src/futex/robust/mutex.ts'
import { FUTEX_PENDING, holderOf } from '../../src/futex/core/owner.ts'
import { isPending, pendingWord } from '../../src/futex/pi/pendingword.ts'
import { lockPi, type PreparedLock } from '../../src/futex/pi/pi.ts'
import { setOwnerPriority } from '../../src/futex/pi/pichain.ts'
import { exitOwner } from '../../src/futex/recovery/exit.ts'
import { recoverFutexes } from '../../src/futex/recovery/recover.ts'
import { finishWait, threadWaiter } from '../../src/futex/core/sleep.ts'
import { freeWaiters } from '../../src/futex/operations/waitwake.ts'

const HIGH = 40
const EQUAL = 80
const LOW = 120

/** How a waiter for lock 0 continues. Returns the rest of its call. */
export type Rest = (thread: CheckedOwner, mayTimeOut: boolean) => () => number

const ourRest: Rest = (thread, mayTimeOut) => asleep(thread, 0, mayTimeOut)

/** Makes lock 0 pending: the first thread has held it, and the named others wait for it, in this order. */
function pendingFor(
  locks: CheckedLocks,
  waiters: readonly [thread: number, Rest, late?: boolean][],
): (() => number)[] {
  const [first] = locks.threads
  assert(ourWay.lock(first, 0, false) === 0, 'the lock is free at first')
  const rests = waiters.map(([at, rest, late = false]) => rest(locks.threads[at], late))
  assert(ourWay.unlock(first, 0) === 0, 'it is unlocked')
  assert(isPending(wordAt(locks, 0)), 'it is pending')
  return rests
}

/**
 * A waiter is called, and another owner takes and unlocks the lock `times` times: one of equal priority, or a
 * lower one, which must not overtake.
 */
export function taken(
  by: 'an equal owner' | 'a lower owner',
  options: {
    readonly kind?: MutexKind
    readonly times?: number
    readonly way?: Way
    readonly rest?: Rest
  } = {},
): Setup {
  const { kind = PI, times = 1, way = ourWay, rest = ourRest } = options
  return () => {
    const locks = checkedLocks(kind, 3, { priorities: [EQUAL, EQUAL, by === 'an equal owner' ? EQUAL : LOW] })
    const [, waiter, other] = locks.threads
    const [waits] = pendingFor(locks, [[1, rest]])
    let inside = -1
    let hadIt = false
    return {
      threads: {
        other() {
          for (let time = 0; time < times; time++) {
            const result = way.lock(other, 0, false)
            if (result !== 0) return result
            assert(inside === -1, 'one thread holds the lock')
            inside = 2
            assert(by === 'an equal owner' || hadIt, 'a lower owner does not overtake the waiter')
            inside = -1
            way.unlock(other, 0)
          }
          return 0
        },
        waiter() {
          const result = waits()
          assert(inside === -1, 'one thread holds the lock')
          hadIt = true
          ourWay.unlock(waiter, 0)
          return result
        },
      },
      final({ results }) {
        assert(results[0] === 0 && results[1] === 0, 'both had the lock')
        assertOver(locks)
      },
    }
  }
}

function assertOver(locks: CheckedLocks, dead = 0): void {
  const { i32, threads } = locks
  const holder = holderOf(wordAt(locks, 0))
  assert(holder === 0 || holder === dead, 'the lock is free at the end')
  assert(threads[0].fx.context.layout.waiters.count(i32) === 0, 'no waiter is left')
}

/** Times out before it has seen that it was called. */
const givesUp: Rest = ({ fx: { context }, owner, mutexes }) => {
  const caller = threadWaiter(undefined, owner)
  const { waiters } = lockPi(context, caller, mutexes[0].word, true, Infinity, false) as PreparedLock
  return () => {
    const result = finishWait(context, waiters, -ETIMEDOUT)
    freeWaiters(context, waiters)
    return result
  }
}

/** Two waiters; the called one gives up at the same time. */
export function calledInVain(late: Rest = givesUp): Setup {
  return () => {
    const locks = checkedLocks(PI, 3, { priorities: [EQUAL, EQUAL, EQUAL] })
    const [, hurried, patient] = locks.threads
    const [gives, waits] = pendingFor(locks, [
      [1, late, true],
      [2, ourRest],
    ])
    return {
      threads: {
        hurried: () => {
          const result = gives()
          return result === 0 ? ourWay.unlock(hurried, 0) : result
        },
        patient: () => waits() || ourWay.unlock(patient, 0),
      },
      final({ results }) {
        assert(results[0] === 0 || results[0] === -ETIMEDOUT, 'it had the lock, or timed out')
        assert(results[1] === 0, 'the next waiter has it')
        assertOver(locks)
      },
    }
  }
}

/**
 * An owner of equal priority takes a pending lock and dies at any step until after its unlock, while another
 * waits.
 */
export function takerDies(kind: MutexKind, rest: Rest = ourRest): Setup {
  return () => {
    // The last thread recovers.
    const locks = checkedLocks(kind, 4, { waiters: 3, owners: 3, priorities: [EQUAL, EQUAL, EQUAL] })
    const [, mortal, waiter, doctor] = locks.threads
    const [waits] = pendingFor(locks, [[2, rest]])
    return {
      threads: {
        mortal: () => ourWay.lock(mortal, 0, false) || ourWay.unlock(mortal, 0),
        waiter() {
          const result = waits()
          if (result === -ESRCH) return result
          if (result === -EOWNERDEAD) waiter.mutexes[0].makeConsistent(waiter.owner)
          ourWay.unlock(waiter, 0)
          return result
        },
      },
      recover: dead => recoverFutexes(doctor.fx.context, locks.threads.indexOf([mortal, waiter][dead])),
      final({ results, crashed }) {
        const told = (kind & ROBUST) !== 0 ? -EOWNERDEAD : 0
        assert(results[1] === 0 || (crashed.length > 0 && results[1] === told), 'the waiter has the lock')
        // A lock that is not robust stays with a holder that died with it while no owner waits.
        const lost = crashed.length > 0 && (kind & ROBUST) === 0
        assertOver(locks, lost ? mortal.owner.tid : 0)
      },
    }
  }
}

export type Lends = 'by a lock that the waiter holds' | 'by a thread that cannot access the word'

/**
 * A waiter of lock 0, which is pending, holds lock 1. A high owner locks lock 1, and so lends the waiter its
 * priority, while an owner of the waiter's old priority tries to take lock 0. The waiter itself does not run.
 * Or the high owner boosts the waiter directly, and has not mapped the buffer of lock 0.
 */
export function boosted(
  tries: (thread: CheckedOwner) => number = ourTry,
  lends: Lends = 'by a lock that the waiter holds',
): Setup {
  return () => {
    const locks = checkedLocks(PI, 4, { priorities: [EQUAL, EQUAL, EQUAL, HIGH] })
    const [, waiter, other, high] = locks.threads
    assert(ourWay.lock(waiter, 1, false) === 0, 'the lock is free at first')
    const [comes] = pendingFor(locks, [[1, ourRest]])
    const isBlind = lends === 'by a thread that cannot access the word'
    if (isBlind) high.fx.context.buffers.clear()
    let lent = false
    return {
      threads: {
        other() {
          const result = tries(other)
          // One compare-exchange takes a pending lock, and no shared access follows it up to here: so the
          // waiter was boosted before.
          const isLate = lent && result === 0
          const between = result === 0 && (wordAt(locks, 0) & FUTEX_PENDING) !== 0
          assert(!isLate || !between, 'a lower owner does not overtake the waiter')
          return result === 0 ? ourWay.unlock(other, 0) : result
        },
        high() {
          if (isBlind) setOwnerPriority(high.fx.context, waiter.owner.record, HIGH)
          else ourQueue(high, 1)
          lent = true
        },
      },
      final({ results }) {
        assert(results[0] === 0 || results[0] === -EBUSY, 'it took the lock, or was refused')
        if (isBlind) {
          assert(ourTry(other) === -EBUSY, 'a lower owner does not overtake the waiter afterwards')
          assert(comes() === 0 && ourWay.unlock(waiter, 0) === 0, 'the waiter takes it')
          assert(!isBoosted(waiter.fx.context, waiter.mutexes[0].word.sharedBucket), 'no boost mark is left')
          return
        }
        assert(
          wordAt(locks, 0) === pendingWord(HIGH),
          'only an owner as good as the high one can take the lock',
        )
      },
    }
  }
}

/**
 * The holder of lock 0 ends, and a thread that has not mapped the lock's buffer passes the lock on to a
 * waiter, while another owner locks it.
 */
export function endedBlindly(end: (thread: CheckedOwner, owner: number) => void = ourEnd): Setup {
  return () => {
    const locks = checkedLocks(PI, 4, { waiters: 32, priorities: [EQUAL, EQUAL, EQUAL, EQUAL] })
    const [holder, waiter, other, ender] = locks.threads
    assert(ourWay.lock(holder, 0, false) === 0, 'the lock is free at first')
    const waits = asleep(waiter, 0, false)
    ender.fx.context.buffers.clear()
    let inside = 0
    const uses = (thread: CheckedOwner): number => {
      assert(++inside === 1, 'one thread holds the lock')
      inside--
      return ourWay.unlock(thread, 0)
    }
    return {
      threads: {
        ender: () => end(ender, holder.owner.record),
        waiter: () => waits() || uses(waiter),
        other: () => ourWay.lock(other, 0, false) || uses(other),
      },
      final({ results }) {
        assert(results[1] === 0, 'the waiter had the lock')
        assert(results[2] === 0 || results[2] === -ESRCH, 'the other owner had it, or found a dead holder')
        assertOver(locks)
      },
    }
  }
}

const ourEnd = ({ fx }: CheckedOwner, owner: number): void => exitOwner(fx.context, owner)

const ourTry = ({ mutexes, owner }: CheckedOwner): number => mutexes[0].tryLock(owner)
