import { check } from '../../checker/check.ts'
import { closedCircle, nearCircle } from '../../../testing/futex/circleprograms.ts'
import { chainAgainst, handedOn } from '../../../testing/futex/lockprograms.ts'
import { type MutexKind, PI, PLAIN, ROBUST, ROBUST_PI } from '../robust/mutex.ts'

const kinds: [name: string, kind: MutexKind][] = [
  ['plain', PLAIN],
  ['robust', ROBUST],
  ['pi', PI],
  ['robust pi', ROBUST_PI],
]

for (const [name, kind] of kinds) {
  check(`${name}: lock against unlock, nobody sleeps for ever, nobody enters twice`, {}, handedOn(kind, 2))
  check(
    `${name}: lock against unlock of a word that says WAITERS from before`,
    {},
    handedOn(kind, 2, { marked: true }),
  )
  check(`${name}: lock against unlock against timeout`, {}, handedOn(kind, 2, { hurried: [1] }))
  check(
    `${name}: unlock against two who wait, one of them late`,
    {},
    handedOn(kind, 3, { hurried: [2], asleepAtFirst: true }),
  )
}
check('chain walk against unlock', {}, chainAgainst('unlock'))
check('chain walk against a timeout in the middle of the chain', {}, chainAgainst('timeout'))
check('a circle is told of when the last to close it walks, however late', {}, closedCircle(true))
/** Both walk, and go round twice more, past the same four locks: too many orders to explore all of. */
const BOUNDED = { explorer: 'preemption-bounded', preemptions: 1, allowIncomplete: true } as const
check(
  'a circle that two close at once is told to one of them at least (at most one preemption)',
  BOUNDED,
  closedCircle(false),
)
check('a chain whose middle gives up as its end comes is no circle', {}, nearCircle('gives up'))
check(
  'a chain that leads to a record which is another’s by now is no circle',
  { rerun: false },
  nearCircle('ends'),
)
