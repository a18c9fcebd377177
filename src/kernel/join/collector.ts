import { assert } from '../../arena/assert.ts'
import { SpinBudget } from '../../machine/core/spinbudget.ts'
import { killError } from './cancel.ts'
import { activeJobs, countEnded } from '../boot/counters.ts'
import {
  addOrigin,
  type CpuLoss,
  CpuLostError,
  TaskKilledError,
  TaskSuspendedError,
  unknownLoss,
} from './errors.ts'
import {
  JOB_BY_ENDER,
  OUTCOME_EVICTED,
  Job,
  KILL_CLOSED,
  KILL_TIMED_OUT,
  OUTCOME_KILLED,
  OUTCOME_LOST,
  NOT_KILLED,
  OUTCOME_PENDING,
  JOB_POSTED,
  JOB_RESULT_MAILED,
  OUTCOME_RETURNED,
  OUTCOME_SUSPENDED,
} from '../spawn/job.ts'
import { LOAD_MODULE } from '../spawn/functions.ts'
import type { BooterMail } from '../cpu/mail.ts'
import type { Task } from './task.ts'
import { turn } from '../cpu/eventloopturn.ts'
import type { KernelView } from '../boot/view.ts'

/** Polls of the completions in one turn of the event loop: a few microseconds. */
const POLLS_PER_TURN = 64

/** The longest time without completions before the event loop may sleep, in milliseconds. */
const HOT_MS = 0.1

/** A task that failed, and that nothing had joined. */
export interface UnjoinedFailure {
  readonly name: string
  readonly id: number
  readonly error: unknown
}

/** Receives the reports of a collector. */
export interface CollectorListener {
  collected(): void
  failed(failure: UnjoinedFailure): void
  nameOf(job: number): string
  /** Tasks run from now on; or no task runs any more. */
  busy(): void
  idle(): void
}

/**
 * The booting thread's end of the completions: takes ended jobs, delivers their outcomes to the handles, and
 * keeps the program alive while a job has not ended.
 */
export class Collector {
  /** Tasks of this thread whose results were not delivered yet. */
  waiting = 0
  /** Tasks of this thread that have ended, and those of them that did not return. */
  completed = 0
  failed = 0
  /** How each dead CPU died, for the tasks that were lost with it. */
  readonly deaths: Map<number, { readonly reason: string; readonly error?: unknown }> = new Map()
  private readonly view: KernelView
  private readonly mail: BooterMail
  private readonly listener: CollectorListener
  private drainWaiters: (() => void)[] = []
  private readonly handles: (Task<any> | undefined)[] = []
  private isPumping = false
  private keepAlive: ReturnType<typeof setInterval> | undefined
  private isClosed = false
  private isAbandoned = false
  private readonly budget = new SpinBudget(HOT_MS)

  constructor(view: KernelView, mail: BooterMail, listener: CollectorListener) {
    this.view = view
    this.mail = mail
    this.listener = listener
  }

  /** A task has not ended, or its result was not delivered. */
  get isBusy(): boolean {
    return !this.isAbandoned && (this.waiting > 0 || this.active > 0)
  }

  /** Resolves when all outcomes were delivered. */
  drained(): Promise<void> {
    if (!this.isBusy) return Promise.resolve()
    if (!this.isPumping) void this.pump()
    return new Promise(resolve => this.drainWaiters.push(resolve))
  }

  /** Tasks of the whole kernel that have not ended. */
  get active(): number {
    return activeJobs(this.view)
  }

  /** The handle of a job that this thread holds. */
  handleOf(job: number): Task<any> | undefined {
    return this.handles[this.view.jobs.indexOf(job)]
  }

  add(task: Task<any>): void {
    this.handles[this.view.jobs.indexOf(task.job)] = task
    this.waiting++
    if (!this.isPumping) void this.pump()
  }

  /** Delivers the outcomes of ended jobs. Returns their number. */
  collect(): number {
    const { i32, completions } = this.view
    if (this.isAbandoned) return 0
    let collected = 0
    for (let job = completions.take(); job !== 0; collected++) {
      const next = i32[job + Job.next]
      // The handle was given up while the CPU was about to store the outcome, or objects of the result have
      // not arrived yet: retry soon.
      const outcome = Atomics.load(i32, job + Job.outcome)
      if (outcome === OUTCOME_PENDING || !this.hasAll(job, outcome)) completions.push(job)
      else this.deliver(job, outcome)
      job = next
    }
    if (collected > 0) this.listener.collected()
    return collected
  }

