import { POLICY_EJECTED, POLICY_UNLOADED } from '../../arena/rings/events.ts'
import { recordPolicy } from '../core/events.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { Entity } from '../core/entity.ts'
import { stateOf } from './ext.ts'
import {
  ACTIVE,
  DispatchQueue,
  DRAINING,
  EJECTED,
  entityStateNames,
  ExtRecord,
  LEAVING,
  NONE,
  ownState,
  QUEUE_UNUSED,
  REPORTING,
} from './extlayout.ts'
import { readText, writeText } from './exttext.ts'
import { taskName } from '../core/taskname.ts'
import { EXT_MAJOR_PRIORITY, FAIR_PRIORITY } from '../core/priority.ts'
import { RunQueue } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'
import { setPriorityFrom } from '../core/setpriority.ts'
import { stateNames, TaskRecord } from '../core/taskrecord.ts'

/**
 * The end of a policy: on request, or because it did what no policy may do. Its tasks move to the fair class;
 * none is lost, because each belongs to a run queue whatever the policy did with it.
 *
 *   ejecting thread                 another CPU                        draining CPU
 *   ---------------                 -----------                        ------------
 *   (A) ACTIVE -> REPORTING
 *                                   sees (A) before its next call:
 *                                   runs its pending tasks in turn
 *   writes the report
 *   (B) EJECTED; kicks every CPU                                       (C) EJECTED -> DRAINING: one of them
 *                                                                      each task to the fair class
 *                                                                      (D) LEAVING
 *                                   (E) calls `exit`, forgets it
 *   the last (E): NONE
 *
 * `takes` is cleared before (B). A thread that starts a task and saw `takes` set reads it again after the
 * task has joined the class: either (C) finds the task there, or that thread sees `takes` cleared and moves
 * it back.
 */
export type EjectReason =
  | 'unloaded'
  | 'threw'
  | 'dispatched twice'
  | 'forbidden CPU'
  | 'lost a task'
  | 'starved a task'
  | 'misused'

const reasons: readonly EjectReason[] = [
  'unloaded',
  'threw',
  'dispatched twice',
  'forbidden CPU',
  'lost a task',
  'starved a task',
  'misused',
]

export interface EjectReport {
  readonly reason: EjectReason
  readonly policy: string
  /** The task that caused it, or 0, and the CPU, or -1. */
  readonly task: number
  readonly cpu: number
  readonly message: string
  /** What every CPU, dispatch queue and task of the policy was doing. */
  readonly dump: string
}

/**
 * Ejects the policy, from any thread. False: another thread did, or no policy is loaded. Its tasks move as
 * soon as a CPU drains.
 */
export function eject(
  s: Scheduler,
  reason: EjectReason,
  message: string,
  task = 0,
  cpu: number = s.cpu,
): boolean {
  const { i32, ext } = s
  const { record } = ext
  const reporting = ownState(REPORTING, s.thread)
  if (Atomics.compareExchange(i32, record + ExtRecord.state, ACTIVE, reporting) !== ACTIVE) return false // (A)
  Atomics.store(i32, record + ExtRecord.takes, 0)
  i32[record + ExtRecord.reason] = reasons.indexOf(reason)
  i32[record + ExtRecord.task] = task
  i32[record + ExtRecord.cpu] = cpu
  const dump = reason === 'unloaded' ? '' : dumpExt(s)
  i32[record + ExtRecord.reportBytes] = writeText(s.arena, ext.plan.report, `${message}\n${dump}`)
  if (i32[s.recording] !== 0)
    recordPolicy(s, reason === 'unloaded' ? POLICY_UNLOADED : POLICY_EJECTED, reasons.indexOf(reason))
  Atomics.store(i32, record + ExtRecord.state, EJECTED) // (B)
  tellCpus(s)
  return true
}

/** What ended the last policy. */
export function ejectReport(s: Scheduler): EjectReport {
  const { i32, ext } = s
  const text = readText(s.arena, ext.plan.report, i32[ext.record + ExtRecord.reportBytes])
  const end = text.indexOf('\n')
  return {
    reason: reasons[i32[ext.record + ExtRecord.reason]],
    policy: policyName(s),
    task: i32[ext.record + ExtRecord.task],
    cpu: i32[ext.record + ExtRecord.cpu],
    message: end < 0 ? text : text.slice(0, end),
    dump: end < 0 ? '' : text.slice(end + 1),
  }
}

