import { taskAccount } from '../sched/account.ts'
import { setAffinity } from '../sched/affinity.ts'
import { cpusOf, maskOf } from '../sched/cpumask.ts'
import { Entity } from '../sched/entity.ts'
import { setNice, setPriority } from '../sched/setpriority.ts'
import { schedulerContinue, schedulerStop } from '../sched/stop.ts'
import { isSleeping, Task as TaskRecord } from '../sched/taskrecord.ts'
import { requestKill } from './cancel.ts'
import { EVICTED, Job, KILL_CALLED, KILLED, LOST, NOT_KILLED, PENDING, RETURNED } from './job.ts'
import {
  checkAffinity,
  checkNice,
  priorityName,
  priorityOf,
  type SpawnOptions,
  type TaskPriority,
} from './options.ts'
import type { KernelView } from './view.ts'

/** What a task is doing, or what became of it. */
export type TaskState =
  | 'queued'
  | 'running'
  | 'sleeping'
  | 'stopped'
  | 'returned'
  | 'threw'
  | 'killed'
  | 'evicted'
  | 'lost'

export interface TaskStatus {
  readonly id: number
  readonly name: string
  readonly state: TaskState
  /** The CPU that it is on, or was on last; null: it has not started. */
  readonly cpu: number | null
  readonly priority: TaskPriority
  readonly nice: number
  readonly affinity: readonly number[]
  /** It was killed, whether or not it has ended by that. */
  readonly killed: boolean
  /** How often it was started: more than once only where it is restartable. */
  readonly starts: number
  /** Milliseconds since boot; null: not yet. */
  readonly started: number | null
  readonly ended: number | null
  /** Milliseconds on a CPU, and runnable without one. */
  readonly runTime: number
  readonly waitTime: number
  readonly switches: number
  readonly preemptions: number
}

export type TaskEvent = 'stop' | 'resume' | 'kill' | 'restart' | 'end'

/** What can be done to a task from anywhere: its handle, wherever that is held. */
export abstract class TaskHandle {
  readonly name: string
  readonly id: number
  /** @internal */
  readonly view: KernelView
  /** @internal Its job; 0 once the result has been taken. */
  job: number
  /** @internal What was known of it when its result was taken. */
  last: EndedJob | null = null
  /** @internal */
  readonly options: SpawnOptions
  private listeners: Map<TaskEvent, Set<() => void>> | null = null

  /** @internal */
  constructor(view: KernelView, job: number, name: string, options: SpawnOptions) {
    this.view = view
    this.options = options
    this.job = job
    this.name = name
    this.id = view.i32[job + Job.number]
  }

  /**
   * Asks the task to end: `reason` is thrown into it at its next wait or safepoint, as the cause of a TaskKilledError.
   * False: it has ended already, or was killed before.
   */
  kill(reason?: unknown): boolean {
    return this.killAs(KILL_CALLED, reason)
  }

  /** @internal */
  killAs(kind: number, reason: unknown): boolean {
    if (this.job === 0 || !requestKill(this.view, this.job, kind, reason)) return false
    this.killed(reason)
    this.emit('kill')
    return true
  }

  /** @internal */
  protected killed(_reason: unknown): void {}

  /** Takes it off its CPU until `resume`, at its next safepoint at the latest. False: it is stopped, or has ended. */
  stop(): boolean {
    const { s } = this.view
    let stopped = false
    if (this.job !== 0) {
      this.view.withTask(this.job, task => {
        stopped = schedulerStop(s, task)
      })
    }
    if (stopped) this.emit('stop')
    return stopped
  }

  /** Lets a stopped task go on. False: it is not stopped. */
  resume(): boolean {
    const { s } = this.view
    let resumed = false
    if (this.job !== 0) {
      this.view.withTask(this.job, task => {
        resumed = schedulerContinue(s, task)
      })
    }
    if (resumed) this.emit('resume')
    return resumed
  }

  /** False: it has ended. */
  setPriority(priority: TaskPriority): boolean {
    const level = priorityOf(priority)
    return this.job !== 0 && this.view.withTask(this.job, task => setPriority(this.view.s, task, level))
  }

  setNice(nice: number): boolean {
    checkNice(nice)
    return this.job !== 0 && this.view.withTask(this.job, task => setNice(this.view.s, task, nice))
  }

  /** The CPUs that it may start on. One that has started stays where it is. False: it has started, or ended. */
  setAffinity(cpus: readonly number[]): boolean {
    const { view } = this
    checkAffinity(cpus, view.plan.sizes.cpus)
    const [low, high] = maskOf(cpus)
    let changed = false
    if (this.job === 0) return false
    view.withTask(this.job, task => {
      if (Atomics.load(view.i32, this.job + Job.cpu) !== 0) return
      view.i32[this.job + Job.affinity] = low
      view.i32[this.job + Job.affinity + 1] = high
      // Off its queue and on again: a queue is chosen by the new mask.
      const queued = schedulerStop(view.s, task)
      setAffinity(view.s, task, low, high)
      if (queued) schedulerContinue(view.s, task)
      changed = true
    })
    return changed
  }