  /** Whether all messages of a task have arrived, and its result. A dead CPU sends nothing more. */
  private hasAll(job: number, outcome: number): boolean {
    const { i32, codec } = this.view
    const control = Atomics.load(i32, job + Job.control)
    const number = i32[job + Job.number]
    const isCut = outcome === OUTCOME_LOST || outcome === OUTCOME_EVICTED
    if ((control & JOB_POSTED) !== 0 && !isCut && !this.mail.hasHeardAll(number)) return false
    if ((control & JOB_RESULT_MAILED) !== 0) return this.mail.hasResult(number)
    return codec.missing(i32[job + Job.result]) === null
  }

  /**
   * No CPU will ever run again: every handle gets an error, whatever the arena says of its job. `errorOf`
   * gets the task's name, and whether it had begun. No outcome is collected from now on. `collects`: first
   * deliver the outcomes of ended jobs, which needs the arena.
   */
  abandon(errorOf: (name: string, started: boolean) => unknown, collects: boolean = true): void {
    if (collects) this.collect()
    this.isAbandoned = true
    this.handles.forEach((task, index) => {
      if (task === undefined) return
      this.handles[index] = undefined
      this.waiting--
      const { i32 } = this.view
      const started = i32[task.job + Job.starts] !== 0
      Atomics.compareExchange(
        i32,
        task.job + Job.outcome,
        OUTCOME_PENDING,
        started ? OUTCOME_EVICTED : OUTCOME_KILLED,
      )
      task.keepStatus()
      task.deliver(true, errorOf(task.name, started))
    })
    // A program may wait for room.
    this.listener.collected()
    this.view.completions.interrupt()
  }

  close(): void {
    this.isClosed = true
    this.view.completions.interrupt()
    clearInterval(this.keepAlive)
    this.keepAlive = undefined
  }

  /** Delivers the outcome of an ended job to its handle, and frees the record. */
  deliver(job: number, outcome: number = Atomics.load(this.view.i32, job + Job.outcome)): void {
    const { view } = this
    if (this.isAbandoned) return
    const index = view.jobs.indexOf(job)
    const task = this.handles[index]
    assert(outcome !== OUTCOME_PENDING, 'only the outcome of an ended job is delivered')
    this.mail.forget(view.i32[job + Job.number])
    if (task === undefined) {
      this.deliverOrphan(job, outcome)
      return
    }
    this.handles[index] = undefined
    this.waiting--
    if (view.i32[job + Job.fn] !== LOAD_MODULE) {
      this.completed++
      if (outcome !== OUTCOME_RETURNED) this.failed++
    }
    if (outcome === OUTCOME_RETURNED) {
      const pointer = view.i32[job + Job.result]
      let value: unknown
      let threw = false
      const isMailed = (Atomics.load(view.i32, job + Job.control) & JOB_RESULT_MAILED) !== 0
      if (pointer !== 0 || isMailed) {
        try {
          value = isMailed ? this.mail.takeResult(task.id) : view.codec.decode(pointer)
        } catch (error) {
          threw = true
          value = error
        }
      }
      task.keepStatus()
      view.freeJob(job)
      task.deliver(threw, value)
      return
    }
    if (outcome === OUTCOME_SUSPENDED)
      task.suspended(view.codec.decode(view.i32[job + Job.result]) as Uint8Array)
    const error = this.failureOf(job, outcome, task.name, task.killReason)
    const wasWanted = this.wasRequested(job, outcome)
    // A closing kernel has too many of them, and the places of their spawns explain nothing.
    if (view.i32[job + Job.killKind] !== KILL_CLOSED)
      addOrigin(error, `task ${task.name} #${task.id}`, task.origin)
    task.keepStatus()
    view.freeJob(job)
    task.deliver(true, error)
    if (!task.isJoined && !wasWanted) this.reportLater(task, error)
  }

  /** The job starts again: its handle emits the event when recovery is over. */
  restarted(job: number): void {
    const task = this.handleOf(job)
    if (task !== undefined) queueMicrotask(() => task.emit('restart'))
  }

