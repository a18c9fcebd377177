import { assert } from '../../src/arena/assert.ts'
import type { Setup } from '../../src/checker/check.ts'
import { pending } from '../../src/checker/instrument/runtime.ts'
import { checkedLocks } from '../futex/locksetup.ts'
import { type MutexKind, PI, ROBUST } from '../../src/futex/robust/mutex.ts'
import { holderOf } from '../../src/futex/core/owner.ts'
import { threadWaiter } from '../../src/futex/core/sleep.ts'
import { Condition } from '../../src/sync/condition/condition.ts'
import { Mutex } from '../../src/sync/mutex/mutex.ts'
import { enterAsChecked } from './checkedthreads.ts'
import type { Steps } from './notifyprograms.ts'
import { notify } from '../../src/sync/condition/notify.ts'
import { sleepOn } from '../../src/sync/wait/waiting.ts'

const TAG = 77
const MUTEX = 0
const CONDITION = 16
const WORD = 4

interface Scene {
  readonly kind: MutexKind
  readonly waiters: number
  /** The time of the first may be over. */
  readonly late?: boolean
  /** The notifier holds the mutex as it notifies, and unlocks it then. Else it has never come to it. */
  readonly holds: boolean
  readonly notifies?: typeof notify
}

/**
 * Threads wait at a condition with a mutex that waits at a futex, asleep from the start; the last thread
 * notifies all of them. Each has the mutex once, one at a time.
 */
export function notifyAtWord({ kind, waiters, late = false, holds, notifies = notify }: Scene): Setup {
  return () => {
    const count = waiters + 1
    const locks = checkedLocks(kind, count, { waiters: 8 * count, buckets: 4 })
    for (const { fx, owner } of locks.threads) {
      // The owner that the thread is, with a priority of its own.
      Object.assign(fx, { own: owner, mayBlock: true })
      Atomics.store(fx.context.i32, fx.context.layout.counter + 2, TAG)
    }
    let acting = 0
    enterAsChecked(() => locks.threads[pending.current < 0 ? acting : pending.current].fx)
    const { buffer } = locks.view as Int32Array<SharedArrayBuffer>
    const options = {
      buffer,
      protocol: (kind & PI) !== 0 ? 'inherit' : 'none',
      robust: (kind & ROBUST) !== 0,
    } as const
    const as = <T>(id: number, act: () => T): T => {
      acting = id
      return act()
    }
    const sides = locks.threads.map((_, id) =>
      as(id, () => {
        const mutex = new Mutex({ ...options, index: MUTEX })
        void mutex.handle
        return { mutex, condition: new Condition({ buffer, index: CONDITION }) }
      }),
    )
    let inside = -1
    const bodies = Array.from({ length: waiters }, (_, id) =>
      as(id, () => {
        const { mutex, condition } = sides[id]
        const { fx, owner } = locks.threads[id]
        const steps = condition as unknown as Steps
        assert(mutex.tryLock() !== null, 'the mutex is free')
        const held = { mutex, owner, depth: 0 }
        const wait = steps.begin(held)
        const queued = wait.begin(fx.context, threadWaiter())
        return (): boolean => {
          const told = sleepOn(fx.context, wait, queued, late && id === 0 ? 1 : Infinity)
          mutex.reacquireSync(owner)
          steps.ended(held)
          assert(inside === -1 && mutex.isHeldBy(owner.tid), 'a wait ends with the mutex held')
          inside = id
          Atomics.load(locks.view, MUTEX + WORD)
          inside = -1
          mutex.unlock()
          return told
        }
      }),
    )
    const last = sides[waiters]
    const steps = last.condition as unknown as Steps
    if (holds) as(waiters, () => assert(last.mutex.tryLock() !== null, 'the mutex is free'))
    bodies.push(() => {
      const told = notifies(locks.threads[waiters].fx.context, last.condition, steps, null, Infinity)
      if (holds) last.mutex.unlock()
      return told > 0
    })
    return {
      threads: bodies,
      final() {
        assert(holderOf(Atomics.load(locks.view, MUTEX + WORD)) === 0, 'no thread has it at the end')
        assert(locks.threads[0].fx.context.layout.waiters.count(locks.i32) === 0, 'no waiter is left')
      },
    }
  }
}
