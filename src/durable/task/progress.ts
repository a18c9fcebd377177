import { here } from '../../kernel/cpu/here.ts'
import { Job } from '../../kernel/spawn/job.ts'
import type { Question } from './questions.ts'

/** How often a run sends its progress, at most. */
const PROGRESS_MS = 200

let lastAt = -Infinity
let lastTask = -1

/**
 * Reports how far the run is: any value that JSON can write. `run.status()` and `heddle runs` show the last
 * one that was sent: at most one in 200 ms, and calls between are dropped. Cheap enough for a loop: most
 * calls only read the clock. Outside of a task the call does nothing.
 */
export function progress(value: unknown): void {
  const on = here.cpu
  if (on === null) return
  const now = performance.now()
  const run = on.currentRun()
  const task = on.view.i32[run.job + Job.number]
  if (task === lastTask && now - lastAt < PROGRESS_MS) return
  lastAt = now
  lastTask = task
  const question: Question = { call: 'progress', value: jsonOf(value) }
  on.mail.tell(task, question)
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'null'
  } catch (error) {
    throw new TypeError(
      `progress(value): JSON cannot write the value: ${(error as Error).message}; give a number from 0 to 1, { done, total }, or other plain data`,
      { cause: error },
    )
  }
}
