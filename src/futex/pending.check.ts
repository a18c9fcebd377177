import { check } from '../checker/check.ts'
import { type MutexKind, PI, ROBUST_PI } from './mutex.ts'
import { boosted, calledInVain, taken, takerDies } from './pendingprograms.ts'

check('a waiter is called, and an equal takes the lock before it comes', {}, taken('an equal'))
check('a waiter is called, and a lower owner comes for the lock', {}, taken('a lower one'))
check('a called waiter gives up, and the next one comes', {}, calledInVain())

const kinds: [name: string, kind: MutexKind][] = [
  ['pi', PI],
  ['robust pi', ROBUST_PI],
]
/** All of a recovery beside a waiter that comes: those orders that have one preemption. */
const MORTAL = {
  crashes: { max: 1, threads: [0] },
  explorer: 'preemption-bounded',
  preemptions: 1,
  allowIncomplete: true,
} as const

for (const [name, kind] of kinds)
  check(`${name}: an equal takes a pending lock and dies at any step`, MORTAL, takerDies(kind))

check('a waiter of a pending lock is boosted as one comes that was as good', {}, boosted())
check(
  'a waiter is boosted by a thread that has not mapped the buffer, as one comes that was as good',
  {},
  boosted(undefined, 'by a thread that cannot see the word'),
)
check(
  'an equal takes and leaves a pending lock twice before the waiter comes',
  { explorer: 'preemption-bounded', preemptions: 2, allowIncomplete: true },
  taken('an equal', { times: 2 }),
)
