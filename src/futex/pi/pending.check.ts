import { check } from '../../checker/check.ts'
import { type MutexKind, PI, ROBUST_PI } from '../robust/mutex.ts'
import { boosted, calledInVain, taken, takerDies } from '../../../testing/futex/pendingprograms.ts'

/** The orders of three threads at a pending lock are too many to explore. */
const BOUNDED = { explorer: 'preemption-bounded', preemptions: 1, allowIncomplete: true } as const
const ONE = '(at most one preemption)'
const NONE = '(no preemption)'

check(`a waiter is called, and an equal takes the lock before it comes ${ONE}`, BOUNDED, taken('an equal'))
check(`a waiter is called, and a lower owner comes for the lock ${ONE}`, BOUNDED, taken('a lower one'))
check('a called waiter gives up, and the next one comes', {}, calledInVain())

const kinds: [name: string, kind: MutexKind][] = [
  ['pi', PI],
  ['robust pi', ROBUST_PI],
]
const MORTAL = { ...BOUNDED, preemptions: 0, crashes: { max: 1, threads: [0] } }

for (const [name, kind] of kinds)
  check(`${name}: an equal takes a pending lock and dies at any step ${NONE}`, MORTAL, takerDies(kind))

check('a waiter of a pending lock is boosted as one comes that was as good', {}, boosted())
check(
  'a waiter is boosted by a thread that has not mapped the buffer, as one comes that was as good',
  {},
  boosted(undefined, 'by a thread that cannot see the word'),
)
check(
  `an equal takes and leaves a pending lock twice before the waiter comes ${ONE}`,
  BOUNDED,
  taken('an equal', { times: 2 }),
)
