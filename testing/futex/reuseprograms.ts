/**
 * An old handle while its slot is freed and reused, for the model checker. The broken variants are in
 * races.test.ts.
 */
import { assert } from '../../src/arena/assert.ts'
import type { Setup } from '../../src/checker/check.ts'
import type { FutexContext } from '../../src/futex/core/context.ts'
import { checkedLocks } from './locksetup.ts'
import { PLAIN } from '../../src/futex/robust/mutex.ts'
import { Futex } from '../../src/futex/core/records.ts'
import { lockFutex, lockOrCreateFutex, unlockFutex } from '../../src/futex/core/table.ts'

export type LockByHandle = typeof lockFutex

/** Returns a slot for the new futex; 0: the table allocates one. */
export type Slot = (context: FutexContext) => number

export function oldHandleAgainstReuse(lock: LockByHandle = lockFutex, slot: Slot = () => 0): Setup {
  return () => {
    const { i32, threads } = checkedLocks(PLAIN, 2)
    const [comes, frees] = threads.map(({ fx }) => fx.context)
    const { sharedBucket: bucket, mapped, index } = threads[0].mutexes[0].word
    const key = mapped.backing
    const first = lockOrCreateFutex(frees, bucket, key, index, 0)
    const old = frees.layout.futexes.handleOf(i32, first)
    // It has no waiters: it ends, and its slot is freed.
    unlockFutex(frees, first)
    comes.rcu.idleEnter(comes.thread)
    frees.rcu.idleEnter(frees.thread)
    let inside = 0
    const holds = (context: FutexContext, futex: number): void => {
      assert(inside++ === 0, 'one thread holds the lock of a futex')
      assert(i32[futex + Futex.index] === index, 'the locked slot is the futex of the word')
      inside--
      unlockFutex(context, futex)
    }
    return {
      threads: {
        comes() {
          comes.rcu.idleExit(comes.thread)
          const futex = lock(comes, bucket, key, index, old)
          if (futex !== 0) holds(comes, futex)
          comes.rcu.idleEnter(comes.thread)
        },
        frees() {
          frees.rcu.runCallbacks(frees.thread)
          frees.rcu.idleExit(frees.thread)
          holds(frees, lockOrCreateFutex(frees, bucket, key, index, 0, slot(frees)))
          frees.rcu.idleEnter(frees.thread)
        },
      },
    }
  }
}
