/** A CPU dies at every step of every kernel operation. The broken variants are in recovery.test.ts. */
import { check } from '../checker/check.ts'
import { death, deeds, MORTAL_CPU } from './deathprograms.ts'

for (const [name, deed] of Object.entries(deeds)) {
  // Where another thread goes on beside the recovery the search takes a minute or two.
  check(
    `a CPU dies at any step: ${name}`,
    { crashes: MORTAL_CPU, steps: 50_000, rerun: !deed.beside },
    death(deed),
  )
}
