import type { Kernel } from '../../kernel/boot/kernel.ts'
import type { Job } from '../engine.ts'
import { FencedError } from '../errors.ts'
import type { News } from '../news.ts'
import type { ClaimedRun, Ending } from '../store/rows.ts'
import type { Store } from '../store/store.ts'
import type { Activity } from './activity.ts'
import { Attempt, type AttemptHost, type AttemptReport } from './attempt.ts'
import { Batch } from './batch.ts'
import { keepLeases, type Leases } from './leases.ts'
import { RunModules } from './modules.ts'
import { SessionWatch } from './sessions.ts'

export interface WorkerOptions {
  readonly name: string
  readonly queues: readonly string[]
  /** How many runs it has at the same time. */
  readonly concurrency: number
  /** Seconds. */
  readonly lease: number
  /** Milliseconds between two looks for runs, where no notification arrives. */
  readonly poll: number
  readonly imageLimit: number
  readonly patience: number
  /** Seconds after which ended runs are forgotten. */
  readonly retention: number
  readonly warn: (run: string | null, message: string) => void
  readonly report: (report: AttemptReport) => void
  readonly show: (activity: Activity) => void
  readonly startScheduled: (queue: string, job: Job) => Promise<void>
}

/** Commits of endings, at most so many together. */
const BATCH_MAX = 200
const REPAIR_MS = 30_000
const PRUNE_MS = 3_600_000
/** A timer of Node that is longer fires now. */
const TIMER_MAX = 2 ** 31 - 1
/** While a worker drains it asks again so often for the states of its runs. */
const DRAIN_AGAIN_MS = 250

/** Claims runs, and runs them as tasks of a kernel. */
export class DurableWorker implements AttemptHost {
  readonly kernel: Kernel
  readonly store: Store
  readonly modules: RunModules
  readonly imageLimit: number
  readonly patience: number
  private readonly options: WorkerOptions
  private readonly attempts = new Map<string, Attempt>()
  private readonly endings: Batch<Ending, boolean>
  private readonly leases: Leases
  private readonly timers: NodeJS.Timeout[] = []
  private sessions: SessionWatch | null = null
  private leasesChanged = false
  private isDraining = false
  private isStarted = false
  /** It has said that its kernel has ended. */
  private isOver = false
  isClosing = false
  private claiming: Promise<void> = Promise.resolve()
  private isAsked = false
  private onIdle: (() => void) | null = null
  private reviewing: Promise<void> | null = null

  constructor(kernel: Kernel, store: Store, options: WorkerOptions) {
    this.kernel = kernel
    this.store = store
    this.options = options
    this.modules = new RunModules(kernel)
    this.imageLimit = options.imageLimit
    this.patience = options.patience
    this.endings = new Batch(endings => this.storeEndings(endings), BATCH_MAX)
    this.leases = keepLeases(store.database, {
      lease: options.lease,
      every: (options.lease * 1000) / 3,
      session: options.name,
      onError: error => options.warn(null, error.message),
      onBeat: () => void this.review(),
    })
  }

  async start(): Promise<void> {
    const { queues, poll } = this.options
    for (const queue of queues) {
      await this.store.engine.ensureQueue(queue)
      if (this.store.database.kind === 'embedded') await this.store.claims.lapseAll(queue)
    }
    this.isStarted = true
    const every = (ms: number, work: () => Promise<unknown>): void => {
      const timer = setInterval(() => {
        work().catch(error => this.options.warn(null, (error as Error).message))
      }, ms)
      this.timers.push(timer)
    }
    every(Math.min(poll, TIMER_MAX), async () => this.look())
    every(REPAIR_MS, async () => {
      for (const queue of queues) if ((await this.store.upkeep.repair(queue)) > 0) this.look()
    })
    if (this.store.database.kind === 'postgres')
      this.sessions = new SessionWatch(this.store, queues, error => this.options.warn(null, error.message))
    if (this.options.retention !== Infinity)
      every(PRUNE_MS, () => this.store.upkeep.prune(this.options.retention))
    this.look()
  }

  /** The runs that it has. */
  get running(): readonly string[] {
    return [...this.attempts.keys()]
  }

  /** The claims of the runs that it has. */
  claims(): readonly Activity[] {
    return [...this.attempts.values()].map(attempt => attempt.activity('claimed', null))
  }

  /** Something has happened in the database. */
  hear(news: News): void {
    const { queues, cancelled } = news
    if (queues === true || queues?.some(queue => this.options.queues.includes(queue))) this.look()
    if (cancelled === true || cancelled?.some(id => this.attempts.has(id))) void this.review()
  }

  /** Claims as many runs as it has room for. */
  private look(): void {
    if (this.isAsked || this.isDraining || !this.isStarted || this.isKernelOver()) return
    this.isAsked = true
    this.claiming = this.claiming
      .then(() => this.claim())
      .catch(error => {
        this.options.warn(null, `cannot claim runs: ${(error as Error).message}`)
      })
  }