  /** The error that a joiner of the job gets. */
  failureOf(job: number, outcome: number, name: string, killReason?: unknown): unknown {
    const { i32, codec } = this.view
    const cpu = i32[job + Job.cpu] - 1
    const pointer = i32[job + Job.result]
    switch (outcome) {
      case OUTCOME_KILLED:
        return killError(
          this.view,
          job,
          name,
          i32[job + Job.starts] === 0 ? 'unstarted' : 'thrown',
          killReason,
        )
      case OUTCOME_EVICTED:
        if (i32[job + Job.killKind] === NOT_KILLED)
          return new TaskKilledError(name, 'evicted', undefined, 'ran on without a safepoint')
        return killError(this.view, job, name, 'evicted', killReason)
      case OUTCOME_SUSPENDED:
        return new TaskSuspendedError(name)
      case OUTCOME_LOST: {
        const loss = pointer === 0 ? unknownLoss : (codec.decode(pointer) as CpuLoss)
        return new CpuLostError(name, cpu, loss, this.deaths.get(cpu)?.error)
      }
      default:
        if (pointer === 0)
          return new Error(
            `task ${name} failed, and the arena had no room for its error; raise the option \`heap\` at boot`,
          )
        try {
          return codec.decode(pointer)
        } catch (error) {
          return error
        }
    }
  }

  /** A child that its parent gave up: no joiner will come, so its failure is reported now. */
  private deliverOrphan(job: number, outcome: number): void {
    const { view } = this
    const id = view.i32[job + Job.number]
    const name = this.listener.nameOf(job)
    const error = outcome === OUTCOME_RETURNED ? undefined : this.failureOf(job, outcome, name)
    const wasWanted = outcome === OUTCOME_RETURNED || this.wasRequested(job, outcome)
    if ((Atomics.load(view.i32, job + Job.control) & JOB_BY_ENDER) !== 0) countEnded(view, job)
    view.freeJob(job)
    if (!wasWanted) this.listener.failed({ name, id, error })
  }

  /**
   * The holder of its handle ended it, so this is not a failure to report. A time limit that passed is one.
   */
  private wasRequested(job: number, outcome: number): boolean {
    const kind = this.view.i32[job + Job.killKind]
    if (outcome === OUTCOME_SUSPENDED) return true
    return (
      (outcome === OUTCOME_KILLED || outcome === OUTCOME_EVICTED) &&
      kind !== NOT_KILLED &&
      kind !== KILL_TIMED_OUT
    )
  }

  private reportLater(task: Task<any>, error: unknown): void {
    // A joiner of the same turn still gets it.
    setTimeout(() => {
      if (!task.isJoined) this.listener.failed({ name: task.name, id: task.id, error })
    }, 0)
  }

  /**
   * Turns the event loop for a while without letting it sleep. True: an outcome arrived. Each turn polls for
   * a few microseconds, which is the time of a short task and of a turn.
   */
  private async pollHot(ms: number): Promise<boolean> {
    if (ms === 0) {
      if (this.collect() === 0) return false
      // A job whose messages have not arrived yet stays on the list: the event loop must deliver them.
      await turn()
      return true
    }
    const until = performance.now() + ms
    do {
      await turn()
      if (this.collect() > 0 || (this.view.completions.poll(POLLS_PER_TURN) && this.collect() > 0))
        return true
    } while (performance.now() < until && this.isBusy)
    return false
  }

  /**
   * An ended task often has a successor: the program gets a turn to spawn it before the event loop may sleep.
   */
  private async staysBusy(): Promise<boolean> {
    if (this.isBusy) return true
    await turn()
    return this.isBusy
  }

  private async pump(): Promise<void> {
    this.isPumping = true
    this.keepAlive ??= setInterval(() => undefined, 0x7fff_ffff)
    ;(this.keepAlive as { ref?(): void }).ref?.()
    this.listener.busy()
    const budget = this.budget
    let dozes = false
    while (!this.isClosed && (await this.staysBusy())) {
      if (await this.pollHot(budget.ms)) {
        budget.found()
        dozes = true
        continue
      }
      // Other callers collect too: there may be nothing left to wait for.
      if (!this.isBusy) continue
      const began = performance.now()
      const coming = this.view.completions.wait(dozes)
      if (coming !== null) await coming
      budget.slept(performance.now() - began)
      // After results there are often more soon.
      dozes = this.collect() > 0
    }
    ;(this.keepAlive as { unref?(): void } | undefined)?.unref?.()
    this.isPumping = false
    this.listener.idle()
    for (const resolve of this.drainWaiters.splice(0)) resolve()
  }
}
