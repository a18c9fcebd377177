import { check } from '../checker/check.ts'
import { comesAfterDeath, type Doing, killed } from './lockprograms.ts'
import { type MutexKind, PI, PLAIN, ROBUST, ROBUST_PI } from './mutex.ts'

const kinds: [name: string, kind: MutexKind][] = [
  ['plain', PLAIN],
  ['robust', ROBUST],
  ['pi', PI],
  ['robust pi', ROBUST_PI],
]
const doings: Doing[] = ['takes and lets go', 'holds two', 'waits', 'lets go']

/** The first thread of each program may die, at any of its steps: of the lock, of the list, of the kernel's own. */
const MORTAL = { crashes: { max: 1, threads: [0] } }

for (const [name, kind] of kinds) {
  for (const doing of doings) {
    check(`${name}: the owner dies at any step while it ${doing}`, MORTAL, killed(kind, doing))
  }
}

/** One who waits for an owner that is ending looks again and again: the orders of that beside all of a recovery are too many to explore. */
const LOOKS_AGAIN = { explorer: 'preemption-bounded', preemptions: 2, allowIncomplete: true } as const

for (const [name, kind] of kinds) {
  const pi = (kind & PI) !== 0
  const options = pi ? LOOKS_AGAIN : {}
  check(`${name}: another comes as a death is recovered from`, options, comesAfterDeath(kind, 'recovered'))
  if (pi) check(`${name}: another comes as its owner ends`, {}, comesAfterDeath(kind, 'ended'))
}

/** Three at once, the owner on its way out, the one who comes, and the recovery: those orders that have one preemption. */
const BOUNDED = { ...MORTAL, explorer: 'preemption-bounded', preemptions: 1, allowIncomplete: true } as const

for (const [name, kind] of kinds) {
  check(`${name}: the owner dies just as another comes`, BOUNDED, killed(kind, 'dies with it'))
}
