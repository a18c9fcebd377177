import type { Handle } from '../../arena/memory/slab.ts'
import { SleepQueue, Timer } from '../../coroutine/schedule/sleepqueue.ts'
import { Entity } from '../../sched/core/entity.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import { Watchdog } from '../../sched/core/watchdog.ts'
import { Counters } from './counters.ts'
import { type Deadlock, takeDeadlocks } from '../recovery/deadlock.ts'
import { LOAD_MODULE } from '../spawn/functions.ts'
import { JOB_ASYNC, JOB_EVICTING, Job, NOT_KILLED, OUTCOME_PENDING } from '../spawn/job.ts'
import type { StuckTask } from './kernelevents.ts'
import type { BootSettings } from './options.ts'
import type { KernelView } from './view.ts'

/** The kernel's side of the monitor. */
export interface MonitoredKernel {
  nameOf(job: number): string
  evict(cpu: number): void
  /**
   * Reports the task. With `evict` it calls that first, unless the CPU answers in the meantime. Resolves with
   * whether it called it.
   */
  stuck(report: Omit<StuckTask, 'stack' | 'evicted'>, evict: (() => void) | null): Promise<boolean>
  deadlock(deadlock: Deadlock): void
  /** Ends the kernel if this thread has left a kernel call half done. True: it has. */
  isFaulty(): boolean
}

/** The grace period of a killed job; its timer is due at its end. */
interface GracePeriod {
  readonly job: number
  readonly handle: Handle
  /** How often its task had been given a CPU when the grace period began. */
  turns: number
  /** It had no CPU until recently: a whole period starts when it gets one. */
  waited: boolean
}

/** A count of turns that no task has: the job gets no extra time for waiting. */
const NO_TURNS = -2

/** The most grace periods that one poll ends: each is a check of a job, in less than a microsecond. */
const GRACES_PER_POLL = 20_000

const POLL_MS_MIN = 5
const POLL_MS_MAX = 250

/**
 * The monitor: the booting thread polls for killed tasks that outlive their grace period, for CPUs stuck in
 * code without safepoints, and for deadlocks. A poll takes no more time with more tasks: killed jobs are in a
 * set that any thread adds to (marks.ts), grace periods in a queue by their ends, and the watchdog looks at a
 * part of the tasks each time.
 */
export class KernelMonitor {
  private readonly view: KernelView
  private readonly kernel: MonitoredKernel
  private readonly grace: number
  private readonly watchdog: Watchdog | null
  private readonly evictsStuck: boolean
  private readonly period: number
  private readonly graces = new Map<number, Timer<GracePeriod>>()
  private readonly ends = new SleepQueue<GracePeriod>()
  private deadlocks = 0
  private timer: ReturnType<typeof setInterval> | undefined
  private readonly reportedKeys = new Set<string>()

  constructor(view: KernelView, settings: BootSettings, kernel: MonitoredKernel) {
    this.view = view
    this.kernel = kernel
    this.grace = settings.grace
    const { watchdog } = settings
    this.watchdog = watchdog === null ? null : new Watchdog(view.s, watchdog.limit)
    this.evictsStuck = watchdog?.evict ?? false
    const wanted = Math.min(settings.grace / 4, (watchdog?.limit ?? Infinity) / 4)
    this.period = Math.min(POLL_MS_MAX, Math.max(POLL_MS_MIN, wanted))
  }

  /** Tasks run from now on. */
  start(): void {
    if (this.timer !== undefined) return
    this.timer = setInterval(() => this.poll(), this.period)
    // The tasks themselves keep the program alive.
    ;(this.timer as { unref?(): void }).unref?.()
  }

  /** No task runs any more. */
  stop(): void {
    clearInterval(this.timer)
    this.timer = undefined
    // The last task may have left a report as it ended.
    this.takeDeadlocks()
  }

  poll(): void {
    const { s, thread } = this.view
    if (this.kernel.isFaulty()) return
    s.rcu.runCallbacks(thread)
    this.lookForKills()
    this.lookAtGraces()
    this.lookAtCpus()
    this.takeDeadlocks()
  }

  takeDeadlocks(): void {
    const { i32, plan } = this.view
    const deadlocks = Atomics.load(i32, plan.counters.start + Counters.deadlocks)
    if (deadlocks === this.deadlocks) return
    this.deadlocks = deadlocks
    for (const deadlock of takeDeadlocks(this.view)) this.kernel.deadlock(deadlock)
  }

  private lookForKills(): void {
    this.view.killed.take(slot => this.beginGrace(this.view.jobs.pointerAt(slot)))
  }

