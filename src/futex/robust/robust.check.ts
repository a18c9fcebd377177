import { check } from '../../checker/check.ts'
import { comesAfterDeath, type Doing, killed, killedFirst } from '../../../testing/futex/lockprograms.ts'
import { type MutexKind, PI, PLAIN, ROBUST, ROBUST_PI } from './mutex.ts'

const kinds: [name: string, kind: MutexKind][] = [
  ['plain', PLAIN],
  ['robust', ROBUST],
  ['pi', PI],
  ['robust pi', ROBUST_PI],
]
const doings: Doing[] = ['locks and unlocks', 'holds two', 'waits', 'unlocks']

/**
 * The first thread of each program may die, at any of its steps: of the lock, of the list, of the kernel's
 * own.
 */
const MORTAL = { crashes: { max: 1, threads: [0] } }

for (const [name, kind] of kinds) {
  for (const doing of doings) {
    const options = { ...MORTAL, rerun: doing !== 'unlocks' }
    check(`${name}: the owner dies at any step while it ${doing}`, options, killed(kind, doing))
  }
}

/** The orders of a thread that waits beside all of a recovery are too many to explore. */
const BOUNDED = { explorer: 'preemption-bounded', preemptions: 1, allowIncomplete: true } as const
const ONE = '(at most one preemption)'
const NONE = '(no preemption)'

for (const [name, kind] of kinds.slice(0, 2)) {
  check(
    `${name}: a waiter is killed as it is woken, beside another waiter and a caller ${ONE}`,
    BOUNDED,
    killedFirst(kind),
  )
}

for (const [name, kind] of kinds) {
  check(
    `${name}: another comes as a death is recovered from ${ONE}`,
    BOUNDED,
    comesAfterDeath(kind, 'recovered'),
  )
  if ((kind & PI) !== 0)
    check(`${name}: another comes as its owner ends`, { rerun: false }, comesAfterDeath(kind, 'ended'))
}

for (const [name, kind] of kinds) {
  check(
    `${name}: the owner dies just as another comes ${NONE}`,
    { ...MORTAL, ...BOUNDED, preemptions: 0 },
    killed(kind, 'dies with it'),
  )
}
