import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { resolve as absolute } from 'node:path'
import type { Kernel } from '../kernel/boot/kernel.ts'
import { traceContext } from '../kernel/cpu/context.ts'
import { priorityOf } from '../kernel/boot/options.ts'
import { callListener, warn } from '../kernel/boot/kernelevents.ts'
import { checkTime } from '../coroutine/core/blocking.ts'
import { refuseUnknown, show } from '../coroutine/core/knownoptions.ts'
import { FunctionReference, type Spawnable } from '../kernel/spawn/modules.ts'
import { imageToBytes } from '../payload/imagebytes.ts'
import { CHANNEL, type Database, isTransient, type Row } from './database/database.ts'
import { openEmbedded } from './database/node-embedded.ts'
import { openPostgres } from './database/node-postgres.ts'
import { refusalOf, shownUrl } from './database/refusals.ts'
import { migrate } from './database/schema.ts'
import { Engine, type Job, loadBoss } from './engine.ts'
import { checkCron } from './cron.ts'
import { RunMissingError } from './errors.ts'
import { checkName } from './names.ts'
import { type News, parseNews } from './news.ts'
import {
  checkDurableOptions,
  checkFilter,
  checkQueue,
  DEFAULT_QUEUE,
  type DurableOptions,
  type RunFilter,
  type ScheduleOptions,
  scheduleOptions,
  type StartOptions,
  storedOptions,
} from './options.ts'
import { newRunId, resolveWithRun, Run, type StartedRun } from './run.ts'
import type { RunState, RunStatus } from './states.ts'
import { statusOf } from './status.ts'
import type { NewRun } from './store/rows.ts'
import { Store } from './store/store.ts'
import type { AttemptReport } from './worker/attempt.ts'
import type { Activity } from './worker/activity.ts'
import { Batch } from './worker/batch.ts'
import { runModuleKey } from './worker/modules.ts'
import { DurableWorker } from './worker/worker.ts'

const DAY = 86_400_000
/** Without a notification, waits look at the database so often. */
const LOOK_AGAIN_MS = 2000
const START_BATCH_MAX = 200
const OUTCOME_BATCH_MAX = 500
/** The same warning about the database is given so often. */
const WARN_AGAIN_MS = 60_000

/** A wait for news of the database. */
export interface Heard {
  readonly promise: Promise<void>
  forget(): void
}

/**
 * Runs that outlive their process, in a PostgreSQL database. Open one in each process: those with a kernel
 * run runs, and all of them start, await, cancel and list them.
 */
export class Durable implements AsyncDisposable {
  /** @internal */
  readonly store: Store
  /** The name of this process in rows and reports. */
  readonly name: string
  private readonly database: Database
  private readonly options: DurableOptions
  private readonly worker: DurableWorker | null
  private readonly waits = new Set<{ readonly wants: (news: News) => boolean; readonly wake: () => void }>()
  private readonly starts: Batch<NewRun, boolean>
  private readonly outcomes: Batch<string, Row | null>
  private stopListening: () => Promise<void> = () => Promise.resolve()
  private closing: Promise<void> | null = null
  private readonly observers = new Set<(activity: Activity) => void>()
  private readonly listeners = new Set<(warning: DurableWarning) => void>()
  private readonly warnedAt = new Map<string, number>()
  private readonly watchers = new Set<(report: AttemptReport) => void>()

  private constructor(database: Database, engine: Engine, name: string, options: DurableOptions) {
    this.database = database
    this.options = options
    this.name = name
    this.store = new Store(database, engine)
    this.starts = new Batch(async runs => {
      const started = await this.store.calls.start(runs)
      return runs.map(run => started.has(run.id))
    }, START_BATCH_MAX)
    this.outcomes = new Batch(ids => this.store.reads.outcomesOf(ids), OUTCOME_BATCH_MAX)
    const { kernel, concurrency = kernel?.cpus ?? 0, lease = 10, retention = 30 * DAY } = options
    this.worker =
      kernel === undefined || concurrency === 0
        ? null
        : new DurableWorker(kernel, this.store, {
            name,
            queues: options.queues ?? [DEFAULT_QUEUE],
            concurrency,
            lease,
            poll: options.poll ?? 1000,
            imageLimit: options.imageLimit ?? 64 * 1024 * 1024,
            patience: options.patience ?? 1000,
            retention: retention / 1000,
            warn: (run, message) => this.warn(run, message),
            report: report => this.tellAttempt(report),
            show: activity => this.observers.forEach(observer => observer(activity)),
            startScheduled: (queue, job) => this.startScheduled(queue, job),
          })
  }

