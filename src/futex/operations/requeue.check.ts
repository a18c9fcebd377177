import { check } from '../../checker/check.ts'
import {
  killedMaker,
  killedMover,
  killedWaiter,
  killedWaker,
  moveAgainstTimeout,
  moveAgainstUnmap,
  moveAgainstWake,
  movesBothWays,
  ourMove,
} from '../../../testing/futex/raceprograms.ts'

check('requeue against a timeout: the sleeper finds its queue, wherever it is', {}, moveAgainstTimeout())
check('requeue against a wake: woken once or timed out, never lost', {}, moveAgainstWake())
check('requeue both ways against each other: no deadlock, no waiter lost', {}, movesBothWays(ourMove, false))
check('requeue both ways against a timeout: the three of the design', {}, movesBothWays())
/** The orders of three threads here, or of a recovery beside two, are too many to explore. */
const BOUNDED = { explorer: 'preemption-bounded', preemptions: 1, allowIncomplete: true } as const
const ONE = '(at most one preemption)'
const NONE = '(no preemption)'
check(`requeue against unmap: the waiter is told, wherever it was ${ONE}`, BOUNDED, moveAgainstUnmap())

/** The first thread of each program may die, at any of its steps. */
const MORTAL = { crashes: { max: 1, threads: [0] } }

check(
  `a waiter that is killed at any step is taken off, and the others go on ${NONE}`,
  { ...MORTAL, ...BOUNDED, preemptions: 0 },
  killedWaiter(),
)
check('one that is killed at any step of making a futex leaves no lock behind', MORTAL, killedMaker())
check(
  `a mover that is killed at any step loses nobody ${NONE}`,
  { ...MORTAL, ...BOUNDED, preemptions: 0 },
  killedMover(),
)
check('a waker that is killed at any step leaves nobody asleep that another wakes', MORTAL, killedWaker())
