import { check } from '../../checker/check.ts'
import { type MutexKind, PI, ROBUST, ROBUST_PI } from '../../futex/robust/mutex.ts'
import { notifyAtWord } from '../../../testing/sync/notifyatword.ts'

const kinds: Readonly<Record<string, MutexKind>> = {
  robust: ROBUST,
  inherit: PI,
  'robust and inherit': ROBUST_PI,
}
/** Those with a third to choose from take hours to their end: their names say how much of them is run. */
const SOME = '(500 random schedules)'
const sampled = { explorer: 'pct', depth: 4, runs: 500, allowIncomplete: true } as const

for (const [name, kind] of Object.entries(kinds)) {
  for (const holds of [true, false]) {
    const notifier = holds ? 'its holder' : 'a thread that does not hold it'
    check(`${name}: ${notifier} notifies one`, notifyAtWord({ kind, waiters: 1, holds }))
    check(
      `${name}: ${notifier} notifies one whose time is over ${SOME}`,
      sampled,
      notifyAtWord({ kind, waiters: 1, late: true, holds }),
    )
    check(`${name}: ${notifier} notifies two ${SOME}`, sampled, notifyAtWord({ kind, waiters: 2, holds }))
    check(
      `${name}: ${notifier} notifies two, and the time of one is over ${SOME}`,
      sampled,
      notifyAtWord({ kind, waiters: 2, late: true, holds }),
    )
  }
}
