import { assert } from '../../src/arena/assert.ts'
import type { Program } from '../../src/checker/machine/program.ts'
import { Job } from '../../src/kernel/spawn/job.ts'
import { beginsJob, messageWaits } from '../../src/kernel/cpu/mailwords.ts'

type Begins = typeof beginsJob

/** A message for a job that a CPU begins at the same time: one side must handle it. */
export function messageAgainstBegin(begins: Begins = beginsJob): Program {
  const i32 = new Int32Array(new SharedArrayBuffer(4 * Job.words))
  return {
    threads: {
      booter: () => messageWaits(i32, 0) !== 0,
      cpu: () => begins(i32, 0, 3),
    },
    final({ results }) {
      assert(results.includes(true), 'the booting thread sends the message, or the CPU asks for it')
    },
  }
}

/** Broken: checks for messages before it records that the job has begun. */
export const beginsTooLate: Begins = (i32, job, cpu) => {
  const waits = Atomics.load(i32, job + Job.control) !== 0
  Atomics.store(i32, job + Job.cpu, cpu + 1)
  return waits
}
