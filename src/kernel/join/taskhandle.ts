import { type Known, refuseUnknown } from '../../coroutine/core/knownoptions.ts'
import { printsAs } from '../../coroutine/core/printed.ts'
import { staysHere } from '../../payload/staying.ts'
import { taskAccount } from '../../sched/core/account.ts'
import { setAffinity } from '../../sched/balance/affinity.ts'
import { askToMove } from '../../sched/balance/move.ts'
import { cpusOf, maskHas, maskOf } from '../../sched/core/cpumask.ts'
import { Entity } from '../../sched/core/entity.ts'
import { setNice, setPriority } from '../../sched/core/setpriority.ts'
import { schedulerContinue, schedulerStop } from '../../sched/core/stop.ts'
import { isSleeping, TaskRecord } from '../../sched/core/taskrecord.ts'
import { checkTime } from '../../coroutine/core/blocking.ts'
import { openRequest } from '../cpu/asking.ts'
import { requestKill } from './cancel.ts'
import {
  OUTCOME_EVICTED,
  Job,
  JOB_ARGS_MAILED,
  JOB_CHECKPOINT_WAITS,
  JOB_MOVABLE,
  JobImages,
  KILL_CALLED,
  OUTCOME_KILLED,
  OUTCOME_LOST,
  niceOfRank,
  NOT_KILLED,
  OUTCOME_PENDING,
  priorityOfRank,
  OUTCOME_RETURNED,
  OUTCOME_SUSPENDED,
} from '../spawn/job.ts'
import { checkAffinity, checkNice, priorityName, priorityOf, type TaskPriority } from '../boot/options.ts'
import { callListener, checkListener } from '../boot/kernelevents.ts'
import type { KernelView } from '../boot/view.ts'

/** The present state of a task, or how it ended. */
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
  | 'suspended'

export interface TaskStatus {
  readonly id: number
  readonly name: string
  readonly state: TaskState
  /** Its present or last CPU; null: it has not started. */
  readonly cpu: number | null
  readonly priority: TaskPriority
  readonly nice: number
  readonly affinity: readonly number[]
  /** It was killed, whether or not it has ended. */
  readonly killed: boolean
  /** How often it was started: more than once only if it is restartable. */
  readonly starts: number
  /** Milliseconds since boot; null: not yet. */
  readonly started: number | null
  readonly ended: number | null
  /** Milliseconds on a CPU, and runnable without a CPU. */
  readonly runTime: number
  readonly waitTime: number
  readonly switches: number
  readonly preemptions: number
  /** How often it has moved to another CPU after its start. */
  readonly moves: number
  /** The CPU that it moved from last; null: it has not moved. */
  readonly movedFrom: number | null
  /** When its last checkpoint was written, in milliseconds since boot; null: it has none. */
  readonly checkpoint: number | null
  /** Bytes of its state when it moved, or at its checkpoint, whichever was last; 0: neither was. */
  readonly stateBytes: number
  /** It should move and has not yet; null: it need not move. */
  readonly moving: { readonly waitsFor: string | null } | null
  /**
   * A checkpoint is due, or its state was asked for, and it waits for a later safepoint; null: neither is so.
   */
  readonly checkpointing: { readonly waitsFor: string | null } | null
}

export type TaskEvent = 'stop' | 'resume' | 'kill' | 'restart' | 'end' | 'message'

const taskEvents: Readonly<Record<TaskEvent, true>> = {
  stop: true,
  resume: true,
  kill: true,
  restart: true,
  end: true,
  message: true,
}

export interface KillOptions {
  /**
   * Milliseconds that the task has to end before it loses its CPU. Default: the `grace` of the boot. 0: it
   * loses its CPU now. Only the booting thread honours it.
   */
  readonly grace?: number
}

const killOptions: Known<KillOptions> = { grace: true }

/** The common part of `Task` and `ChildTask`. */
export abstract class TaskHandle {
  readonly name: string
  readonly id: number
  /** @internal */
  readonly view: KernelView
  /** @internal Its job; 0 once the outcome was delivered. */
  job: number
  /** @internal The last figures of the job, from when the handle released it. */
  last: JobFigures | null = null
  private listeners: Map<TaskEvent, Set<(value?: any) => void>> | null = null

  /** @internal */
  constructor(view: KernelView, job: number, name: string) {
    this.view = view
    this.job = job
    this.name = name
    this.id = view.i32[job + Job.number]
  }

