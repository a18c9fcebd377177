import { assert } from '../../arena/assert.ts'
import { countEnded } from '../boot/counters.ts'
import {
  JOB_BOOTER,
  JOB_BY_ENDER,
  JOB_BY_OWNER,
  JOB_DISOWNED,
  JOB_ENDED,
  Job,
  OUTCOME_PENDING,
} from '../spawn/job.ts'
import type { KernelView } from '../boot/view.ts'

/**
 * Gives a job its outcome, once, and wakes its joiners. `result` and `ended` are stored already. The job may
 * be freed when this returns: a joiner that takes the result frees it. `now`: see Completions.push.
 */
export function publishOutcome(view: KernelView, job: number, outcome: number, now?: number): void {
  const { i32, completions, futexes } = view
  assert(Atomics.load(i32, job + Job.outcome) === OUTCOME_PENDING, 'a job gets one outcome')
  if ((Atomics.load(i32, job + Job.control) & JOB_BOOTER) !== 0) {
    countEnded(view, job)
    Atomics.store(i32, job + Job.outcome, outcome)
    completions.push(job, now)
    return
  }
  // (A) of job.ts, before the outcome: a joiner that sees the outcome may free the record.
  const control = mark(i32, job, JOB_ENDED, JOB_DISOWNED, JOB_BY_ENDER)
  const word = view.joinWord(job)
  // If nobody holds the handle, the booting thread counts the job when it has handled it: until then the
  // kernel is active.
  if ((control & JOB_BY_ENDER) === 0) countEnded(view, job)
  Atomics.store(i32, job + Job.outcome, outcome)
  // Also without a joiner: the task that keeps its limits waits here (childtask.ts). Before the push, after
  // which the booting thread may free the job.
  futexes.wake(word, Infinity)
  if ((control & JOB_BY_ENDER) !== 0) completions.push(job)
}

/**
 * The holder of the handle will not take the result: the booting thread handles the job when it has ended.
 */
export function disownJob(view: KernelView, job: number): void {
  const control = mark(view.i32, job, JOB_DISOWNED, JOB_ENDED, JOB_BY_OWNER) // (B) of job.ts
  if ((control & JOB_BY_OWNER) !== 0) view.completions.push(job)
}

/** Sets a bit, and with it `by` if the other bit is set already. Returns the new `control`. Idempotent. */
function mark(i32: Int32Array, job: number, bit: number, other: number, by: number): number {
  const at = job + Job.control
  for (;;) {
    const seen = Atomics.load(i32, at)
    if ((seen & bit) !== 0) return seen
    const marked = seen | bit | ((seen & other) !== 0 ? by : 0)
    if (Atomics.compareExchange(i32, at, seen, marked) === seen) return marked
  }
}
