import { conditions } from './pi-rows/conditions.ts'
import { inheriting } from './pi-rows/inheriting.ts'
import { locking } from './pi-rows/locking.ts'
import { mixing } from './pi-rows/mixing.ts'
import type { PiRow } from './pi-rows/row.ts'
import { timing } from './pi-rows/timing.ts'
import { trying } from './pi-rows/trying.ts'
import { unlocking } from './pi-rows/unlocking.ts'

/** The conformance table of PI locks: a file for each family of calls. */
export const piRows: PiRow[] = [
  ...locking,
  ...unlocking,
  ...trying,
  ...timing,
  ...mixing,
  ...inheriting,
  ...conditions,
]

export { robustRows } from './pi-rows/robust.ts'
export { piSignalRows } from './pi-rows/signals.ts'