  /**
   * Opens the database, makes its tables if they are not there, and begins to run runs if there is a kernel.
   */
  static async open(options: DurableOptions = {}): Promise<Durable> {
    checkDurableOptions(options)
    await loadBoss()
    const name = options.name ?? `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`
    const early: Error[] = []
    let report = (error: Error): void => void early.push(error)
    const onError = (error: Error): void => report(error)
    const database = await openDatabase(options, onError)
    let engine: Engine | null = null
    try {
      await migrate(database)
      engine = await Engine.open(database, {
        lease: options.lease ?? 10,
        supervises: options.kernel !== undefined,
        onError,
      })
      const durable = new Durable(database, engine, name, options)
      report = error => durable.warn(null, error.message)
      for (const error of early) report(error)
      durable.stopListening = await database.listen(
        CHANNEL,
        text => durable.hear(parseNews(text)),
        () => durable.hear(parseNews('')),
        durable.worker === null ? undefined : name,
      )
      await durable.worker?.start()
      return durable
    } catch (error) {
      await engine?.close().catch(() => undefined)
      await database.close().catch(() => undefined)
      const { why, fix } = refusalOf(error)
      if (fix === null) throw error
      const place = shownUrl(options.database ?? '') ?? 'the database'
      throw new Error(`Durable.open: cannot use ${place}: ${why}; ${fix}`, { cause: error })
    }
  }

  /** The kernel that runs its runs; null: it runs none. */
  get kernel(): Kernel | null {
    return this.options.kernel ?? null
  }

  /** The ids of the runs that this process runs now. */
  get running(): readonly string[] {
    return this.worker?.running ?? []
  }

  /**
   * Starts a run of a function: one of `kernel.import(url)`, or its module and name. Resolves when it is in
   * the database; from then on no crash loses it. An id that exists returns the existing run. Awaiting the
   * run, or its `result()`, gives the result of the function.
   */
  start<A extends readonly unknown[], T>(
    fn: Spawnable<A, T>,
    args: A = [] as unknown as A,
    options: StartOptions = {},
  ): Promise<StartedRun<T>> {
    return new Promise((resolve, reject) => {
      this.startRun(fn, args, options).then(
        id => resolveWithRun(resolve, new Run<T>(this, id)),
        (error: unknown) => reject(error),
      )
    })
  }

  private async startRun(fn: Spawnable, args: readonly unknown[], options: StartOptions): Promise<string> {
    const run = this.newRun('start', fn, args, options)
    const isNew = await this.patiently(() => this.starts.add(run))
    if (!isNew) await this.checkSame(run)
    return run.id
  }

  private newRun(
    call: string,
    fn: Spawnable<any, any>,
    args: readonly unknown[],
    options: StartOptions,
  ): NewRun {
    const { module, name } = (fn ?? {}) as Partial<Spawnable>
    if (typeof module !== 'string' || typeof name !== 'string')
      throw new TypeError(
        `${call}(${show(fn)}): not a function of a module; give a function from the result of await kernel.import(url)`,
      )
    if (!Array.isArray(args))
      throw new TypeError(`${call}(${name}, args): the arguments are a list, as in ${call}(fn, [1, 2])`)
    const stored = storedOptions(call, options)
    const immovable = fn instanceof FunctionReference ? fn.immovable : null
    if (immovable !== null && stored.checkpoint !== null)
      throw new TypeError(
        `${call}(${name}): its state cannot be written: ${immovable}; or give \`checkpoint: false\`, and it begins again when its worker dies`,
      )
    const { concurrency } = options
    return {
      id: options.id ?? newRunId(),
      queue: options.queue ?? DEFAULT_QUEUE,
      module: runModuleKey(module),
      fn: name,
      name: options.name ?? name,
      args: imageToBytes(args, 'args'),
      priority: priorityOf(options.priority ?? 'normal'),
      options: stored,
      group: concurrency === undefined ? null : { key: concurrency.key, limit: stored.groupLimit },
      delay: (options.delay ?? 0) / 1000,
      trace: (traceContext() as unknown as Record<string, string> | undefined) ?? null,
    }
  }

  /** An id names one run: another function under it is a mistake. */
  private async checkSame(run: NewRun): Promise<void> {
    const row = await this.patiently(() => this.store.reads.wholeRowOf(run.id))
    if (row.fn_module === run.module && row.fn_name === run.fn) {
      if (Buffer.compare(row.args as Uint8Array, run.args) !== 0)
        this.warn(run.id, `start(${run.fn}): the run exists, with other arguments; these have no effect`)
      return
    }
    throw new TypeError(
      `start(${run.fn}): run '${run.id}' exists, and is one of ${row.fn_name as string} in ${row.fn_module as string}; give another id`,
    )
  }