  private beginGrace(job: number): void {
    const { i32, jobs } = this.view
    // Take the handle first: the job may end in the meantime, and a joiner on a CPU may free it.
    const handle = jobs.tryHandleOf(i32, job)
    // The entry may belong to an ended job that used the same record.
    if (handle === 0 || this.graces.get(job)?.owner.handle === handle) return
    if (Atomics.load(i32, job + Job.outcome) !== OUTCOME_PENDING) return
    if (Atomics.load(i32, job + Job.killKind) === NOT_KILLED) return
    this.setGrace({ job, handle, turns: this.turnsOf(job), waited: false }, this.grace)
  }

  /** Gives a killed job at most `ms` milliseconds to end. */
  limitGrace(job: number, ms: number): void {
    const handle = this.view.jobs.tryHandleOf(this.view.i32, job)
    if (handle === 0) return
    this.setGrace({ job, handle, turns: NO_TURNS, waited: false }, ms)
    if (ms === 0) this.lookAtGraces()
    else if (ms < this.period) setTimeout(() => this.lookAtGraces(), ms)
  }

  private setGrace(grace: GracePeriod, ms: number): void {
    const before = this.graces.get(grace.job)
    if (before?.isQueued === true) this.ends.remove(before)
    const timer = new Timer(grace)
    this.graces.set(grace.job, timer)
    this.ends.add(timer, this.view.s.now() + ms)
  }

  private lookAtGraces(): void {
    const now = this.view.s.now()
    for (let left = GRACES_PER_POLL; left > 0; left--) {
      const timer = this.ends.expire(now)
      if (timer === undefined) return
      this.endGrace(timer, now)
    }
  }

  private endGrace(timer: Timer<GracePeriod>, now: number): void {
    const { i32, jobs } = this.view
    const grace = timer.owner
    const { job } = grace
    const isThere = jobs.resolve(i32, grace.handle) === job
    if (!isThere || Atomics.load(i32, job + Job.outcome) !== OUTCOME_PENDING) {
      this.graces.delete(job)
      return
    }
    const cpu = Atomics.load(i32, job + Job.cpu)
    const waits = cpu === 0 || this.waitsForTurn(job, grace)
    if (waits || grace.waited) {
      // It ends when it gets a CPU. Until then it has not ignored the kill, and its period has not begun.
      grace.turns = this.turnsOf(job)
      grace.waited = waits
      this.ends.add(timer, now + this.grace)
      return
    }
    this.graces.delete(job)
    Atomics.or(i32, job + Job.control, JOB_EVICTING)
    this.kernel.evict(cpu - 1)
  }

  /** How often the job's task was given a CPU; -1: it has no task. */
  private turnsOf(job: number): number {
    const { i32 } = this.view
    let turns = -1
    this.view.withTask(job, task => (turns = i32[i32[task + TaskRecord.entity] + Entity.turns]))
    return turns
  }

  /** Whether the job's task has been runnable since the period began, while other tasks had the CPU. */
  private waitsForTurn(job: number, { turns }: GracePeriod): boolean {
    const { i32 } = this.view
    let waits = false
    this.view.withTask(job, task => {
      const se = i32[task + TaskRecord.entity]
      waits = Atomics.load(i32, se + Entity.onRq) === 1 && i32[se + Entity.turns] === turns
    })
    return waits
  }

  private lookAtCpus(): void {
    if (this.watchdog === null) return
    for (const report of this.watchdog.look()) {
      if (report.kind !== 'stuck') continue
      const { cpu, ms, turning } = report
      const jobs = turning ? this.asyncJobsOn(cpu) : [this.view.jobOf(report.task)]
      for (const job of jobs) {
        // A module may take long to load.
        if (job === 0 || this.view.i32[job + Job.fn] === LOAD_MODULE) continue
        const id = this.view.i32[job + Job.number]
        const key = `${cpu} ${id}`
        if (this.reportedKeys.has(key)) continue
        this.reportedKeys.add(key)
        const where = turning ? 'event loop' : 'task'
        const name = this.kernel.nameOf(job)
        const evict = (): void => {
          Atomics.or(this.view.i32, job + Job.control, JOB_EVICTING)
          this.kernel.evict(cpu)
        }
        const reported = this.kernel.stuck({ name, id, cpu, where, ms }, this.evictsStuck ? evict : null)
        // The CPU has just answered. If the task keeps it again, it loses it after all.
        void reported.then(evicted => this.evictsStuck && !evicted && this.reportedKeys.delete(key))
      }
    }
  }

  /** The async tasks of a CPU: which of them its event loop runs is not visible from outside. */
  private asyncJobsOn(cpu: number): number[] {
    const { i32, jobs } = this.view
    const found: number[] = []
    for (let job = jobs.after(i32, 0); job !== 0; job = jobs.after(i32, job)) {
      const isThere = Atomics.load(i32, job + Job.cpu) === cpu + 1 && i32[job + Job.number] !== 0
      if (!isThere || Atomics.load(i32, job + Job.outcome) !== OUTCOME_PENDING) continue
      if ((Atomics.load(i32, job + Job.control) & JOB_ASYNC) !== 0) found.push(job)
    }
    return found
  }
}
