/** A CPU dies at every step of every kernel operation. The broken variants are in recovery.test.ts. */
import { check } from '../../checker/check.ts'
import { deeds } from '../../../testing/sched/deathprograms.ts'
import { death, MORTAL_CPU } from '../../../testing/sched/death.ts'

/** A wakeup during a switch, beside all of a recovery, has too many orders. */
const BOUNDED = { explorer: 'preemption-bounded', preemptions: 0, allowIncomplete: true } as const

for (const [name, deed] of Object.entries(deeds)) {
  const isBounded = name.includes('against a wakeup')
  // Where another thread goes on beside the recovery the search takes a minute or two.
  check(
    `a CPU dies at any step: ${name}${isBounded ? ' (no preemption)' : ''}`,
    { crashes: MORTAL_CPU, steps: 50_000, rerun: false, ...(isBounded && BOUNDED) },
    death(deed),
  )
}
