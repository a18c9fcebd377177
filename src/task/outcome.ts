import { assert } from '../arena/assert.ts'
import { Counters } from './counters.ts'
import { BOOTER, DISOWNED, ENDED, Job, PENDING } from './job.ts'
import type { KernelView } from './view.ts'

/**
 * Gives a job its outcome, once, and tells whoever waits for it. What belongs to it (`result`, `ended`) is stored already.
 * The job may be gone when this returns: whoever takes the result frees it.
 */
export function publishOutcome(view: KernelView, job: number, outcome: number): void {
  const { i32, completions, futexes } = view
  assert(Atomics.load(i32, job + Job.outcome) === PENDING, 'a job has one outcome')
  Atomics.sub(i32, view.plan.counters.start + Counters.active, 1)
  if ((Atomics.load(i32, job + Job.control) & BOOTER) !== 0) {
    Atomics.store(i32, job + Job.outcome, outcome)
    completions.push(job)
    return
  }
  // (A) of job.ts, before the outcome: a joiner that sees the outcome may free the record.
  const control = Atomics.or(i32, job + Job.control, ENDED)
  const word = view.joinWord(job)
  Atomics.store(i32, job + Job.outcome, outcome)
  if ((control & DISOWNED) !== 0) completions.push(job)
  else futexes.wake(word, Infinity)
}

/** Whoever holds the handle will not ask for the result: the booting thread sees to the job when it has ended. */
export function disownJob(view: KernelView, job: number): void {
  const control = Atomics.or(view.i32, job + Job.control, DISOWNED) // (B) of job.ts
  if ((control & ENDED) !== 0) view.completions.push(job)
}
