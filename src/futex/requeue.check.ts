import { assert } from '../arena/assert.ts'
import { check } from '../checker/check.ts'
import { type CheckedFutexes, checkedFutexes, waitAt, wakeAt } from './checksetup.ts'
import type { FutexContext } from './context.ts'
import { moveAgainstTimeout, moveAgainstWake, movesBothWays, ourMove, withSleeper } from './raceprograms.ts'
import { ENDED, Waiter, WOKEN } from './records.ts'
import { recoverFutexes } from './recover.ts'
import { queueWaiter } from './waitwake.ts'

check('requeue against a timeout: the sleeper finds its queue, wherever it is', {}, moveAgainstTimeout())
check('requeue against a wake: woken once or timed out, never lost', {}, moveAgainstWake())
check('requeue both ways against each other: no deadlock, no waiter lost', {}, movesBothWays(ourMove, false))
check('requeue both ways against a timeout: the three of the design', {}, movesBothWays())

/** The next two are long: they stop after two minutes, and say how far they came. Without `time` they go on to the end. */
const LONG = { time: 120_000 }

check('requeue against unmap: the waiter is told, wherever it was', LONG, () => {
  const { i32, threads } = withSleeper(3, 1)
  return {
    threads: {
      mover: () => ourMove(threads[1], 0, 1),
      unmapper: () => threads[2].space.unmap(threads[2].mapped),
    },
    final() {
      const fate = Atomics.load(i32, threads[0].waiter + Waiter.queue)
      assert(fate === ENDED, 'its word is gone, and it knows')
    },
  }
})

check(
  'a waiter that is killed at any step is taken off, and the others go on',
  { ...LONG, crashes: { max: 1, threads: [0] } },
  () => {
    // As few slots as it takes: recovery looks at them all, step by step, beside the survivor.
    const futexes = checkedFutexes(3, 5, 1)
    const { i32, threads } = futexes
    return {
      threads: {
        mortal: () => waitAt(threads[0], 0, 0, true),
        survivor: () => wakeAt(threads[1], 0, 1),
      },
      recover: (dead: number) => recoverFutexes(threads[2].context, dead),
      final({ crashed }) {
        const { layout } = threads[2].context
        if (crashed.length > 0) {
          assert(!layout.waiters.isAllocated(i32, threads[0].waiter), 'the waiter of the dead is given back')
        }
        // Both queues still work.
        assert(waitAndWake(threads[2].context, futexes), 'a wait after it is queued, and a wake finds it')
      },
    }
  },
)

function waitAndWake(context: FutexContext, { i32, threads }: CheckedFutexes): boolean {
  const { words, waiter } = threads[2]
  if (queueWaiter(context, words[0], false, 0, waiter) !== 0) return false
  return wakeAt(threads[2], 0, 1) === 1 && Atomics.load(i32, waiter + Waiter.queue) === WOKEN
}