  private async claim(): Promise<void> {
    this.isAsked = false
    for (const queue of this.options.queues) {
      for (;;) {
        const room = this.options.concurrency - this.attempts.size
        if (room <= 0 || this.isDraining || this.isKernelOver()) return
        const { runs, schedules } = await this.store.claims.claim(queue, room, this.options.name)
        for (const run of runs) this.execute(run)
        if (runs.length > 0) this.changeLeases()
        for (const job of schedules) await this.options.startScheduled(queue, job)
        if (runs.length + schedules.length < room) break
      }
    }
  }

  /** The kernel runs no more tasks. Runs that this worker would claim are left to others. */
  private isKernelOver(): boolean {
    const ended = this.kernel.internals.endedBy()
    if (ended === null) return false
    if (!this.isOver) this.options.warn(null, `this worker claims no more runs: ${ended.message}`)
    this.isOver = true
    return true
  }

  private execute(run: ClaimedRun): void {
    const attempt = new Attempt(this, run)
    this.attempts.set(run.id, attempt)
    void attempt.execute().finally(() => {
      if (this.attempts.get(run.id) === attempt) this.attempts.delete(run.id)
      this.changeLeases()
      if (this.attempts.size === 0) this.onIdle?.()
      this.look()
    })
  }

  /** Tells the keeper of leases, once a turn of the event loop. */
  private changeLeases(): void {
    if (this.leasesChanged) return
    this.leasesChanged = true
    queueMicrotask(() => {
      this.leasesChanged = false
      const jobs = new Map<string, { id: string; retryCount: number }[]>()
      for (const { run } of this.attempts.values()) {
        const some = jobs.get(run.queue) ?? []
        jobs.set(run.queue, some)
        some.push(run.job)
      }
      this.leases.set(jobs)
    })
  }

  /** Whether the runs are still its own, and which are to be cancelled. */
  private review(): Promise<void> {
    this.reviewing ??= this.reviewNow()
      .catch(error => this.options.warn(null, (error as Error).message))
      .finally(() => (this.reviewing = null))
    return this.reviewing
  }

  private async reviewNow(): Promise<void> {
    const attempts = [...this.attempts.values()]
    if (attempts.length === 0) return
    const { lost, cancelled } = await this.store.writes.review(
      this.options.name,
      attempts.map(({ run }) => run),
    )
    const gone = new Set(lost)
    for (const attempt of attempts) {
      // An attempt that has just left is no longer in the map.
      if (this.attempts.get(attempt.run.id) !== attempt) continue
      if (gone.has(attempt.run.id)) attempt.lost()
      const reason = cancelled.get(attempt.run.id)
      if (reason !== undefined) attempt.cancel(reason)
    }
  }

  async finish(ending: Ending): Promise<void> {
    const isStored = await this.endings.add(ending)
    if (!isStored) throw new FencedError(ending.run.id, ending.run.epoch)
  }

  private async storeEndings(endings: readonly Ending[]): Promise<readonly boolean[]> {
    let isRepeated = false
    const fenced = await this.store.patiently(
      async () => {
        const wasRepeated = isRepeated
        isRepeated = true
        const missing = await this.store.writes.finish(endings)
        if (!wasRepeated || missing.size === 0) return missing
        // A lost answer: the first transaction may have had its effect.
        const still = new Set(missing)
        for (const { run } of endings) {
          if (still.has(run.id) && (await this.store.writes.hasFinished(run).catch(() => false)))
            still.delete(run.id)
        }
        return still
      },
      () => this.isClosing,
    )
    return endings.map(({ run }) => !fenced.has(run.id))
  }

  startsIn(ms: number): void {
    if (ms < this.options.poll * 2 && !this.isDraining) setTimeout(() => this.look(), ms + 1).unref()
  }

  report(report: AttemptReport): void {
    this.options.report(report)
  }

  warn(run: string, message: string): void {
    this.options.warn(run, message)
  }

  show(activity: Activity): void {
    this.options.show(activity)
  }

  /**
   * Claims no more, writes the states of its runs, and lets them go on elsewhere. After `ms` a run whose
   * state cannot be written goes on from its last checkpoint.
   */
  async drain(ms: number): Promise<void> {
    this.isDraining = true
    for (const timer of this.timers) clearInterval(timer)
    await this.claiming
    await this.sessions?.close()
    if (this.attempts.size > 0) {
      const idle = new Promise<void>(resolve => (this.onIdle = resolve))
      const release = (): void => {
        for (const attempt of this.attempts.values()) attempt.release()
      }
      release()
      const again = setInterval(release, DRAIN_AGAIN_MS)
      const late = setTimeout(
        () => {
          for (const attempt of this.attempts.values()) void attempt.abandon()
          // A database that is away now leaves the runs to their leases.
          this.isClosing = true
        },
        Math.min(ms, TIMER_MAX),
      )
      await idle
      clearInterval(again)
      clearTimeout(late)
    }
    this.isClosing = true
    await this.reviewing
    await this.leases.close()
  }
}
