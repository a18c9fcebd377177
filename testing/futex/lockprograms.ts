import { assert } from '../../src/arena/assert.ts'
import type { Setup } from '../../src/checker/check.ts'
import type { Prepared, PreparedWait } from '../../src/futex/operations/call.ts'
import { EAGAIN, EINTR, EOWNERDEAD, ESRCH, ETIMEDOUT } from '../../src/futex/core/errno.ts'
import { exitOwner } from '../../src/futex/recovery/exit.ts'
import { type CheckedLocks, type CheckedOwner, checkedLocks, PRIORITIES, wordAt } from './locksetup.ts'
import { type MutexKind, PI, ROBUST } from '../../src/futex/robust/mutex.ts'
import { findOwner, FUTEX_WAITERS, holderOf, type LockOwner } from '../../src/futex/core/owner.ts'
import { lockPi, unlockPi } from '../../src/futex/pi/pi.ts'
import { Owner } from '../../src/futex/core/records.ts'
import { recoverFutexes } from '../../src/futex/recovery/recover.ts'
import { finishWait, threadWaiter } from '../../src/futex/core/sleep.ts'
import { freeWaiters, type WaiterOptions } from '../../src/futex/operations/waitwake.ts'

/** The holder of each lock. Not shared memory: the checker runs one thread at a time. */
class Inside {
  private readonly holders: (number | undefined)[] = []

  enter(lock: number, id: number): void {
    assert(this.holders[lock] === undefined, 'one thread holds the lock')
    this.holders[lock] = id
  }

  leave(lock: number): void {
    this.holders[lock] = undefined
  }
}

/** How a thread locks and unlocks: the product's functions, or broken ones. */
export interface Way {
  lock(thread: CheckedOwner, lock: number, mayTimeOut: boolean): number
  unlock(thread: CheckedOwner, lock: number): number
}

export const ourWay: Way = {
  lock: ({ mutexes, owner }, lock, mayTimeOut) => mutexes[lock].lockSync(owner, mayTimeOut ? 1 : Infinity),
  unlock: ({ mutexes, owner }, lock) => mutexes[lock].unlock(owner),
}

/** The steps of a mutex before and after its sleep: a check starts with the thread asleep. */
interface Steps {
  lockFast(owner: LockOwner): number
  take(owner: LockOwner, waited: boolean): number
  prepareWait(caller: WaiterOptions, expected: number, deadline: number): Prepared
  finish(owner: LockOwner, result: number): number
}

const WAIT_BELOW = -0x1_0000

/** Makes the thread wait for a lock that another holds. Returns the rest of its call. */
export function asleep(
  { fx, owner, mutexes }: CheckedOwner,
  lock: number,
  mayTimeOut: boolean,
): () => number {
  const mutex = mutexes[lock]
  const steps = mutex as unknown as Steps
  const caller = threadWaiter(undefined, owner)
  const deadline = mayTimeOut ? 1 : Infinity
  assert(steps.lockFast(owner) === 1, 'another thread holds it')
  if ((mutex.kind & PI) !== 0) {
    const prepared = lockPi(fx.context, caller, mutex.word, true, deadline, false) as PreparedWait
    return () => steps.finish(owner, fx.blockFor(prepared))
  }
  const first = steps.prepareWait(caller, steps.take(owner, false), deadline) as PreparedWait
  return () => {
    let slept = fx.blockFor(first)
    for (;;) {
      const result = slept === 0 || slept === -EAGAIN ? steps.take(owner, true) : slept
      if (result >= WAIT_BELOW) return steps.finish(owner, result)
      const prepared = steps.prepareWait(caller, result, deadline)
      slept = typeof prepared === 'number' ? prepared : fx.blockFor(prepared)
    }
  }
}

/** How a waiter of a lock that does not inherit leaves when an error is thrown into it. */
export type Leave = (thread: CheckedOwner, lock: number) => void

export const ourLeave: Leave = ({ owner, mutexes }, lock) =>
  (mutexes[lock] as unknown as { giveUp(owner: LockOwner): void }).giveUp(owner)