/** The name of the policy that is loaded, or was last. */
function policyName(s: Scheduler): string {
  return readText(s.arena, s.ext.plan.name, s.i32[s.ext.record + ExtRecord.nameBytes])
}

/**
 * Moves the tasks of an ejected policy to the fair class, unless another thread does. From any thread,
 * holding no lock.
 */
export function drainEjected(s: Scheduler): boolean {
  const { i32, ext, entities } = s
  const at = ext.record + ExtRecord.state
  if (Atomics.compareExchange(i32, at, EJECTED, ownState(DRAINING, s.thread)) !== EJECTED) return false // (C)
  const guest = s.cpu < 0
  // A thread that is no CPU must take part in RCU while it reads tasks that may end.
  if (guest) s.rcu.idleExit(s.thread)
  for (let se = entities.after(i32, 0); se !== 0; se = entities.after(i32, se)) {
    if (entities.isPublished(i32, se))
      setPriorityFrom(s, i32[se + Entity.task], EXT_MAJOR_PRIORITY, FAIR_PRIORITY)
  }
  if (guest) s.rcu.idleEnter(s.thread)
  for (let number = 1; number < ext.plan.queueCount; number++) {
    const queue = ext.queueAt(number)
    acquire(s.thread, queue + DispatchQueue.lock)
    Atomics.store(i32, queue + DispatchQueue.order, QUEUE_UNUSED)
    release(s.thread, queue + DispatchQueue.lock)
  }
  Atomics.store(i32, at, LEAVING) // (D)
  endIfLast(s)
  tellCpus(s)
  return true
}

/** No CPU has the policy any more: another can be loaded. */
export function endIfLast(s: Scheduler): void {
  const { i32, ext } = s
  const enabled = ext.record + ExtRecord.enabled
  if ((Atomics.load(i32, enabled) | Atomics.load(i32, enabled + 1)) !== 0) return
  const at = ext.record + ExtRecord.state
  if (Atomics.compareExchange(i32, at, LEAVING, NONE) === LEAVING) Atomics.notify(i32, at)
}

/** Makes every CPU enter its scheduling loop, where it sees the change. */
export function tellCpus(s: Scheduler): void {
  for (let cpu = 0; cpu < s.cpus; cpu++) s.resched(cpu)
}

/**
 * The whole state of the ext class, as text. Takes no lock, so it may be called anywhere; the parts may be of
 * different moments.
 */
export function dumpExt(s: Scheduler): string {
  const { i32, ext, entities } = s
  const lines: string[] = []
  for (let cpu = 0; cpu < s.cpus; cpu++) {
    const queue = s.queueOf(cpu)
    const current = i32[queue + RunQueue.current]
    const runs = current === i32[queue + RunQueue.idle] ? 'idle' : named(s, i32[current + Entity.task])
    const online = i32[queue + RunQueue.online] === 0 ? ', offline' : ''
    lines.push(`cpu ${cpu}: ${runs}, ${i32[queue + RunQueue.taskCount]} queued${online}`)
  }
  for (let number = 0; number < ext.plan.queueCount; number++) {
    const queue = ext.queueAt(number)
    const count = Atomics.load(i32, queue + DispatchQueue.count)
    if (count !== 0) lines.push(`${number === 0 ? 'global queue' : `queue ${number}`}: ${count} tasks`)
  }
  for (let se = entities.after(i32, 0); se !== 0; se = entities.after(i32, se)) {
    if (i32[se + Entity.priority] >> 2 === EXT_MAJOR_PRIORITY) lines.push(describe(s, se))
  }
  return lines.join('\n')
}

function describe(s: Scheduler, se: number): string {
  const { i32, f64 } = s
  const task = i32[se + Entity.task]
  const state = stateNames[Atomics.load(i32, task + TaskRecord.state)]
  const place = entityStateNames[stateOf(s, se)]
  const queue = i32[se + Entity.extQueue]
  const where = queue === 0 ? place : `${place} on queue ${i32[queue + DispatchQueue.number]}`
  const waits =
    i32[se + Entity.onRq] === 0
      ? ''
      : `, waits since ${(s.clock - f64[(se + Entity.execStart) >> 1]).toFixed(3)} ms`
  return `${named(s, task)}: ${state}, ${where}, cpu ${i32[se + Entity.cpu]}, ${i32[se + Entity.turns]} turns${waits}`
}

export function named(s: Scheduler, task: number): string {
  return `'${taskName(s, task)}' (${task})`
}

/** What a policy threw, for a report. */
export function describeError(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}
