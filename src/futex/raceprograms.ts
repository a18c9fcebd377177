import { listRemove } from '../arena/list.ts'
import { assert } from '../arena/assert.ts'
import { acquire, release } from '../arena/spinlock.ts'
import { type CheckedFutexes, type CheckedThread, checkedFutexes, queueOf, wakeAt } from './checksetup.ts'
import type { FutexContext } from './context.ts'
import { ETIMEDOUT } from './errno.ts'
import { enqueue, takeOff } from './queue.ts'
import { Bucket, Futex, isMoving, OFF, Waiter, WOKEN } from './records.ts'
import { requeue } from './requeue.ts'
import { sleepThread } from './sleep.ts'
import { lockFutex, unlockFutex } from './table.ts'
import { queueWaiter } from './waitwake.ts'

/** What the model checker is given: the bodies of the threads, and what must hold at the end. */
export type Program = () => {
  threads: Record<string, () => unknown>
  final?: (outcome: { results: readonly unknown[] }) => void
}

/** How a thread moves the first waiter of one word to the other: the product's way, or a broken one. */
export type Move = (thread: CheckedThread, from: number, to: number) => number

export const ourMove: Move = ({ context, words }, from, to) =>
  requeue(context, words[from], words[to], false, 0, 1, undefined)

/** Thread 0's waiter is on word 0 before anything starts. */
export function withSleeper(threads: number, buckets?: number): CheckedFutexes {
  const futexes = checkedFutexes(threads, undefined, buckets)
  const { context, words, waiter } = futexes.threads[0]
  assert(queueWaiter(context, words[0], false, 0, waiter) === 0, 'the sleeper waits from the start')
  return futexes
}

export const sleep = ({ context, waiter }: CheckedThread, mayTimeOut: boolean): number =>
  sleepThread(context, [waiter], mayTimeOut ? 1 : Infinity)

export function moveAgainstTimeout(move: Move = ourMove): Program {
  return () => {
    const futexes = withSleeper(2)
    const { threads } = futexes
    return {
      threads: { sleeper: () => sleep(threads[0], true), mover: () => move(threads[1], 0, 1) },
      final({ results }) {
        assert(results[0] === -ETIMEDOUT, 'nobody woke it')
        assert(queueOf(futexes, 0) === -1, 'it is on no queue')
      },
    }
  }
}

export function moveAgainstWake(move: Move = ourMove): Program {
  return () => {
    const futexes = withSleeper(3)
    const { threads } = futexes
    return {
      threads: {
        sleeper: () => sleep(threads[0], true),
        mover: () => move(threads[1], 0, 1),
        waker: () => wakeAt(threads[2], 1, 1),
      },
      final({ results }) {
        const [slept, , woken] = results as number[]
        assert((slept === 0) === (woken === 1), 'woken if and only if the waker counted it')
        assert(queueOf(futexes, 0) === -1, 'it is on no queue')
      },
    }
  }
}

/** The design's three: U moves A to B, V moves B to A, and the owner of X times out. */
export function movesBothWays(move: Move = ourMove, mayTimeOut = true): Program {
  return () => {
    const futexes = withSleeper(3)
    const { threads } = futexes
    return {
      threads: {
        // Its time is up: it takes itself off, wherever it is.
        W: () => (mayTimeOut ? takeOff(threads[0].context, threads[0].waiter) : false),
        U: () => move(threads[1], 0, 1),
        V: () => move(threads[2], 1, 0),
      },
      final({ results }) {
        assert(results[0] === mayTimeOut, 'it takes itself off, because nobody woke it')
        assert((queueOf(futexes, 0) === -1) === mayTimeOut, 'it is on no queue, or on one of the two')
      },
    }
  }
}

// The broken ones, for races.test.ts.

/** Takes both locks, in the order it was given. */
export const moveUnderTwoLocks: Move = ({ context, words }, from, to) => {
  const { i32, thread } = context
  const source = lockFutex(
    context,
    words[from].privateBucket,
    words[from].mapped.mapping,
    from,
    words[from].privateHint,
  )
  const target = lockFutex(
    context,
    words[to].privateBucket,
    words[to].mapped.mapping,
    to,
    words[to].privateHint,
  )
  const waiter = firstOf(i32, source)
  listRemove(i32, source + Futex.waiters, waiter)
  enqueue(context, target, waiter)
  release(thread, target + Futex.lock)
  release(thread, source + Futex.lock)
  return 1
}

/** Leaves the queue word as it is while the waiter is on neither queue. */
export const moveWithoutMoving: Move = ({ context, words }, from, to) => {
  const { i32 } = context
  const source = lockFutex(
    context,
    words[from].privateBucket,
    words[from].mapped.mapping,
    from,
    words[from].privateHint,
  )
  const waiter = firstOf(i32, source)
  listRemove(i32, source + Futex.waiters, waiter)
  unlockFutex(context, source)
  const target = lockFutex(
    context,
    words[to].privateBucket,
    words[to].mapped.mapping,
    to,
    words[to].privateHint,
  )
  enqueue(context, target, waiter)
  unlockFutex(context, target)
  return 1
}

function firstOf(i32: Int32Array, futex: number): number {
  return i32[futex + Futex.waiters]
}

/** Takes itself off the queue that it read first, without reading again under the lock. */
export function takeOffWithoutLookingAgain(context: FutexContext, waiter: number): boolean {
  const { i32, thread } = context
  const futex = Atomics.load(i32, waiter + Waiter.queue)
  if (futex === WOKEN || isMoving(futex)) return false
  acquire(thread, futex + Futex.lock)
  Atomics.store(i32, waiter + Waiter.queue, OFF)
  listRemove(i32, futex + Futex.waiters, waiter)
  Atomics.sub(i32, i32[futex + Futex.bucket] + Bucket.waiters, 1)
  unlockFutex(context, futex)
  return true
}

/** A timeout that does so, against a move. */
export function moveAgainstHastyTimeout(): Program {
  return () => {
    const { threads } = withSleeper(2)
    return {
      threads: {
        sleeper: () => takeOffWithoutLookingAgain(threads[0].context, threads[0].waiter),
        mover: () => ourMove(threads[1], 0, 1),
      },
    }
  }
}