  /** A run by its id, whichever process has started it. */
  run<T = unknown>(id: string): Run<T> {
    checkName('run(id)', id)
    return new Run<T>(this, id)
  }

  /** Sends a message to a run, which takes it by `receive(name)`. Resolves when it is stored. */
  async send(id: string, name: string, value: unknown): Promise<void> {
    checkName('send(id)', id)
    checkName(`send('${id}', name)`, name)
    const bytes = imageToBytes(value, 'value')
    const key = randomUUID()
    await this.patiently(() => this.store.calls.send(id, name, bytes, key))
  }

  /** The runs, the newest first. */
  async list(filter: RunFilter = {}): Promise<readonly RunStatus[]> {
    const wanted = checkFilter(filter)
    const rows = await this.patiently(() => this.store.reads.list(wanted))
    return rows.map(statusOf)
  }

  /** How many runs are in each state, by queue. */
  async counts(): Promise<ReadonlyMap<string, Readonly<Partial<Record<RunState, number>>>>> {
    const queues = new Map<string, Partial<Record<RunState, number>>>()
    for (const { queue, state, count } of await this.patiently(() => this.store.reads.counts())) {
      const counts = queues.get(queue as string) ?? {}
      queues.set(queue as string, counts)
      counts[state as RunState] = count as number
    }
    return queues
  }

  /**
   * Starts a run of the function at each time of a cron expression, wherever a worker of the queue is. The
   * same key again replaces the schedule.
   */
  async schedule<A extends readonly unknown[], T>(
    key: string,
    cron: string,
    fn: Spawnable<A, T>,
    args: A = [] as unknown as A,
    options: ScheduleOptions = {},
  ): Promise<void> {
    checkScheduleKey('schedule', key)
    refuseUnknown('schedule(key, cron, fn, args, options)', options, scheduleOptions)
    const { timeZone, ...rest } = options
    checkCron(key, cron, timeZone)
    const run = this.newRun('schedule', fn, args, rest)
    const { queue } = run
    const stored: Scheduled = { ...run, id: '', args: Buffer.from(run.args).toString('base64'), key }
    const { engine } = this.store
    await this.patiently(async () => {
      await engine.ensureQueue(queue)
      await engine.schedule(queue, key, cron, { schedule: JSON.stringify(stored) }, timeZone)
    })
  }

  async unschedule(key: string, queue: string = DEFAULT_QUEUE): Promise<void> {
    checkScheduleKey('unschedule', key)
    checkQueue('queue', queue)
    const { engine } = this.store
    await this.patiently(async () => {
      await engine.ensureQueue(queue)
      await engine.unschedule(queue, key)
    })
  }

  /** The schedules of a queue. */
  async schedules(
    queue: string = DEFAULT_QUEUE,
  ): Promise<readonly { readonly key: string; readonly cron: string }[]> {
    checkQueue('queue', queue)
    return await this.patiently(() => this.store.engine.schedules(queue))
  }

  /** A job of a schedule becomes a run, whose id is that of the job: a second worker makes no second run. */
  private async startScheduled(queue: string, job: Job): Promise<void> {
    const { calls } = this.store
    try {
      const { key, args, ...run } = JSON.parse((job.data as { schedule: string }).schedule) as Scheduled
      const bytes = new Uint8Array(Buffer.from(args, 'base64'))
      const started = { ...run, id: `${key}:${job.id}`, queue, args: bytes }
      await this.patiently(() => calls.startScheduled(queue, job, started))
    } catch (error) {
      if (isTransient(error) || this.closing !== null) throw error
      this.warn(
        null,
        `a schedule of queue ${queue} starts no run: ${(error as Error).message}; schedule it again`,
      )
      await calls.drop(queue, job)
    }
  }