  /**
   * Asks the task to end: a TaskKilledError with `reason` as its cause is thrown into it at its next wait or
   * safepoint. False: it has ended, or was killed before.
   */
  kill(reason?: unknown, options: KillOptions = {}): boolean {
    refuseUnknown('kill(reason, options)', options, killOptions)
    if (options.grace !== undefined) checkTime('grace', options.grace)
    if (!this.killAs(KILL_CALLED, reason)) return false
    if (options.grace !== undefined) this.view.booter?.limitGrace(this.job, options.grace)
    return true
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

  /**
   * Takes the task off its CPU until `resume`, at its next safepoint at the latest. False: it is stopped, or
   * has ended.
   */
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

  /** Resumes a stopped task. False: it is not stopped. */
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

  /**
   * Sets the CPUs that it may run on. A started task moves there at its next safepoint if it can;
   * `status.moving` says what it waits for. False: it has started and cannot move, its arguments went to its
   * CPU by a message, or it has ended.
   */
  setAffinity(cpus: readonly number[]): boolean {
    const { view } = this
    checkAffinity(cpus, view.plan.sizes.cpus)
    const [low, high] = maskOf(cpus)
    let changed = false
    if (this.job === 0) return false
    view.withTask(this.job, task => {
      const hasStarted = Atomics.load(view.i32, this.job + Job.cpu) !== 0
      const control = Atomics.load(view.i32, this.job + Job.control)
      const canMove = hasStarted ? (control & JOB_MOVABLE) !== 0 : (control & JOB_ARGS_MAILED) === 0
      if (!canMove) return
      view.i32[this.job + Job.affinity] = low
      view.i32[this.job + Job.affinity + 1] = high
      // Dequeue and enqueue it: the new mask chooses the queue.
      const queued = !hasStarted && schedulerStop(view.s, task)
      setAffinity(view.s, task, low, high)
      if (queued) schedulerContinue(view.s, task)
      // It may have started in the meantime.
      askToMove(view.s, task)
      changed = true
    })
    return changed
  }

  /** Its present state. */
  get status(): TaskStatus {
    const { last } = this
    return last === null ? this.readStatus() : this.statusOf(last, stateOf(last))
  }

  /** What `console.log` and JSON show of it. */
  toJSON(): { readonly id: number; readonly name: string; readonly state: TaskState } {
    return { id: this.id, name: this.name, state: this.status.state }
  }

  get [Symbol.toStringTag](): string {
    return 'Task'
  }

  /** Calls `listener` at each such event of the task. Returns a function that removes it. */
  on(event: 'message', listener: (value: any) => void): () => void
  on(event: TaskEvent, listener: () => void): () => void
  on(event: TaskEvent, listener: (value?: any) => void): () => void {
    checkListener('task.on', event, taskEvents, listener)
    this.listeners ??= new Map()
    const heard = this.listeners.get(event) ?? new Set()
    heard.add(listener)
    this.listeners.set(event, heard)
    return () => heard.delete(listener)
  }

  /** @internal */
  emit(event: TaskEvent, value?: unknown): void {
    const heard = this.listeners?.get(event)
    if (heard !== undefined) for (const listener of heard) callListener(listener, value)
  }

  /** @internal Called before the handle releases the record. */
  keepStatus(): void {
    this.last = figuresOf(this.view, this.job)
    this.job = 0
  }

  private readStatus(): TaskStatus {
    const { i32 } = this.view
    const figures = figuresOf(this.view, this.job)
    let state = stateOf(figures)
    const isThere = this.view.withTask(this.job, task => {
      const se = i32[task + TaskRecord.entity]
      const { runTime, waitTime, switches, preemptions } = taskAccount(i32, se)
      figures.runTime = runTime
      figures.waitTime = waitTime
      figures.switches = switches
      figures.preemptions = preemptions
      figures.priority = i32[se + Entity.basePriority]
      figures.nice = i32[se + Entity.nice]
      if (figures.outcome !== OUTCOME_PENDING) return
      const { jobs, obstacles } = this.view
      const reason = (): string | null => obstacles.read(jobs.indexOf(this.job), this.id)
      if (Atomics.load(i32, task + TaskRecord.moveAsked) !== 0 && isMisplaced(this.view, task, se))
        figures.moving = { waitsFor: reason() }
      const isLate = (Atomics.load(i32, this.job + Job.control) & JOB_CHECKPOINT_WAITS) !== 0
      if (isLate || openRequest(this.view, this.job) !== 0) figures.checkpointing = { waitsFor: reason() }
      state = 'queued'
      const isOnCpu = Atomics.load(i32, se + Entity.onCpu) !== 0
      // A task that is asked to stop runs on until its next safepoint.
      if (i32[task + TaskRecord.stopped] !== 0 && !isOnCpu) state = 'stopped'
      else if (i32[se + Entity.woken] !== 0 && isSleeping(Atomics.load(i32, task + TaskRecord.state)))
        state = 'sleeping'
      else if (isOnCpu) state = 'running'
    })
    if (isThere) return this.statusOf(figures, state)
    // Job and task have separated, perhaps since the record was read: only now the job has the final figures.
    const last = figuresOf(this.view, this.job)
    return this.statusOf(last, stateOf(last))
  }

  private statusOf(figures: JobFigures, state: TaskState): TaskStatus {
    const { outcome, cpu, starts, runTime, waitTime, switches, preemptions } = figures
    return {
      id: this.id,
      name: this.name,
      state,
      cpu: cpu === 0 ? null : cpu - 1,
      priority: priorityName(figures.priority),
      nice: figures.nice,
      affinity: cpusOf(figures.affinityLow, figures.affinityHigh).filter(
        at => at < this.view.plan.sizes.cpus,
      ),
      killed: figures.killKind !== NOT_KILLED,
      starts,
      started: starts === 0 ? null : figures.began,
      ended: outcome === OUTCOME_PENDING ? null : figures.ended,
      runTime,
      waitTime,
      switches,
      preemptions,
      moves: figures.moves,
      movedFrom: figures.moves === 0 ? null : figures.movedFrom,
      checkpoint: figures.checkpointAt === 0 ? null : figures.checkpointAt,
      stateBytes: figures.imageBytes,
      moving: figures.moving,
      checkpointing: figures.checkpointing,
    }
  }
}

printsAs(TaskHandle, 'Task')
staysHere(TaskHandle, 'await it, and send the result')

/** Whether a started task should not be on its CPU: by its mask, or because that CPU ends. */
function isMisplaced({ i32, s }: KernelView, task: number, se: number): boolean {
  const cpu = Atomics.load(i32, se + Entity.cpu)
  return !s.isActive(cpu) || !maskHas(i32[task + TaskRecord.allowed], i32[task + TaskRecord.allowed + 1], cpu)
}

/**
 * The figures of the job's record: all that exists when its task has ended, and kept when the record is
 * freed.
 */
interface JobFigures {
  readonly outcome: number
  readonly cpu: number
  readonly starts: number
  readonly killKind: number
  readonly affinityLow: number
  readonly affinityHigh: number
  readonly began: number
  readonly ended: number
  readonly moves: number
  readonly movedFrom: number
  readonly imageBytes: number
  readonly checkpointAt: number
  moving: TaskStatus['moving']
  checkpointing: TaskStatus['checkpointing']
  priority: number
  nice: number
  switches: number
  preemptions: number
  runTime: number
  waitTime: number
}

function figuresOf(view: KernelView, job: number): JobFigures {
  const { i32, f64 } = view
  const outcome = Atomics.load(i32, job + Job.outcome)
  const rank = i32[job + Job.rank]
  const images = view.hasImages(job) ? view.imagesOf(job) : 0
  return {
    outcome,
    cpu: Atomics.load(i32, job + Job.cpu),
    starts: i32[job + Job.starts],
    killKind: Atomics.load(i32, job + Job.killKind),
    affinityLow: i32[job + Job.affinity],
    affinityHigh: i32[job + Job.affinity + 1],
    began: f64[(job + Job.began) >> 1],
    ended: f64[(job + Job.ended) >> 1],
    priority: priorityOfRank(rank),
    nice: niceOfRank(rank),
    switches: i32[job + Job.switches],
    preemptions: i32[job + Job.preemptions],
    runTime: f64[(job + Job.runTime) >> 1],
    waitTime: f64[(job + Job.waitTime) >> 1],
    moves: images === 0 ? 0 : i32[images + JobImages.moves],
    movedFrom: images === 0 ? 0 : i32[images + JobImages.movedFrom],
    imageBytes: images === 0 ? 0 : i32[images + JobImages.imageBytes],
    checkpointAt:
      images === 0 || Atomics.load(i32, images + JobImages.checkpoint) === 0
        ? 0
        : f64[(images + JobImages.checkpointAt) >> 1],
    moving: null,
    checkpointing: null,
  }
}

function stateOf(figures: JobFigures): TaskState {
  if (figures.outcome !== OUTCOME_PENDING) return outcomeName(figures.outcome)
  return figures.starts === 0 ? 'queued' : 'running'
}

export function outcomeName(outcome: number): TaskState {
  switch (outcome) {
    case OUTCOME_RETURNED:
      return 'returned'
    case OUTCOME_SUSPENDED:
      return 'suspended'
    case OUTCOME_KILLED:
      return 'killed'
    case OUTCOME_EVICTED:
      return 'evicted'
    case OUTCOME_LOST:
      return 'lost'
    default:
      return 'threw'
  }
}
