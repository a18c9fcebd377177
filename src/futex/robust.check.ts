import { check } from '../checker/check.ts'
import { type Doing, killed } from './lockprograms.ts'
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

/** All steps of one who comes beside all of a recovery, which looks at everything: it stops after a minute, and says how far it came. */
const LONG = { ...MORTAL, time: 60_000 }

for (const [name, kind] of kinds) {
  check(`${name}: the owner dies just as another comes`, LONG, killed(kind, 'dies with it'))
}
