import { ArenaFullError } from '../../src/arena/memory/arena.ts'
import { listRemove } from '../../src/arena/trees/list.ts'
import { assert } from '../../src/arena/assert.ts'
import { acquire, breakLock, lockOwner, release } from '../../src/arena/sync/spinlock.ts'
import type { Setup } from '../../src/checker/check.ts'
import {
  type CheckedFutexes,
  type CheckedThread,
  checkedFutexes,
  queueOf,
  RESIDENT,
  waitAt,
  wakeAt,
} from './checksetup.ts'
import type { FutexContext } from '../../src/futex/core/context.ts'
import { EFAULT, ETIMEDOUT } from '../../src/futex/core/errno.ts'
import { enqueue, takeOff } from '../../src/futex/core/queue.ts'
import {
  Bucket,
  QUEUE_ENDED,
  Futex,
  isMoving,
  movingBy,
  QUEUE_NONE,
  Waiter,
  QUEUE_WOKEN,
} from '../../src/futex/core/records.ts'
import { recoverFutexes } from '../../src/futex/recovery/recover.ts'
import { requeue } from '../../src/futex/operations/requeue.ts'
import { sleepThread } from '../../src/futex/core/sleep.ts'
import type { FutexWord } from '../../src/futex/core/space.ts'
import { lockFutex, unlockFutex } from '../../src/futex/core/table.ts'
import { queueWaiter, wake } from '../../src/futex/operations/waitwake.ts'

/** How a thread moves the first waiter of one word to the other: the product's function, or a broken one. */
export type Move = (thread: CheckedThread, from: number, to: number) => number

export const ourMove: Move = ({ context, words }, from, to) =>
  requeue(context, words[from], words[to], false, 0, 1, undefined)

/** Thread 0's waiter is on word 0 before anything starts. */
export function withSleeper(threads: number, buckets?: number, slots?: number): CheckedFutexes {
  const futexes = checkedFutexes(threads, slots, buckets)
  const { context, words, waiter } = futexes.threads[0]
  assert(queueWaiter(context, words[0], false, 0, waiter) === 0, 'the sleeper waits from the start')
  return futexes
}

export const sleep = ({ context, waiter }: CheckedThread, mayTimeOut: boolean): number =>
  sleepThread(context, [waiter], mayTimeOut ? 1 : Infinity)

export function moveAgainstTimeout(move: Move = ourMove): Setup {
  return () => {
    const futexes = withSleeper(2)
    const { threads } = futexes
    return {
      threads: { sleeper: () => sleep(threads[0], true), mover: () => move(threads[1], 0, 1) },
      final({ results }) {
        assert(results[0] === -ETIMEDOUT, 'no thread woke it')
        assert(queueOf(futexes, 0) === -1, 'it is on no queue')
      },
    }
  }
}

