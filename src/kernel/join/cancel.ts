import { timeoutError } from '../../coroutine/core/blocking.ts'
import { Entity } from '../../sched/core/entity.ts'
import { killTask } from '../../sched/core/sleep.ts'
import { schedulerContinue } from '../../sched/core/stop.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import { describe, TaskKilledError } from './errors.ts'
import { Job, KILL_ABORTED, KILL_CLOSED, KILL_TIMED_OUT, NOT_KILLED, OUTCOME_PENDING } from '../spawn/job.ts'
import type { KernelView } from '../boot/view.ts'

/**
 * Killing a job. The first kill counts. The killer stores the reason, then notifies the task:
 *
 *   killer                                      the task's CPU
 *   ------                                      --------------
 *   (A) killKind: NOT_KILLED -> its thread id
 *   (B) stores reason, then the kind            (D) begins the task: killKind is set: it ends unstarted
 *   (C) pending |= KILL; wakes it if it         (E) the task is resumed, at a safepoint, or about to wait:
 *       sleeps; reschedules its CPU                 pending has KILL: throws, once
 *
 * A task that began between (B) and (C) handles the kill at (E). A stopped task is continued, so that it can
 * end.
 */

/** Kills a job, from any thread. False: it has ended, or was killed before. */
export function requestKill(view: KernelView, job: number, kind: number, reason: unknown): boolean {
  const { i32, s } = view
  if (Atomics.load(i32, job + Job.outcome) !== OUTCOME_PENDING) return false
  const begun = -view.thread.ownerTag
  if (Atomics.compareExchange(i32, job + Job.killKind, NOT_KILLED, begun) !== NOT_KILLED) return false // (A)
  view.codec.put(job + Job.reason, encodeReason(view, reason))
  Atomics.store(i32, job + Job.killKind, kind) // (B)
  view.killed.add(view.jobs.indexOf(job)) // its grace period begins
  view.withTask(job, task => {
    killTask(s, task) // (C)
    schedulerContinue(s, task)
    s.resched(Atomics.load(i32, i32[task + TaskRecord.entity] + Entity.cpu))
  })
  return true
}

/**
 * Kills a job that no CPU can start yet, so that its function never runs: a spawn whose signal was aborted
 * before. Only the thread that makes the job calls it.
 */
export function killUnstarted(view: KernelView, job: number, kind: number, reason: unknown): void {
  view.codec.put(job + Job.reason, encodeReason(view, reason))
  view.i32[job + Job.killKind] = kind
}

/** A reason that cannot travel is replaced by a description. */
function encodeReason(view: KernelView, reason: unknown): number {
  if (reason === undefined) return 0
  try {
    return view.codec.encode(reason, 'reason')
  } catch {
    try {
      return view.codec.encode(describe(reason), 'reason')
    } catch {
      return 0
    }
  }
}

/** The error that is thrown into a killed task, and that its joiner gets, unless it has the reason itself. */
export function killError(
  view: KernelView,
  job: number,
  name: string,
  how: TaskKilledError['how'],
  original?: unknown,
): unknown {
  const { i32, codec } = view
  const kind = Atomics.load(i32, job + Job.killKind)
  const pointer = i32[job + Job.reason]
  const reason = original ?? (pointer === 0 ? undefined : codec.decode(pointer))
  if (how === 'evicted')
    return new TaskKilledError(name, how, reason, 'was killed, did not end within the grace period')
  switch (kind) {
    case KILL_ABORTED:
      return reason ?? new DOMException(`task ${name} was aborted`, 'AbortError')
    case KILL_TIMED_OUT:
      return timeoutError(`task ${name}`, Number(reason))
    case KILL_CLOSED:
      return closedError(name, how, reason)
    default:
      return new TaskKilledError(name, how, reason)
  }
}

/**
 * A closing kernel kills all its tasks at once, and a stack costs more than all the rest of a kill. It would
 * show the loop of the CPU, in all of them.
 */
export function closedError(name: string, how: TaskKilledError['how'], reason: unknown): TaskKilledError {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 0
  try {
    return new TaskKilledError(name, how, reason, 'was killed because its kernel closed')
  } finally {
    Error.stackTraceLimit = limit
  }
}
