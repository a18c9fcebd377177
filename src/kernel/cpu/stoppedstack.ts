import { framesIn } from '../../coroutine/core/coroutine.ts'
import { savedLines } from '../../coroutine/core/uncaught.ts'
import { Job } from '../spawn/job.ts'
import type { CpuTask } from './cputask.ts'
import type { KernelCpu } from './kernelcpu.ts'

/**
 * The stack of a task of this CPU, by its number, as it was when the task stopped last: at a safepoint or in
 * a wait. Called between two slices, when no task runs.
 */
export function stackOfTask(on: KernelCpu, runs: readonly (CpuTask | undefined)[], number: number): string {
  const run = runs.find(one => one !== undefined && on.view.i32[one.job + Job.number] === number)
  if (run === undefined) return 'it has not begun, or it has ended'
  const name = on.code.functionOf(run.job)?.name ?? run.extras?.localName ?? '<anonymous>'
  if (run.extras?.promise) return `    at async ${name}`
  if (!run.hasCode) return `    at ${name}`
  const lines = savedLines(framesIn(run))
  return lines.length > 0
    ? lines.join('\n')
    : `    at ${name} (a generator keeps no line numbers while it waits)`
}
