import { mendStack } from '../../coroutine/core/uncaught.ts'
import { exitTask } from '../../sched/core/exit.ts'
import { Entity } from '../../sched/core/entity.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import { RunQueue } from '../../sched/core/runqueue.ts'
import { SWITCH_EXITS } from '../../sched/core/switch.ts'
import type { CpuMail } from '../cpu/cpumail.ts'
import {
  JOB_BOOTER,
  JOB_DETACHED,
  Job,
  OUTCOME_KILLED,
  JOB_POSTED,
  JOB_RESULT_MAILED,
  OUTCOME_RETURNED,
  OUTCOME_SUSPENDED,
  OUTCOME_THREW,
} from '../spawn/job.ts'
import { movesByMessage, onlyBuffers, TransferredResult } from './transferred.ts'
import { publishOutcome } from './outcome.ts'
import type { CpuTask } from '../cpu/cputask.ts'
import type { KernelView } from '../boot/view.ts'

/** How a task ended. */
export interface Ending {
  readonly threw: boolean
  readonly value: unknown
  /** It was killed before its first line. */
  readonly isKill?: boolean
  /** Its state leaves the kernel: the payload of the image. A state without room is refused before. */
  readonly suspendedAs?: number
}

/** `exit(value)` throws this through a task, which ends as if it had returned the value. */
export class TaskExit {
  // oxlint-disable-next-line no-unused-private-class-members -- `is` tests for it
  readonly #isExit = true
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }

  /** Whether this was thrown. It reads nothing of the value, which may be a proxy that throws. */
  static is(thrown: unknown): thrown is TaskExit {
    return typeof thrown === 'object' && thrown !== null && #isExit in thrown
  }
}

/**
 * Ends a task, on its CPU: the result becomes a payload, the job gets its outcome, the scheduler's task ends.
 * Returns the value that resume passes to the CPU's loop.
 *
 * In this order, so that recovery can distinguish the states that a dying CPU leaves:
 *   1. result stored           the job is PENDING, started on this CPU: lost
 *   2. job and task separate   the same; the task is on this CPU, and has no job
 *   3. outcome                 the job has ended, whether or not its joiner was notified
 *   4. the task exits
 */
export function finishJob(
  view: KernelView,
  job: number,
  task: number,
  run: CpuTask | null,
  ending: Ending,
  mail: CpuMail,
): number {
  const { i32, f64, s } = view
  const rare = run === null ? null : run.extras
  let outcome = OUTCOME_KILLED
  if (!(ending.isKill || (ending.threw && rare?.isKilled && ending.value === rare.killedWith))) {
    outcome = storeResult(view, job, ending, mail)
  }
  if (rare !== null && rare.children !== null) for (const child of rare.children) child.disown()
  const se = i32[task + TaskRecord.entity]
  const now = s.readClock()
  f64[(job + Job.ended) >> 1] = now
  f64[(job + Job.runTime) >> 1] = f64[(se + Entity.runTime) >> 1] + now - f64[(se + Entity.execStart) >> 1]
  view.separateJob(task, job) // 2
  if ((i32[job + Job.control] & JOB_POSTED) !== 0) mail.send({ kind: 'end', task: i32[job + Job.number] })
  publishOutcome(view, job, outcome, hasMore(view) ? now : Infinity) // 3
  exitTask(s, task, outcome) // 4
  return SWITCH_EXITS
}

/** Whether this CPU has other tasks to run: plain reads, of hints. */
function hasMore({ i32, s }: KernelView): boolean {
  return i32[s.queue + RunQueue.taskCount] !== 0 || s.arrivals.has(s.cpu)
}

/** Stores the payload of its result or error. Returns the kind of outcome. */
function storeResult(view: KernelView, job: number, ending: Ending, mail: CpuMail): number {
  const { codec, i32 } = view
  let { threw, value } = ending
  if (ending.suspendedAs !== undefined) {
    codec.put(job + Job.result, ending.suspendedAs)
    return OUTCOME_SUSPENDED
  }
  if (threw && TaskExit.is(value)) {
    threw = false
    value = value.value
  }
  if (!threw && (i32[job + Job.control] & JOB_DETACHED) !== 0) return OUTCOME_RETURNED
  if (!threw && value === undefined) return OUTCOME_RETURNED
  // The payload of `undefined` is 0, as that of an error for which there was no room.
  if (threw && value === undefined) value = new Error('the task threw undefined; throw an Error')
  if (threw) mendStack(value)
  let pointer: number
  try {
    pointer = threw ? codec.encodeFailure(value) : resultWord(view, job, value, mail)
  } catch (error) {
    threw = true
    pointer = encodeFailure(view, error)
  }
  codec.put(job + Job.result, pointer)
  return threw ? OUTCOME_THREW : OUTCOME_RETURNED
}

/** The payload of a task's result; 0 if it is sent as a message. */
function resultWord(view: KernelView, job: number, value: unknown, mail: CpuMail): number {
  const { codec, i32 } = view
  if (!(value instanceof TransferredResult)) return codec.encode(value, 'result')
  const { transfer } = value
  const isForBooter = (i32[job + Job.control] & JOB_BOOTER) !== 0
  // A message moves a buffer to a known thread, and the booting thread is one.
  const isArenas =
    onlyBuffers(transfer) && !(isForBooter && mail.movesBuffers && movesByMessage([value.value], transfer))
  if (isArenas) return codec.encode(value.value, 'result', transfer)
  if (!isForBooter) {
    throw new TypeError(
      'move(value, transfer): another task spawned this one, and only ArrayBuffers can be moved to it; list only ArrayBuffers',
    )
  }
  mail.send({ kind: 'result', task: i32[job + Job.number], value: value.value }, transfer)
  Atomics.or(i32, job + Job.control, JOB_RESULT_MAILED)
  return 0
}

/** The error of a result that cannot travel; 0 if the arena has no room for it. */
function encodeFailure(view: KernelView, error: unknown): number {
  try {
    return view.codec.encodeFailure(error)
  } catch {
    return 0
  }
}
