import { exitTask } from '../sched/exit.ts'
import { Entity } from '../sched/entity.ts'
import { Task as TaskRecord } from '../sched/taskrecord.ts'
import { FINISHED } from '../sched/switch.ts'
import { DETACHED, Job, KILLED, RETURNED, THREW } from './job.ts'
import { publishOutcome } from './outcome.ts'
import type { TaskRun } from './taskrun.ts'
import type { KernelView } from './view.ts'

/** How a task came to its end. */
export interface Ending {
  readonly threw: boolean
  readonly value: unknown
  /** It was killed before its first line. */
  readonly isKill?: boolean
}

/** What `exit(value)` throws through a task: it ends as if it had returned the value. */
export class TaskExit {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }
}

/**
 * The end of a task, on the CPU that runs it: the result becomes a payload, the job gets its outcome, the kernel task ends.
 * Returns what resume says to the CPU's loop.
 *
 * In this order, so that a CPU which dies in the middle leaves something that recovery can tell apart:
 *   1. result stored      the job is PENDING, started on this CPU: lost
 *   2. job and task part  the same; the task is on this CPU, and has no job
 *   3. outcome            the job has ended, whether or not anyone has been told
 *   4. the task exits
 */
export function finishJob(
  view: KernelView,
  job: number,
  task: number,
  run: TaskRun | null,
  ending: Ending,
): number {
  const { i32, f64, s } = view
  const rare = run === null ? null : run.rare
  let outcome = KILLED
  if (!(ending.isKill || (ending.threw && rare?.isKilled && ending.value === rare.killedWith))) {
    outcome = storeResult(view, job, ending)
  }
  if (rare !== null && rare.children !== null) for (const child of rare.children) child.disown()
  const se = i32[task + TaskRecord.entity]
  const now = s.readClock()
  f64[(job + Job.ended) >> 1] = now
  f64[(job + Job.runTime) >> 1] = f64[(se + Entity.runTime) >> 1] + now - f64[(se + Entity.execStart) >> 1]
  view.partJob(task, job) // 2
  publishOutcome(view, job, outcome) // 3
  exitTask(s, task, outcome) // 4
  return FINISHED
}

/** Stores the payload of what it returned or threw; says which. */
function storeResult(view: KernelView, job: number, ending: Ending): number {
  const { codec, i32 } = view
  let { threw, value } = ending
  if (threw && value instanceof TaskExit) {
    threw = false
    value = value.value
  }
  if (!threw && (i32[job + Job.control] & DETACHED) !== 0) return RETURNED
  if (!threw && value === undefined) return RETURNED
  let pointer: number
  try {
    pointer = threw ? codec.encodeFailure(value) : codec.encode(value, 'result')
  } catch (error) {
    threw = true
    pointer = encodeFailure(view, error)
  }
  codec.put(job + Job.result, pointer)
  return threw ? THREW : RETURNED
}

/** A result that cannot travel makes the task fail with why; 0 where even that finds no room. */
function encodeFailure(view: KernelView, error: unknown): number {
  try {
    return view.codec.encodeFailure(error)
  } catch {
    return 0
  }
}