/**
 * Thread 0 holds the lock and unlocks it. Thread 1 sleeps as the first waiter, and is killed. Thread 2 sleeps
 * behind it, and thread 3 locks the lock, perhaps without a wait. In every order each but 1 has the lock.
 */
export function killedFirst(kind: MutexKind, leave: Leave = ourLeave): Setup {
  return () => {
    const locks = checkedLocks(kind, 4)
    const [holder, killed, sleeper, late] = locks.threads
    assert(ourWay.lock(holder, 0, false) === 0, 'the lock is free at first')
    const steps = killed.mutexes[0] as unknown as Steps
    const caller = threadWaiter(undefined, killed.owner)
    assert(steps.lockFast(killed.owner) === 1, 'another thread holds it')
    const wait = steps.prepareWait(caller, steps.take(killed.owner, false), Infinity) as PreparedWait
    const had = asleep(sleeper, 0, false)
    return {
      threads: [
        () => ourWay.unlock(holder, 0),
        () => {
          const { context } = killed.fx
          finishWait(context, wait.waiters, -EINTR)
          freeWaiters(context, wait.waiters)
          leave(killed, 0)
          return 0
        },
        () => had() || ourWay.unlock(sleeper, 0),
        () => ourWay.lock(late, 0, false) || ourWay.unlock(late, 0),
      ],
      final({ results }) {
        assert(!results.some(Boolean), 'each had the lock')
        assert(holderOf(wordAt(locks, 0)) === 0, 'the lock is free at the end')
        assertQuiet(locks)
      },
    }
  }
}

interface Handing {
  /** The threads with a timeout. */
  readonly hurried?: readonly number[]
  /** All other threads wait from the start. */
  readonly asleepAtFirst?: boolean
  /** The word has an old WAITERS bit. */
  readonly marked?: boolean
  readonly way?: Way
}

/** Thread 0 holds the lock and unlocks it; the others lock and unlock it. */
export function handedOn(kind: MutexKind, threads: number, options: Handing = {}): Setup {
  const { hurried = [], asleepAtFirst = false, marked = false, way = ourWay } = options
  return () => {
    const locks = checkedLocks(kind, threads)
    const inside = new Inside()
    const [first, ...others] = locks.threads
    assert(way.lock(first, 0, false) === 0, 'the lock is free at first')
    if (marked) Atomics.or(locks.view, 0, FUTEX_WAITERS)
    inside.enter(0, 0)
    const bodies: (() => number)[] = [
      () => {
        inside.leave(0)
        return way.unlock(first, 0)
      },
    ]
    others.forEach((other, at) => {
      const id = at + 1
      const hurries = hurried.includes(id)
      const sleeps = asleepAtFirst ? asleep(other, 0, hurries) : undefined
      bodies.push(() => {
        const result = sleeps === undefined ? way.lock(other, 0, hurries) : sleeps()
        if (result !== 0) return result
        inside.enter(0, id)
        inside.leave(0)
        return way.unlock(other, 0)
      })
    })
    return {
      threads: bodies,
      final({ results }) {
        for (const [id, result] of results.entries()) {
          assert(
            result === 0 || (result === -ETIMEDOUT && hurried.includes(id)),
            'it had the lock, or timed out',
          )
        }
        assert(holderOf(wordAt(locks, 0)) === 0, 'the lock is free at the end')
        assertQuiet(locks)
      },
    }
  }
}

/** No owner waits or inherits, and every record except those of owners is freed. */
function assertQuiet(locks: CheckedLocks): void {
  const { i32, threads } = locks
  const { layout } = threads[0].fx.context
  assert(layout.waiters.count(i32) === 0, 'no waiter is left')
  assertFreed(locks)
  for (const [id, { owner }] of threads.entries()) {
    if (Atomics.load(i32, owner.record + Owner.tid) !== owner.tid) continue
    assert(i32[owner.record + Owner.blockedOn] === 0, 'no owner waits')
    assert(i32[owner.record + Owner.priority] === PRIORITIES[id], 'no owner inherits')
  }
}

