import { Job, JOB_HAS_MAIL } from '../spawn/job.ts'

/**
 * The words through which messages find a task that may not have begun: the race is in mail.ts.
 */

/**
 * On the booting thread: a message for the job waits there. Returns the CPU that has begun the job, plus 1;
 * 0: not begun, and its CPU will ask.
 */
export function messageWaits(i32: Int32Array, job: number): number {
  Atomics.or(i32, job + Job.control, JOB_HAS_MAIL) // (A)
  return Atomics.load(i32, job + Job.cpu) // (B)
}

/** On a CPU: it begins the job. Returns whether messages wait for the job. */
export function beginsJob(i32: Int32Array, job: number, cpu: number): boolean {
  Atomics.store(i32, job + Job.cpu, cpu + 1) // (C)
  return (Atomics.load(i32, job + Job.control) & JOB_HAS_MAIL) !== 0 // (D)
}
