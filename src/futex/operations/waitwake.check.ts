import { assert } from '../../arena/assert.ts'
import { check } from '../../checker/check.ts'
import { checkedFutexes, queueOf, waitAt, wakeAt } from '../../../testing/futex/checksetup.ts'
import { EAGAIN, ETIMEDOUT } from '../core/errno.ts'
import { sleep, withSleeper } from '../../../testing/futex/raceprograms.ts'

check(
  'a lock on a futex: in every order of lock, sleep, unlock and wake, no thread sleeps for ever',
  {},
  () => {
    const { view, threads } = checkedFutexes(2)
    Atomics.store(view, 0, 1)
    let inside = 0
    return {
      threads: {
        owner() {
          inside++
          assert(inside === 1, 'one thread holds the lock')
          inside--
          Atomics.store(view, 0, 0)
          wakeAt(threads[0], 0, 1)
        },
        other() {
          while (Atomics.compareExchange(view, 0, 0, 1) !== 0) waitAt(threads[1], 0, 1)
          inside++
          assert(inside === 1, 'one thread holds the lock')
          inside--
        },
      },
    }
  },
)

check('a wait is woken and counted, or refused, when the word changes before the wake', {}, () => {
  const futexes = checkedFutexes(2)
  const { view, threads } = futexes
  return {
    threads: {
      waiter: () => waitAt(threads[0], 0, 0),
      waker() {
        Atomics.store(view, 0, 1)
        return wakeAt(threads[1], 0, 1)
      },
    },
    final({ results }) {
      const [waited, woken] = results as number[]
      assert(waited === 0 ? woken === 1 : waited === -EAGAIN && woken === 0, 'woken and counted, or refused')
      assert(queueOf(futexes, 0) === -1, 'it is on no queue')
    },
  }
})

check('a wake against a timeout has exactly one outcome, counted once', {}, () => {
  const futexes = checkedFutexes(2)
  const { threads } = futexes
  return {
    threads: { waiter: () => waitAt(threads[0], 0, 0, true), waker: () => wakeAt(threads[1], 0, 1) },
    final({ results }) {
      const [waited, woken] = results as number[]
      assert(waited === 0 || waited === -ETIMEDOUT, 'woken or timed out')
      assert((waited === 0) === (woken === 1), 'the waker counts it if and only if it was woken')
      assert(queueOf(futexes, 0) === -1, 'it is on no queue')
    },
  }
})

check('two wakes never wake the same waiter twice', {}, () => {
  const { threads } = withSleeper(3)
  return {
    threads: {
      waiter: () => sleep(threads[0], true),
      one: () => wakeAt(threads[1], 0, 1),
      other: () => wakeAt(threads[2], 0, 1),
    },
    final({ results }) {
      const [waited, one, other] = results as number[]
      assert(one + other === (waited === 0 ? 1 : 0), 'one of them woke it, or none')
    },
  }
})