  /** What it is doing right now. */
  get status(): TaskStatus {
    const { last } = this
    return last === null ? this.readStatus() : this.statusOf(last)
  }

  /** Calls `listener` whenever that happens to the task; what is returned ends it. */
  on(event: TaskEvent, listener: () => void): () => void {
    this.listeners ??= new Map()
    const heard = this.listeners.get(event) ?? new Set()
    heard.add(listener)
    this.listeners.set(event, heard)
    return () => heard.delete(listener)
  }

  /** @internal */
  emit(event: TaskEvent): void {
    const heard = this.listeners?.get(event)
    if (heard !== undefined) for (const listener of heard) listener()
  }

  /** @internal Before the record is freed. */
  keepStatus(): void {
    const { i32, f64 } = this.view
    const { job } = this
    this.last = {
      outcome: i32[job + Job.outcome],
      cpu: i32[job + Job.cpu],
      starts: i32[job + Job.starts],
      killKind: i32[job + Job.killKind],
      began: f64[(job + Job.began) >> 1],
      ended: f64[(job + Job.ended) >> 1],
      runTime: f64[(job + Job.runTime) >> 1],
    }
    this.job = 0
  }

  private readStatus(): TaskStatus {
    const { i32, f64, plan } = this.view
    const { job } = this
    const outcome = Atomics.load(i32, job + Job.outcome)
    let state: TaskState = outcome === PENDING ? 'queued' : outcomeName(outcome)
    let priority = priorityOf(this.options.priority ?? 'normal')
    let nice = 0
    let waitTime = 0
    let runTime = f64[(job + Job.runTime) >> 1]
    let switches = 0
    let preemptions = 0
    this.view.withTask(job, task => {
      const se = i32[task + TaskRecord.entity]
      const account = taskAccount(i32, se)
      ;({ runTime, waitTime, switches, preemptions } = account)
      priority = i32[se + Entity.basePriority]
      nice = i32[se + Entity.nice]
      if (outcome !== PENDING) return
      const isOnCpu = Atomics.load(i32, se + Entity.onCpu) !== 0
      // One that was told to stop runs on until its next safepoint.
      if (i32[task + TaskRecord.stopped] !== 0 && !isOnCpu) state = 'stopped'
      else if (i32[se + Entity.woken] !== 0 && isSleeping(Atomics.load(i32, task + TaskRecord.state)))
        state = 'sleeping'
      else if (isOnCpu) state = 'running'
    })
    const cpu = Atomics.load(i32, job + Job.cpu)
    const starts = i32[job + Job.starts]
    return {
      id: this.id,
      name: this.name,
      state,
      cpu: cpu === 0 ? null : cpu - 1,
      priority: priorityName(priority),
      nice,
      affinity: cpusOf(i32[job + Job.affinity], i32[job + Job.affinity + 1]).filter(
        at => at < plan.sizes.cpus,
      ),
      killed: Atomics.load(i32, job + Job.killKind) !== NOT_KILLED,
      starts,
      started: starts === 0 ? null : f64[(job + Job.began) >> 1],
      ended: outcome === PENDING ? null : f64[(job + Job.ended) >> 1],
      runTime,
      waitTime,
      switches,
      preemptions,
    }
  }

  private statusOf(last: EndedJob): TaskStatus {
    const { priority = 'normal', nice = 0, affinity } = this.options
    return {
      id: this.id,
      name: this.name,
      state: outcomeName(last.outcome),
      cpu: last.cpu === 0 ? null : last.cpu - 1,
      priority,
      nice,
      affinity: affinity ?? Array.from({ length: this.view.plan.sizes.cpus }, (_, cpu) => cpu),
      killed: last.killKind !== NOT_KILLED,
      starts: last.starts,
      started: last.starts === 0 ? null : last.began,
      ended: last.ended,
      runTime: last.runTime,
      waitTime: 0,
      switches: 0,
      preemptions: 0,
    }
  }
}

/** What is left of a job when its record is freed. */
export interface EndedJob {
  readonly outcome: number
  readonly cpu: number
  readonly starts: number
  readonly killKind: number
  readonly began: number
  readonly ended: number
  readonly runTime: number
}

export function outcomeName(outcome: number): TaskState {
  switch (outcome) {
    case RETURNED:
      return 'returned'
    case KILLED:
      return 'killed'
    case EVICTED:
      return 'evicted'
    case LOST:
      return 'lost'
    default:
      return 'threw'
  }
}