/** Every futex is freed, or on a list of futexes to free. */
function assertFreed({ i32, threads }: CheckedLocks): void {
  const { layout, rcu } = threads[0].fx.context
  let waits = 0
  for (let id = 0; id < threads.length; id++) waits += rcu.queued(i32, id)
  assert(layout.futexes.count(i32) === waits, 'no futex is lost')
}

export type Queue = (thread: CheckedOwner, lock: number) => unknown

/** Queues at a lock, walks the chain, and does not sleep. */
export const ourQueue: Queue = ({ fx, owner, mutexes }, lock) =>
  lockPi(fx.context, threadWaiter(undefined, owner), mutexes[lock].word, true, Infinity, false)

/**
 * A chain of three: thread 0, the best, locks lock 1, which thread 1 holds. Thread 1 waits for lock 0, which
 * thread 2 holds and unlocks at the same time (or, for 'timeout', thread 1 gives up). In every order thread 1
 * ends with the priority of thread 0, and thread 2 with its own.
 */
export function chainAgainst(what: 'unlock' | 'timeout', queue: Queue = ourQueue): Setup {
  return () => {
    const locks = checkedLocks(PI, 3)
    const { i32, threads } = locks
    const [best, middle, holder] = threads
    assert(holder.mutexes[0].tryLock(holder.owner) === 0, 'the lock is free')
    assert(middle.mutexes[1].tryLock(middle.owner) === 0, 'the lock is free')
    const waits = ourQueue(middle, 0) as Parameters<CheckedOwner['fx']['blockFor']>[0]
    const priorityOf = ({ owner }: CheckedOwner): number => i32[owner.record + Owner.priority]
    assert(priorityOf(holder) === PRIORITIES[1], 'it inherits from its waiter')
    return {
      threads: {
        walker: () => queue(best, 1),
        other: () =>
          what === 'unlock'
            ? unlockPi(holder.fx.context, holder.owner, holder.mutexes[0].word, true)
            : middle.fx.blockFor({ ...waits, deadline: 0 }),
      },
      final({ results }) {
        assert(results[1] === (what === 'unlock' ? 0 : -ETIMEDOUT), 'the other thread succeeded')
        assert(priorityOf(holder) === PRIORITIES[2], 'an owner without contended locks inherits nothing')
        assert(priorityOf(middle) === PRIORITIES[0], 'the holder of the best owner’s lock has its priority')
      },
    }
  }
}

export type Recover = typeof recoverFutexes

/**
 * The owner dies at any step of an activity:
 *
 *   locks and unlocks   no other thread wants the lock
 *   holds two           takes two locks and unlocks them in that order: list entries are inserted and removed
 *   waits               another thread holds the lock, and unlocks it after the recovery; it may time out
 *   unlocks             another thread waits for it, from the start
 *   dies with it        another thread locks it at the same time
 */
export type Doing = 'locks and unlocks' | 'holds two' | 'waits' | 'unlocks' | 'dies with it'

