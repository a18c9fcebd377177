import { expect, test } from 'vitest'
import { lockRank } from '../../arena/sync/lockorder.ts'
import { initLock } from '../../arena/sync/spinlock.ts'
import { found } from '../../checker/check.ts'
import { checkedFutexes, type CheckedThread, wakeAt } from '../../../testing/futex/checksetup.ts'
import { enqueue } from '../core/queue.ts'
import { Bucket, Futex } from '../core/records.ts'
import {
  killedMover,
  killedWaiter,
  killedWaker,
  moveAgainstHastyTimeout,
  moveAgainstTimeout,
  moveAfterUnlocking,
  moveAgainstUnmap,
  moveInFullTable,
  movesBothWays,
  moveUnderTwoLocks,
  moveWithoutCheckingTheMapping,
  moveWithoutMoving,
  recoverWithoutRepair,
  recoverWithoutSignalling,
} from '../../../testing/futex/raceprograms.ts'
import { oldHandleAgainstReuse } from '../../../testing/futex/reuseprograms.ts'
import { sleepThread } from '../core/sleep.ts'
import { lockFutex, lockIfKey, unlockFutex } from '../core/table.ts'

/**
 * Reads the word, then queues itself, as the design's first attempt does: the word is not compared under the
 * lock.
 */
function naiveWait({ context, waiter, words }: CheckedThread, expected: number): number {
  const { i32 } = context
  const [word] = words
  if (Atomics.load(word.i32, word.index) !== expected) return 0
  Atomics.add(i32, word.privateBucket + Bucket.waiters, 1)
  const futex = lockFutex(context, word.privateBucket, word.mapped.mapping, word.index, word.privateHint)
  enqueue(context, futex, waiter)
  unlockFutex(context, futex)
  return sleepThread(context, [waiter], Infinity)
}

test('a wait that does not compare under the lock loses a wakeup', () => {
  const report = found(() => {
    const { view, threads } = checkedFutexes(2)
    return {
      threads: {
        waiter: () => naiveWait(threads[0], 0),
        waker() {
          Atomics.store(view, 0, 1)
          wakeAt(threads[1], 0, 1)
        },
      },
    }
  })
  expect(report).toMatch(/waiter is blocked and no thread is left that could go on/)
})

test('two requeues that take both locks in the order of their arguments deadlock', () => {
  expect(found(movesBothWays(moveUnderTwoLocks, false))).toMatch(/deadlock|lost wakeup/i)
})

test('a requeue that does not mark the waiter as moving fails against a timeout', () => {
  expect(found(moveAgainstTimeout(moveWithoutMoving))).toMatch(/on no list|foreign removal|on no queue/i)
})

test('a timeout that does not check again under the lock removes the waiter from the wrong queue', () => {
  expect(found(moveAgainstHastyTimeout())).toMatch(/on no list|foreign removal|double insert|links/i)
})

test('a requeue that does not check the mapping under the second lock leaves a waiter at an unmapped word', () => {
  expect(found(moveAgainstUnmap(moveWithoutCheckingTheMapping))).toMatch('the waiter gets EFAULT')
})

const MORTAL = { crashes: { max: 1, threads: [0] } }

test('a requeue that goes on after it has unlocked the queue to find a slot releases a lock twice', () => {
  expect(found(moveInFullTable(moveAfterUnlocking))).toMatch('released a spin lock that it does not hold')
})

test('a recovery that breaks locks and repairs nothing fails at a half queued waiter', () => {
  expect(found(killedWaiter(recoverWithoutRepair), MORTAL)).toMatch(/on no list|links around|a later wait/)
})

test('a recovery that forgets moving waiters leaves a sleeper on no queue', () => {
  expect(found(killedMover(recoverWithoutRepair), MORTAL)).toMatch(/livelock|on no list|a later wait/)
})

test('a recovery that does not signal the waiters that the dead thread removed leaves them asleep', () => {
  expect(found(killedWaker(recoverWithoutSignalling), MORTAL)).toMatch(/sleeper (is|are) (asleep|blocked)/)
})

test('a finder that checks an old handle only once locks an unfinished futex', () => {
  const once: typeof lockFutex = (context, bucket, owner, index, hint) => {
    const futex = context.layout.futexes.resolve(context.i32, hint)
    if (futex !== 0 && lockIfKey(context, futex, owner, index)) return futex
    return lockFutex(context, bucket, owner, index, 0)
  }
  expect(found(oldHandleAgainstReuse(once), { races: false })).toMatch(/on the chain of its bucket/)
})

test('resetting the lock of a reused slot breaks the lock of a finder with an old handle', () => {
  const report = found(
    oldHandleAgainstReuse(lockFutex, ({ i32, thread, layout }) => {
      const slot = layout.futexes.allocate(thread)
      initLock(i32, slot + Futex.lock, lockRank('futex queue'))
      return slot
    }),
    { races: false },
  )
  expect(report).toMatch(/released a spin lock that it does not hold|one has the lock/)
})
