import { check } from '../../checker/check.ts'
import {
  killedMaker,
  killedMover,
  killedWaiter,
  killedWaker,
  moveAgainstTimeout,
  moveAgainstUnmap,
  moveAgainstWake,
  moveInFullTable,
  movesBothWays,
  ourMove,
} from '../../../testing/futex/raceprograms.ts'

check('requeue against a timeout: the sleeper finds its queue', {}, moveAgainstTimeout())
check('requeue against a wake: woken once or timed out, never lost', {}, moveAgainstWake())
check('requeue with all slots taken: it moves the waiter, or fails and leaves it', {}, moveInFullTable())
check('requeue both ways against each other: no deadlock, no waiter lost', {}, movesBothWays(ourMove, false))
check('requeue both ways against a timeout', {}, movesBothWays())
/** Three threads, or a recovery beside two, have too many interleavings to explore all. */
const BOUNDED = { explorer: 'preemption-bounded', preemptions: 1, allowIncomplete: true } as const
const ONE = '(at most one preemption)'
const NONE = '(no preemption)'
check(`requeue against unmap: the waiter gets EFAULT on either queue ${ONE}`, BOUNDED, moveAgainstUnmap())

/** The first thread of each program may die at any step. */
const MORTAL = { crashes: { max: 1, threads: [0] } }

check(
  `a waiter killed at any step is removed, and the others go on ${NONE}`,
  { ...MORTAL, ...BOUNDED, preemptions: 0 },
  killedWaiter(),
)
check('a thread killed at any step of creating a futex leaves no lock held', MORTAL, killedMaker())
check(
  `a mover killed at any step loses no waiter ${NONE}`,
  { ...MORTAL, ...BOUNDED, preemptions: 0 },
  killedMover(),
)
check('a waker killed at any step leaves no sleeper asleep that another thread wakes', MORTAL, killedWaker())