export function killed(
  kind: MutexKind,
  doing: Doing,
  options: { readonly recover?: Recover; readonly way?: Way } = {},
): Setup {
  const { recover = recoverFutexes, way = ourWay } = options
  return () => {
    const locks = checkedLocks(kind, 3)
    const [mortal, other, doctor] = locks.threads
    let inside = -1
    let died = false
    const enter = (id: number): void => {
      assert(inside === -1 || (died && inside === 0), 'one thread holds the lock')
      inside = id
    }
    if (doing === 'waits') assert(ourWay.lock(other, 0, false) === 0, 'the lock is free at first')
    const holds = doing === 'unlocks' || doing === 'dies with it'
    if (holds) assert(ourWay.lock(mortal, 0, false) === 0, 'the lock is free at first')
    if (holds) enter(0)
    const sleeps = doing === 'unlocks' ? asleep(other, 0, false) : undefined
    const survive = (result: number): number => {
      if (result === -ESRCH) return result
      enter(1)
      if (result === -EOWNERDEAD) other.mutexes[0].makeConsistent(other.owner)
      inside = -1
      ourWay.unlock(other, 0)
      return result
    }
    return {
      threads: {
        mortal() {
          if (doing === 'dies with it') Atomics.load(mortal.mutexes[0].word.i32, 0)
          if (doing === 'waits') return ourWay.lock(mortal, 0, true)
          if (doing === 'holds two') return holdTwo(mortal, way)
          if (doing === 'locks and unlocks') {
            assert(way.lock(mortal, 0, false) === 0, 'the lock is free')
            enter(0)
          }
          inside = -1
          return way.unlock(mortal, 0)
        },
        ...(sleeps !== undefined && { survivor: () => survive(sleeps()) }),
        ...(doing === 'dies with it' && { survivor: () => survive(way.lock(other, 0, false)) }),
      },
      recover(dead) {
        died = true
        recover(doctor.fx.context, dead)
      },
      final({ results, crashed }) {
        const { layout, i32 } = doctor.fx.context
        if (doing === 'waits') {
          assert(ourWay.unlock(other, 0) === 0, 'the holder still has the lock')
          if (crashed.length > 0) assert(holderOf(wordAt(locks, 0)) === 0, 'the holder unlocks it')
        }
        const told = holds ? results[1] : crashed.length > 0 ? survive(ourWay.lock(other, 0, false)) : 0
        const robust = (kind & ROBUST) !== 0
        assert(
          told === 0 || (crashed.length > 0 && told === (robust ? -EOWNERDEAD : -ESRCH)),
          'the result is right',
        )
        if (doing === 'holds two' && crashed.length > 0) {
          const other1 = ourWay.lock(other, 1, false)
          assert(
            other1 === 0 || other1 === (robust ? -EOWNERDEAD : -ESRCH),
            'the result of the other lock is right',
          )
        }
        if (robust && crashed.length > 0) {
          assert(doctor.mutexes[0].tryLock(doctor.owner) === 0, 'it can be locked again')
        }
        assert(layout.waiters.count(i32) === 0, 'no waiter is left')
        assertFreed(locks)
        if (crashed.length > 0)
          assert(findOwner(doctor.fx.context, mortal.owner.tid) === 0, 'its TID finds no owner')
      },
    }
  }
}

/**
 * The owner died with the lock before the check starts. Another thread locks it during the recovery: either
 * all of it, or only the part that ends the owner.
 */
export function comesAfterDeath(kind: MutexKind, seenTo: 'recovered' | 'ended', way: Way = ourWay): Setup {
  return () => {
    const locks = checkedLocks(kind, 3, { waiters: 2, owners: 2 })
    const [mortal, other, doctor] = locks.threads
    const { i32, layout } = doctor.fx.context
    assert(ourWay.lock(mortal, 0, false) === 0, 'the lock is free at first')
    return {
      threads: {
        doctor() {
          if (seenTo === 'recovered') recoverFutexes(doctor.fx.context, 0)
          else exitOwner(doctor.fx.context, mortal.owner.record)
        },
        survivor: () => way.lock(other, 0, false),
      },
      final({ results }) {
        const told = results[1]
        // A pi lock that is not robust passes to its waiters, as on Linux; a later locker gets ESRCH.
        const passed = kind === PI && told === 0
        assert(passed || told === ((kind & ROBUST) !== 0 ? -EOWNERDEAD : -ESRCH), 'the result is right')
        if (told !== -ESRCH) {
          assert(holderOf(wordAt(locks, 0)) === other.owner.tid, 'it holds the lock')
          if (!passed)
            assert(other.mutexes[0].makeConsistent(other.owner) === 0, 'the new owner makes it consistent')
          assert(ourWay.unlock(other, 0) === 0, 'the holder unlocks it')
          assert(other.mutexes[0].tryLock(other.owner) === 0, 'it can be locked again')
        }
        assert(layout.waiters.count(i32) === 0, 'no waiter is left')
        assertFreed(locks)
        assert(findOwner(doctor.fx.context, mortal.owner.tid) === 0, 'its TID finds no owner')
      },
    }
  }
}

function holdTwo(thread: CheckedOwner, way: Way): number {
  for (const lock of [0, 1]) assert(way.lock(thread, lock, false) === 0, 'the lock is free')
  return way.unlock(thread, 0) + way.unlock(thread, 1)
}