  /** Calls `listener` for each warning; without one they go to `process.emitWarning`. */
  onWarning(listener: (warning: DurableWarning) => void): () => void {
    checkFunction('onWarning(listener)', listener)
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** Calls `listener` when an attempt of a run ends here. Returns a function that removes it. */
  onAttempt(listener: (report: AttemptReport) => void): () => void {
    checkFunction('onAttempt(listener)', listener)
    this.watchers.add(listener)
    return () => this.watchers.delete(listener)
  }

  private tellAttempt(report: AttemptReport): void {
    for (const watcher of this.watchers) callListener(watcher, report)
  }

  /** @internal Calls `observer` for each run that this process has, claims, ends or lets go. */
  observe(observer: (activity: Activity) => void): void {
    this.worker?.claims().forEach(observer)
    this.observers.add(observer)
  }

  private warn(run: string | null, message: string): void {
    // A database that is away fails once a second, and once a minute is enough to say so.
    const now = performance.now()
    if (run === null && now - (this.warnedAt.get(message) ?? -Infinity) < WARN_AGAIN_MS) return
    if (run === null) this.warnedAt.set(message, now)
    if (this.listeners.size === 0) {
      warn(
        run === null ? `heddle/durable: ${message}` : `heddle/durable: run ${run}: ${message}`,
        'HEDDLE_DURABLE',
      )
      return
    }
    for (const listener of this.listeners) callListener(listener, { run, message })
  }

  private hear(news: News): void {
    this.worker?.hear(news)
    for (const wait of this.waits) if (wait.wants(news)) wait.wake()
  }

  /** @internal Resolves at the next news that `wants` accepts, or after a while. */
  nextNews(wants: (news: News) => boolean): Heard {
    let wake: () => void = () => undefined
    const promise = new Promise<void>(resolved => (wake = resolved))
    const forget = (): void => {
      clearTimeout(timer)
      this.waits.delete(wait)
      wake()
    }
    const wait = { wants, wake: forget }
    const timer = setTimeout(forget, LOOK_AGAIN_MS)
    this.waits.add(wait)
    return { promise, forget }
  }

  /** @internal The state and the outcome of a run. Those of many runs are read together. */
  async outcomeOf(id: string): Promise<Row> {
    const row = await this.patiently(() => this.outcomes.add(id))
    if (row === null) throw new RunMissingError(id)
    return row
  }

  /** @internal The row of a run, without its large columns. */
  rowOf(id: string): Promise<Row> {
    return this.patiently(() => this.store.reads.rowOf(id))
  }

  /** @internal Repeats while the database is away. */
  patiently<T>(work: () => Promise<T>): Promise<T> {
    return this.whileOpen(() => this.store.patiently(work, () => this.closing !== null))
  }

  /** @internal */
  async whileOpen<T>(work: () => Promise<T>): Promise<T> {
    this.throwIfClosed()
    try {
      return await work()
    } catch (error) {
      // A database that is closed under a statement has its own words for that.
      this.throwIfClosed(error)
      throw error
    }
  }

  private throwIfClosed(cause?: unknown): void {
    if (this.closing !== null) throw new Error('this Durable is closed; open another one', { cause })
  }

  /**
   * Lets the runs of this process go on elsewhere, from where they are, and closes the database. The kernel
   * stays open. `grace`: milliseconds for that; a run whose state cannot be written by then goes on from its
   * last checkpoint.
   */
  close(options: { readonly grace?: number } = {}): Promise<void> {
    refuseUnknown('close(options)', options, { grace: true })
    const { grace = this.options.grace ?? 10_000 } = options
    checkTime('grace', grace)
    this.closing ??= this.closeNow(grace)
    return this.closing
  }

  private async closeNow(grace: number): Promise<void> {
    await this.worker?.drain(grace)
    for (const wait of this.waits) wait.wake()
    await this.stopListening()
    await this.store.engine.close()
    await this.database.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

export interface DurableWarning {
  /** The run that it is about; null: the database or the queue. */
  readonly run: string | null
  readonly message: string
}

function checkFunction(call: string, listener: unknown): void {
  if (typeof listener !== 'function')
    throw new TypeError(`${call}: ${show(listener)} is not a function; give a function`)
}

function checkScheduleKey(call: string, key: unknown): asserts key is string {
  if (typeof key !== 'string' || !/^[\w.-]{1,100}$/.test(key))
    throw new TypeError(
      `${call}(key): ${show(key)} is not a key; give up to 100 letters, digits, dots, dashes and underscores`,
    )
}

type Scheduled = Omit<NewRun, 'args'> & { readonly args: string; readonly key: string }

async function openDatabase(options: DurableOptions, onError: (error: Error) => void): Promise<Database> {
  const { database, folder = '.heddle/runs', concurrency = 8 } = options
  if (database === undefined)
    return await openEmbedded(folder.startsWith('memory:') ? folder : absolute(folder))
  return await openPostgres({ url: database, connections: Math.min(20, 4 + concurrency), onError })
}
