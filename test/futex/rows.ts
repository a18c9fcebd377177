import { bitsets } from './rows/bitsets.ts'
import { mixed } from './rows/mixed.ts'
import { requeueing } from './rows/requeueing.ts'
import type { Row } from './rows/row.ts'
import { spaces } from './rows/spaces.ts'
import { vectors } from './rows/vectors.ts'
import { waiting } from './rows/waiting.ts'
import { wakeOps } from './rows/wakeops.ts'
import { waking } from './rows/waking.ts'

/** The conformance table: a file for each family of calls. */
export const rows: Row[] = [
  ...waiting,
  ...waking,
  ...bitsets,
  ...requeueing,
  ...wakeOps,
  ...vectors,
  ...spaces,
  ...mixed,
]

export { signalRows } from './rows/signals.ts'
