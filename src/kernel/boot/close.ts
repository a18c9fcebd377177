import { checkTime } from '../../coroutine/core/blocking.ts'
import { checkOptions, type Kinds } from '../../coroutine/core/knownoptions.ts'
import { requestKill } from '../join/cancel.ts'
import { Job, KILL_CLOSED, OUTCOME_PENDING } from '../spawn/job.ts'
import type { KernelView } from './view.ts'

export interface CloseOptions {
  /** Wait until all tasks have ended. The default. */
  readonly drain?: boolean
  /** Kill the tasks; a value other than `true` is the reason. */
  readonly abort?: unknown
  /** Milliseconds to drain; then the remaining tasks are killed. Without it there is no limit. */
  readonly deadline?: number
}

export interface CloseSettings {
  readonly aborts: boolean
  readonly reason: unknown
  readonly deadline: number
}

const closeOptions: Kinds<CloseOptions> = { drain: 'boolean', abort: 'checked', deadline: 'checked' }

export function closeSettings(options: CloseOptions): CloseSettings {
  checkOptions('close(options)', options, closeOptions)
  const { drain, abort, deadline = Infinity } = options
  checkTime('deadline', deadline)
  const aborts = abort !== undefined && abort !== false
  if (aborts && drain === true) {
    throw new TypeError(
      'close({ drain, abort }): draining and killing exclude each other; give one of the two',
    )
  }
  return {
    aborts: aborts || drain === false,
    reason: abort === true || !aborts ? undefined : abort,
    deadline,
  }
}

/** Kills every task of the kernel. Returns their number. */
export function killAll(view: KernelView, reason: unknown): number {
  const { i32, jobs } = view
  let killed = 0
  for (let job = jobs.after(i32, 0); job !== 0; job = jobs.after(i32, job)) {
    if (Atomics.load(i32, job + Job.outcome) !== OUTCOME_PENDING) continue
    if (requestKill(view, job, KILL_CLOSED, reason)) killed++
  }
  return killed
}
