import { checkTime } from '../../coroutine/core/blocking.ts'
import { checkOptions, type Kinds } from '../../coroutine/core/knownoptions.ts'
import { requestKill } from '../join/cancel.ts'
import { spawnedJobs } from './counters.ts'
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

/** How many jobs a round of kills handles between two readings of the clock. */
const JOBS_PER_CLOCK = 256

/**
 * Kills every task of the kernel, in rounds: a million kills take seconds, and in between this thread
 * collects the tasks that have ended.
 */
export class KillRounds {
  private readonly view: KernelView
  /** The last job that this pass has handled; 0: none. */
  private last = 0
  private isPassing = false
  /** The number of spawns when the last pass began. */
  private passOf = NaN

  constructor(view: KernelView) {
    this.view = view
  }

  /**
   * Goes on for up to `ms` milliseconds. A new pass begins only when tasks were spawned since the last one
   * began: without them there is nothing to kill. True: the pass has ended.
   */
  round(ms: number, reason: unknown): boolean {
    const { i32, jobs } = this.view
    if (!this.isPassing) {
      // Read first: a task that is spawned from here on is killed in the next pass.
      const spawned = spawnedJobs(this.view)
      if (spawned === this.passOf) return true
      this.passOf = spawned
      this.isPassing = true
    }
    const until = performance.now() + ms
    for (let count = 1; ; count++) {
      this.last = jobs.after(i32, this.last)
      this.isPassing = this.last !== 0
      if (!this.isPassing) return true
      if (Atomics.load(i32, this.last + Job.outcome) === OUTCOME_PENDING)
        requestKill(this.view, this.last, KILL_CLOSED, reason)
      if (count % JOBS_PER_CLOCK === 0 && performance.now() >= until) return false
    }
  }
}
