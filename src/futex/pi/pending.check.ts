import { check } from '../../checker/check.ts'
import { type MutexKind, PI, ROBUST_PI } from '../robust/mutex.ts'
import {
  boosted,
  calledInVain,
  endedBlindly,
  taken,
  takerDies,
} from '../../../testing/futex/pendingprograms.ts'

/** Three threads at a pending lock have too many interleavings to explore all. */
const BOUNDED = { explorer: 'preemption-bounded', preemptions: 1, allowIncomplete: true } as const
const ONE = '(at most one preemption)'
const NONE = '(no preemption)'

check(
  `an owner of equal priority takes a pending lock before the called waiter ${ONE}`,
  BOUNDED,
  taken('an equal owner'),
)
check(
  `a lower owner tries to take a pending lock before the called waiter ${ONE}`,
  BOUNDED,
  taken('a lower owner'),
)
check('a called waiter gives up, and the next one takes the lock', {}, calledInVain())

const kinds: [name: string, kind: MutexKind][] = [
  ['pi', PI],
  ['robust pi', ROBUST_PI],
]
const MORTAL = { ...BOUNDED, preemptions: 0, crashes: { max: 1, threads: [0] } }

for (const [name, kind] of kinds)
  check(
    `${name}: an owner of equal priority takes a pending lock and dies at any step ${NONE}`,
    MORTAL,
    takerDies(kind),
  )

check(
  'a waiter of a pending lock is boosted while an owner of its old priority tries to take the lock',
  {},
  boosted(),
)
check(
  'a thread that has not mapped the buffer boosts the waiter of a pending lock',
  {},
  boosted(undefined, 'by a thread that cannot access the word'),
)
check(
  `an owner of equal priority takes and leaves a pending lock twice before the called waiter ${ONE}`,
  BOUNDED,
  taken('an equal owner', { times: 2 }),
)
check(
  `a thread that has not mapped the buffer ends the holder of a lock with a waiter ${ONE}`,
  BOUNDED,
  endedBlindly(),
)