export function moveAgainstWake(move: Move = ourMove): Setup {
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

/**
 * The three threads of the race in requeue.ts: U moves A to B, V moves B to A, and the sleeper of X times
 * out.
 */
export function movesBothWays(move: Move = ourMove, mayTimeOut = true): Setup {
  return () => {
    const futexes = withSleeper(3)
    const { threads } = futexes
    return {
      threads: {
        // It times out, and removes itself from its queue.
        W: () => (mayTimeOut ? takeOff(threads[0].context, threads[0].waiter) : false),
        U: () => move(threads[1], 0, 1),
        V: () => move(threads[2], 1, 0),
      },
      final({ results }) {
        assert(results[0] === mayTimeOut, 'it removes itself, because no thread woke it')
        assert((queueOf(futexes, 0) === -1) === mayTimeOut, 'it is on no queue, or on one of the two')
      },
    }
  }
}

/**
 * The mapping is unmapped while a waiter moves from one of its words to the other: the waiter gets EFAULT on
 * either queue.
 */
export function moveAgainstUnmap(move: Move = ourMove): Setup {
  return () => {
    const { i32, threads } = withSleeper(3, 1)
    return {
      threads: {
        mover: () => move(threads[1], 0, 1),
        unmapper: () => threads[2].space.unmap(threads[2].mapped),
      },
      final() {
        const end = Atomics.load(i32, threads[0].waiter + Waiter.queue)
        assert(end === QUEUE_ENDED, 'the waiter gets EFAULT')
      },
    }
  }
}

/** All slots are taken when the mover begins, and another thread frees one meanwhile. */
export function moveInFullTable(move: Move = ourMove): Setup {
  return () => {
    const futexes = withSleeper(2, undefined, FULL_SLOTS)
    const { i32, threads } = futexes
    const { layout, thread } = threads[1].context
    const taken: number[] = []
    for (let slot = layout.futexes.tryAllocate(thread); slot !== 0; slot = layout.futexes.tryAllocate(thread))
      taken.push(slot)
    return {
      threads: {
        mover() {
          try {
            return move(threads[0], 0, 1)
          } catch (full) {
            if (!(full instanceof ArenaFullError)) throw full
            return 0
          }
        },
        frees: () => layout.futexes.free(i32, taken[0]),
      },
      final({ results }) {
        assert(queueOf(futexes, 0) === results[0], 'it has moved, or the call failed and it has not')
        assert(noneIsLocked(futexes), 'no queue stays locked')
        assert(layout.futexes.count(i32) === FULL_SLOTS - 1, 'the mover keeps no slot')
      },
    }
  }
}

export type Recover = (context: FutexContext, dead: number) => void

/** As few slots as possible: recovery visits all of them, step by step, beside the survivor. */
const FEW_SLOTS = 5
/** One for each waiter of two threads: theirs, and the two residents. */
const FULL_SLOTS = 4

/** Thread 0 waits at a word without a futex, and may die at any step of creating one. */
export function killedMaker(recover: Recover = recoverFutexes): Setup {
  return () => {
    const futexes = checkedFutexes(3, FEW_SLOTS, 1)
    const { threads } = futexes
    assert(
      wake(threads[2].context, threads[2].words[1], false, 1, RESIDENT.bits) === 1,
      'no thread waits there any more',
    )
    return {
      threads: { mortal: () => waitAt(threads[0], 1, 0, true) },
      recover: () => recover(threads[2].context, 0),
      final: () => assert(noneIsLocked(futexes), 'no slot is locked, in use or not'),
    }
  }
}

/** Thread 0 waits, and may die at any step of that. */
export function killedWaiter(recover: Recover = recoverFutexes): Setup {
  return () => {
    const futexes = checkedFutexes(3, FEW_SLOTS, 1)
    const { threads } = futexes
    return {
      threads: {
        mortal: () => waitAt(threads[0], 0, 0, true),
        survivor: () => wakeAt(threads[1], 0, 1),
      },
      recover: () => recover(threads[2].context, 0),
      final({ crashed }) {
        if (crashed.length > 0) assert(isGivenBack(futexes, 0), 'the waiter of the dead thread is freed')
        assert(waitAndWake(futexes), 'a later wait is queued, and a wake finds it')
      },
    }
  }
}

/** Thread 1 moves the sleeper, and may die at any step of that. */
export function killedMover(recover: Recover = recoverFutexes): Setup {
  return () => {
    const futexes = withSleeper(3, 1, FEW_SLOTS + 1)
    const { threads } = futexes
    return {
      threads: { mortal: () => ourMove(threads[1], 0, 1), sleeper: () => sleep(threads[0], true) },
      recover: () => recover(threads[2].context, 1),
      final() {
        assert(queueOf(futexes, 0) === -1, 'the sleeper is on no queue')
        assert(waitAndWake(futexes), 'a later wait is queued, and a wake finds it')
      },
    }
  }
}

/**
 * Thread 1 wakes the sleeper, and may die at any step of that; then another thread wakes it. The sleeper has
 * no timeout.
 */
export function killedWaker(recover: Recover = recoverFutexes): Setup {
  return () => {
    const futexes = withSleeper(3, 1, FEW_SLOTS)
    const { threads } = futexes
    return {
      threads: { mortal: () => wakeAt(threads[1], 0, 1), sleeper: () => sleep(threads[0], false) },
      recover() {
        recover(threads[2].context, 1)
        wakeAt(threads[2], 0, 1)
      },
      final({ results }) {
        assert(results[1] === 0, 'the sleeper was woken')
        assert(waitAndWake(futexes), 'a later wait is queued, and a wake finds it')
      },
    }
  }
}

function noneIsLocked({ threads }: CheckedFutexes): boolean {
  const { i32, layout } = threads[0].context
  for (let index = 0; index < layout.futexes.capacity; index++) {
    if (lockOwner(i32, layout.futexes.pointerAt(index) + Futex.lock) >= 0) return false
  }
  return true
}

function isGivenBack({ i32, threads }: CheckedFutexes, id: number): boolean {
  return !threads[id].context.layout.waiters.isAllocated(i32, threads[id].waiter)
}

/** Whether the queue of word 0 still works, for thread 2. */
function waitAndWake({ i32, threads }: CheckedFutexes): boolean {
  const { context, words, waiter } = threads[2]
  if (queueWaiter(context, words[0], false, 0, waiter) !== 0) return false
  return wakeAt(threads[2], 0, 1) === 1 && Atomics.load(i32, waiter + Waiter.queue) === QUEUE_WOKEN
}

// The broken variants, for races.test.ts.

/** Takes both locks, in the order of its arguments. */
export const moveUnderTwoLocks: Move = (thread, from, to) => {
  const { context } = thread
  const source = lockWord(thread, from)
  const target = lockWord(thread, to)
  const waiter = firstOf(context.i32, source)
  listRemove(context.i32, source + Futex.waiters, waiter)
  enqueue(context, target, waiter)
  release(context.thread, target + Futex.lock)
  release(context.thread, source + Futex.lock)
  return 1
}

/** Leaves the queue word as it is while the waiter is on neither queue. */
export const moveWithoutMoving: Move = (thread, from, to) => {
  const { context } = thread
  const source = lockWord(thread, from)
  const waiter = firstOf(context.i32, source)
  listRemove(context.i32, source + Futex.waiters, waiter)
  unlockFutex(context, source)
  const target = lockWord(thread, to)
  enqueue(context, target, waiter)
  unlockFutex(context, target)
  return 1
}

/** Unlocks the queue when it finds no slot, and goes on with one that became free meanwhile. */
export const moveAfterUnlocking: Move = (thread, from, to) => {
  const { context } = thread
  const { layout } = context
  const source = lockWord(thread, from)
  let spare = layout.futexes.tryAllocate(context.thread)
  if (spare === 0) {
    unlockFutex(context, source)
    spare = layout.futexes.allocate(context.thread)
  }
  layout.futexes.free(context.i32, spare)
  const waiter = firstOf(context.i32, source)
  Atomics.store(context.i32, waiter + Waiter.queue, movingBy(context.thread.id))
  listRemove(context.i32, source + Futex.waiters, waiter)
  unlockFutex(context, source)
  const target = lockWord(thread, to)
  enqueue(context, target, waiter)
  unlockFutex(context, target)
  return 1
}

/** Checks the mapping before it removes a waiter, and not again when it adds it to the other queue. */
export const moveWithoutCheckingTheMapping: Move = ({ context, words }, from, to) => {
  const blind = Object.assign(Object.create(words[to]), { isMapped: () => true }) as FutexWord
  if (!words[from].isMapped(context.i32, false) || !words[to].isMapped(context.i32, false)) return -EFAULT
  return requeue(context, words[from], blind, false, 0, 1, undefined)
}

/** Breaks the locks of the dead thread, removes and frees its waits, and repairs nothing else. */
export function recoverWithoutRepair(context: FutexContext, dead: number): void {
  const { i32, thread, layout } = context
  for (let at = 0; at < layout.buckets; at++) {
    const lock = layout.table.start + at * Bucket.words + Bucket.lock
    if (breakLock(thread, lock, dead)) release(thread, lock)
  }
  for (let at = 0; at < layout.futexes.capacity; at++) {
    const lock = layout.futexes.pointerAt(at) + Futex.lock
    if (breakLock(thread, lock, dead)) release(thread, lock)
  }
  for (let at = 0; at < layout.waiters.capacity; at++) {
    const waiter = layout.waiters.pointerAt(at)
    if (!layout.waiters.isAllocated(i32, waiter) || i32[waiter + Waiter.thread] !== dead) continue
    if (Atomics.load(i32, waiter + Waiter.queue) > QUEUE_NONE) takeOff(context, waiter)
    layout.waiters.free(i32, waiter)
  }
}

/** As recoverFutexes, but does not signal the waiters that the dead thread had removed from a queue. */
export function recoverWithoutSignalling(context: FutexContext, dead: number): void {
  const { wakeQueue } = context
  const push = wakeQueue.push
  wakeQueue.push = () => 0
  recoverFutexes(context, dead)
  wakeQueue.push = push
}

function lockWord({ context, words }: CheckedThread, index: number): number {
  const { privateBucket, mapped, privateHint } = words[index]
  return lockFutex(context, privateBucket, mapped.mapping, index, privateHint)
}

function firstOf(i32: Int32Array, futex: number): number {
  return i32[futex + Futex.waiters]
}

/** Removes the waiter from the queue that was read first, without reading again under the lock. */
function takeOffWithoutCheckingAgain(context: FutexContext, waiter: number): boolean {
  const { i32, thread } = context
  const futex = Atomics.load(i32, waiter + Waiter.queue)
  if (futex === QUEUE_WOKEN || isMoving(futex)) return false
  acquire(thread, futex + Futex.lock)
  Atomics.store(i32, waiter + Waiter.queue, QUEUE_NONE)
  listRemove(i32, futex + Futex.waiters, waiter)
  Atomics.sub(i32, i32[futex + Futex.bucket] + Bucket.waiters, 1)
  unlockFutex(context, futex)
  return true
}

/** Such a timeout against a move. */
export function moveAgainstHastyTimeout(): Setup {
  return () => {
    const { threads } = withSleeper(2)
    return {
      threads: {
        sleeper: () => takeOffWithoutCheckingAgain(threads[0].context, threads[0].waiter),
        mover: () => ourMove(threads[1], 0, 1),
      },
    }
  }
}
