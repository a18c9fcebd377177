import { check } from '../../checker/check.ts'
import { closedCycle, nearCycle } from '../../../testing/futex/cycleprograms.ts'
import { chainAgainst, handedOn } from '../../../testing/futex/lockprograms.ts'
import { type MutexKind, PI, PLAIN, ROBUST, ROBUST_PI } from '../robust/mutex.ts'

const kinds: [name: string, kind: MutexKind][] = [
  ['plain', PLAIN],
  ['robust', ROBUST],
  ['pi', PI],
  ['robust pi', ROBUST_PI],
]

for (const [name, kind] of kinds) {
  check(
    `${name}: lock against unlock: no thread sleeps for ever, one thread holds the lock`,
    {},
    handedOn(kind, 2),
  )
  check(
    `${name}: lock against unlock of a word with an old WAITERS bit`,
    {},
    handedOn(kind, 2, { marked: true }),
  )
  check(`${name}: lock against unlock against timeout`, {}, handedOn(kind, 2, { hurried: [1] }))
  check(
    `${name}: unlock against two waiters, one of which times out`,
    {},
    handedOn(kind, 3, { hurried: [2], asleepAtFirst: true }),
  )
}
check('chain walk against unlock', {}, chainAgainst('unlock'))
check('chain walk against a timeout in the middle of the chain', {}, chainAgainst('timeout'))
check('the last walk of a cycle finds the deadlock, however late it is', {}, closedCycle(true))
/** Both walk the same four locks three times: too many interleavings to explore all. */
const BOUNDED = { explorer: 'preemption-bounded', preemptions: 1, allowIncomplete: true } as const
check(
  'of two owners that close a cycle together at least one gets EDEADLK (at most one preemption)',
  BOUNDED,
  closedCycle(false),
)
check('a chain whose middle gives up is not a deadlock', {}, nearCycle('gives up'))
check('a chain through a reused owner record is not a deadlock', { rerun: false }, nearCycle('ends'))
