import { checkTime } from '../../coroutine/core/blocking.ts'
import { refuseUnknown, show } from '../../coroutine/core/knownoptions.ts'
import { printsAs } from '../../coroutine/core/printed.ts'
import { endsWithin } from '../../machine/timekeeper/alarm.ts'
import { isMail } from '../../machine/core/mail.ts'
import { cpuAccount } from '../../sched/core/account.ts'
import { SimulatedMachine } from '../../machine/simulated/simulatedmachine.ts'
import {
  assembleKernel,
  type BootedKernel,
  planKernel,
  type PlannedKernel,
  makeKernel,
  startCpus,
} from './boot.ts'
import { Admission } from '../spawn/admission.ts'
import { enterKernel, leaveKernel } from '../../thread/context.ts'
import { type CloseOptions, closeSettings } from './close.ts'
import { killUnstarted } from '../join/cancel.ts'
import { Collector } from '../join/collector.ts'
import { captureContextWord } from '../cpu/context.ts'
import { CpuSet } from './cpuset.ts'
import { KernelClosedError, SpawnQueueFullError } from '../join/errors.ts'
import { LOAD_MODULE } from '../spawn/functions.ts'
import { runBootHooks } from './hooks.ts'
import { KernelMonitor } from './monitor.ts'
import {
  JOB_ARGS_MAILED,
  JOB_BOOTER,
  JOB_DETACHED,
  JOB_IMAGE_BYTES,
  JOB_NO_IMPORTS,
  Job,
  JOB_PINNED,
  JOB_RESTARTABLE,
  KILL_ABORTED,
  LOCAL_FUNCTION,
} from '../spawn/job.ts'
import { type KernelEvents } from './kernelevents.ts'
import { BOOTING_THREAD } from './layout.ts'
import { BooterMail, type MailedArgs, type ToBooter } from '../cpu/mail.ts'
import { staysHere } from '../../payload/staying.ts'
import { checkTransfer } from '../../payload/transfer.ts'
import { movesByMessage, onlyBuffers } from '../join/transferred.ts'
import {
  FunctionReference,
  immovableError,
  moduleUrl,
  type ModuleView,
  referenceOf,
  type Spawnable,
  type SpawnArguments,
} from '../spawn/modules.ts'
import { type KernelMachine } from './machines.ts'
import { type MapOptions, TaskMap } from '../spawn/map.ts'
import {
  checkArguments,
  checkSpawnOptions,
  type KernelOptions,
  type ResizeOptions,
  resizeOptions,
  type SpawnOptions,
} from './options.ts'
import { type Launch, launchOf } from './launch.ts'
import { type Origin, Origins } from '../spawn/origins.ts'
import { LoadedPolicy, policyAddress, type PolicyOptions, policyOptions } from './policy.ts'
import { rescuer } from '../recovery/recovery.ts'
import { withRunDefaults } from './rundefaults.ts'
import { SimulatedDriver } from './simulateddriver.ts'
import { TaskScope } from '../scope/scope.ts'
import { type JobSpec, noOptions, spawnJob, taskOptions } from '../spawn/spawn.ts'
import { insteadOf, readResumed, type ResumedTask, type ResumeOptions } from './resume.ts'
import { KernelSummary } from './summary.ts'
import { Task } from '../join/task.ts'
import { CloseDeadline } from './closedeadline.ts'
import type { KernelView } from './view.ts'
import { CpuDeaths } from '../recovery/cpudeaths.ts'
import { ModuleImports } from '../spawn/imports.ts'
import { KernelReports } from './reports.ts'
import { Shutdown, STOP_MS } from './shutdown.ts'

/**
 * A kernel: CPUs that run tasks. This is the side of the booting thread; the functions that tasks call are in
 * cpu/current.ts.
 */
export class Kernel {
  private readonly booted: BootedKernel
  private readonly collector: Collector
  private readonly driver: SimulatedDriver | null
  private readonly origins = new Origins()
  private readonly imports: ModuleImports
  private readonly reports: KernelReports
  private readonly monitor: KernelMonitor
  private roomWaiters: (() => void)[] = []
  private closing: Promise<void> | null = null
  private readonly closeDeadline = new CloseDeadline()
  private readonly shutdown: Shutdown
  private readonly deaths: CpuDeaths
  private undoHooks: () => void = () => undefined
  private launch: Launch | null = null
  private readonly cpuSet: CpuSet
  private readonly mail: BooterMail
  private readonly admission: Admission | null

  private constructor(booted: BootedKernel, onKick: { call: () => void }) {
    if (booted === undefined)
      throw new TypeError('new Kernel(): a kernel starts threads first; write await Kernel.boot(options)')
    const { machine, settings, view } = booted
    this.booted = booted
    this.reports = new KernelReports(booted)
    this.monitor = new KernelMonitor(view, settings, {
      nameOf: job => this.nameOf(job),
      evict: cpu => void machine.terminate(cpu),
      stuck: (report, evict) => this.reports.stuck(report, evict),
      deadlock: deadlock => this.reports.deadlock(deadlock),
      isFaulty: () => this.deaths.isFaulty(),
    })
    this.mail = new BooterMail(view, machine)
    view.booter = {
      mail: this.mail,
      limitGrace: (job, ms) => this.monitor.limitGrace(job, ms),
      reportDeadlock: deadlock => this.reports.deadlock(deadlock),
      functionName: fn => this.imports.nameOf(fn),
    }
    this.collector = new Collector(view, this.mail, {
      collected: () => this.madeRoom(),
      failed: failure => this.reports.failure(failure),
      nameOf: job => this.nameOf(job),
      busy: () => this.monitor.start(),
      idle: () => this.monitor.stop(),
    })
    this.cpuSet = new CpuSet(
      view,
      machine,
      { min: settings.minCpus, max: settings.cpus, idle: settings.idle },
      {
        online: cpu => {
          this.deaths.restarts.isReady(cpu)
          this.reports.listeners.emit('online', { cpu })
          this.admission?.admit()
        },
        offline: cpu => void this.reports.listeners.emit('offline', { cpu }),
      },
    )
    this.admission =
      settings.tasksPerCpu === Infinity ? null : new Admission(view, this.cpuSet, settings.tasksPerCpu)
    this.driver =
      machine instanceof SimulatedMachine
        ? new SimulatedDriver(
            machine,
            () => void this.collector.collect(),
            () => !view.completions.isEmpty,
          )
        : null
    const { collector, cpuSet, driver, mail, reports } = this
    this.shutdown = new Shutdown(booted, collector, reports, this.closeDeadline)
    const terminateAll = () => this.shutdown.terminateAll()
    this.deaths = new CpuDeaths({ booted, collector, mail, cpuSet, reports, driver, terminateAll })
    this.shutdown.onTerminate = () => {
      this.deaths.isEnding = true
      this.deaths.isTerminating = true
    }
    this.imports = new ModuleImports(this, booted, driver !== null, (reference, args, options) =>
      this.start(reference, args, options, null),
    )
    if (driver !== null) onKick.call = () => driver.kick()
  }

  /** Boots a kernel. Resolves when every CPU runs. */
  static async boot(asked: KernelOptions = {}): Promise<Kernel> {
    const options = withRunDefaults(asked)
    const onKick = { call: () => {} }
    const booted = await makeKernel(options, () => onKick.call())
    const kernel = new Kernel(booted, onKick)
    const launch = launchOf(booted.view)
    launch?.hold()
    const { minCpus } = booted.settings
    await startCpus(booted.machine, booted.view.s, minCpus)
    kernel.cpuSet.started(minCpus)
    kernel.attach(options)
    kernel.launch = launch
    await launch?.continue()
    return kernel
  }

  /**
   * @internal Boots a kernel without waiting for its CPUs, on the machine that `make` creates: spawned tasks
   * wait for the first CPU. The death of a CPU before it takes tasks is reported like any other. `startsCpus`
   * false: the caller starts and ends CPUs itself, by `internals.cpuSet`.
   */
  static bootNow(
    asked: KernelOptions,
    make: (planned: PlannedKernel, options: KernelOptions) => KernelMachine,
    startsCpus = true,
  ): Kernel {
    const options = withRunDefaults(asked)
    const planned = planKernel(options)
    const kernel = new Kernel(
      assembleKernel(planned, make(planned, options), () => undefined),
      { call: () => undefined },
    )
    const launch = launchOf(kernel.booted.view)
    launch?.hold()
    kernel.attach(options)
    if (!startsCpus) kernel.cpuSet.takeOver()
    else for (let cpu = 0; cpu < planned.settings.minCpus; cpu++) void kernel.cpuSet.start(cpu)
    kernel.launch = launch
    void launch?.continue()
    return kernel
  }

  /** Connects the booting thread to a kernel whose CPUs run, or are about to. */
  private attach(options: KernelOptions): void {
    const { machine, view } = this.booted
    enterKernel(view)
    machine.onMessage?.((cpu, message) => {
      if (isMail(message)) this.mail.receive(message.heddleMail as ToBooter)
      else this.reports.listeners.emit('message', { cpu, message })
    })
    machine.onDeath(death => this.deaths.died(death))
    if (machine.isGone !== undefined) {
      view.thread.rescuer = {
        repairDead: rescuer(view, machine),
        serveWhileBlocked: () => this.serveWhileBlocked(),
      }
    }
    this.undoHooks = runBootHooks(this, view, {
      control: options.control ?? true,
      debug: options.debug ?? false,
      events: this.reports.listeners,
    })
  }

  /** The maximum of CPUs. */
  get cpus(): number {
    return this.booted.machine.cpus
  }

  /** CPUs that run, or are about to: between the `min` and the `max` of the option `cpus`. */
  get online(): number {
    return this.cpuSet.count
  }

  /**
   * Sets the number of CPUs, from 1 to the maximum of the boot, whatever the work. Resolves when new CPUs
   * take tasks and old ones are gone. Movable tasks of a CPU that ends move to the others; other tasks that
   * it has started keep it until they end, or for `grace` milliseconds.
   */
  async resize(cpus: number, options: ResizeOptions = {}): Promise<void> {
    this.throwIfClosed('resize')
    refuseUnknown('resize(cpus, options)', options, resizeOptions)
    const { grace = Infinity } = options
    checkTime('grace', grace)
    if (typeof cpus !== 'number' || !Number.isInteger(cpus) || cpus < 1 || cpus > this.cpus) {
      throw new RangeError(
        `resize(${show(cpus)}): the kernel has room for 1 to ${this.cpus} CPUs; boot it with cpus: { max } for more`,
      )
    }
    await this.cpuSet.resize(cpus, grace)
  }

  /** Figures since the boot; `String(kernel.summary)` is one line. */
  get summary(): KernelSummary {
    const { completed, failed, active } = this.collector
    const { view, machine } = this.booted
    return new KernelSummary(view, machine.now(), { completed, failed, active, online: this.online })
  }

  /** What `console.log` and JSON show of it. */
  toJSON(): { readonly cpus: number; readonly online: number; readonly active: number } {
    const { cpus, online, active } = this.summary
    return { cpus, online, active }
  }

  get [Symbol.toStringTag](): string {
    return 'Kernel'
  }

  /** @internal */
  get internals(): {
    readonly view: KernelView
    readonly machine: KernelMachine
    readonly cpuSet: CpuSet
    /** The functions of each module that was imported, by its URL. */
    readonly imported: ReadonlyMap<string, Promise<Readonly<Record<string, Spawnable>>>>
    /** Why it runs no more tasks: it is closed, or a fault has ended it. Null: it runs. */
    readonly endedBy: () => Error | null
    readonly isSimulated: boolean
  } {
    const { view, machine } = this.booted
    const endedBy = (): Error | null => this.endedBy('spawn')
    const { imported } = this.imports
    return { view, machine, cpuSet: this.cpuSet, imported, endedBy, isSimulated: this.driver !== null }
  }

  /** Tasks that have not ended. */
  get active(): number {
    return this.collector.active
  }

  /**
   * Loads a module on every CPU, and returns its functions as arguments of `spawn`. `M` is the module's type:
   * `kernel.import<typeof import('./work.ts')>(new URL('./work.ts', import.meta.url))`.
   */
  async import<M = Record<string, (...args: any[]) => any>>(url: URL | string): Promise<ModuleView<M>> {
    this.throwIfClosed('import')
    return (await this.imports.import(moduleUrl(url))) as unknown as ModuleView<M>
  }

  /**
   * Starts a task that runs the function with these arguments, on the first free CPU. Throws when an argument
   * cannot travel, and when there is no room (await `ready` before the next spawn).
   */
  spawn<A extends readonly unknown[], T>(fn: Spawnable<A, T>, ...rest: SpawnArguments<A>): Task<T>
  spawn(fn: Spawnable, args: readonly unknown[] = [], options: SpawnOptions = noOptions): Task<unknown> {
    const reference = referenceOf(this, fn)
    this.throwIfClosed(`spawn(${reference.name})`)
    checkArguments(reference.name, args)
    if (this.collector.waiting >= this.booted.settings.queue) {
      this.collector.collect()
      if (this.collector.waiting >= this.booted.settings.queue)
        throw new SpawnQueueFullError(this.booted.settings.queue)
    }
    return this.start(reference, args, options, this.origins.take(reference, Kernel.prototype.spawn))
  }

  /**
   * Goes on with a task that `suspendToBytes` has taken out of a kernel: this one, or one of another process
   * or machine that has the same code. The CPUs import the task's modules from where they were; import them
   * first by `kernel.import` if they are elsewhere now.
   */
  resume<T = unknown>(image: Uint8Array, options: ResumeOptions<T> = {}): Task<T> {
    this.throwIfClosed('resume')
    const resumed = readResumed(image, options, this.cpus)
    const task = this.launchResumed(resumed) as Task<T>
    const { onCodeChanged } = options
    if (onCodeChanged !== undefined) task.instead = insteadOf(this, resumed, image, onCodeChanged)
    return task
  }

  private launchResumed({ image, name, options, imports }: ResumedTask): Task<unknown> {
    const { view } = this.booted
    const word = view.codec.encode(image, 'image')
    let job: number
    try {
      job = spawnJob(view, {
        fn: LOCAL_FUNCTION,
        name,
        args: 0,
        image: word,
        context: 0,
        control: JOB_BOOTER | JOB_IMAGE_BYTES | (imports ? 0 : JOB_NO_IMPORTS),
        owner: BOOTING_THREAD,
        spawner: 0,
        task: { ...taskOptions(view, options, name), name },
        checkpoint: options.checkpoint,
      })
    } catch (error) {
      view.codec.free(word)
      throw error
    }
    const task = new Task<unknown>(view, job, name, options, null)
    this.collector.add(task)
    if (this.cpuSet.isElastic) this.cpuSet.demand()
    this.driver?.kick()
    return task
  }

  /**
   * Runs a function over many items, as tasks:
   * `for await (const result of kernel.map(work.fn, items, { concurrency: 8 }))`. Items are taken only as
   * fast as results are.
   */
  map<I, T>(
    fn: Spawnable<readonly [item: I, ...rest: any[]], T>,
    items: Iterable<I> | AsyncIterable<I>,
    options?: MapOptions,
  ): TaskMap<T> {
    referenceOf(this, fn)
    this.throwIfClosed(`map(${fn.name})`)
    return new TaskMap<T>(this, fn, items, options)
  }

  /**
   * A scope, which its tasks do not outlive:
   * `await kernel.scope(async scope => { scope.spawn(work.fn, [1]) })`. Leaving it waits for its tasks. When
   * the body or a task fails, the others are killed first, and the failures of tasks become an
   * AggregateError. Without a body: `await using scope = kernel.scope()`.
   */
  scope(): TaskScope
  scope<R>(body: (scope: TaskScope) => R | PromiseLike<R>): Promise<R>
  scope<R>(body?: (scope: TaskScope) => R | PromiseLike<R>): TaskScope | Promise<R> {
    if (body !== undefined && typeof body !== 'function')
      throw new TypeError(
        `kernel.scope(${show(body)}): the body is not a function; give async scope => { … }, or nothing and \`await using\``,
      )
    const scope = new TaskScope(this)
    return body === undefined ? scope : scope.run(body)
  }

  /**
   * Puts the kernel's tasks under a scheduling policy: 'handoff', 'fifo', 'vtime', 'latency', or the address
   * of a policy module. Running tasks go on. Resolves when every CPU has loaded it.
   */
  async loadPolicy(policy: URL | string, options: PolicyOptions = {}): Promise<LoadedPolicy> {
    this.throwIfClosed('loadPolicy')
    refuseUnknown('loadPolicy(policy, options)', options, policyOptions)
    return await LoadedPolicy.load(this.booted.view, policyAddress(policy), options, job => this.nameOf(job))
  }

  /** Resolves when there is room for another task. */
  get ready(): Promise<void> {
    if (this.collector.waiting < this.booted.settings.queue) return Promise.resolve()
    return new Promise(resolve => this.roomWaiters.push(resolve))
  }

  /** Calls `listener` at each such event of the kernel. Returns a function that removes it. */
  on<K extends keyof KernelEvents>(event: K, listener: (event: KernelEvents[K]) => void): () => void {
    return this.reports.listeners.add(event, listener)
  }

  /**
   * Ends the kernel: the booting thread can spawn no more, the tasks end by themselves or are killed, then
   * the CPUs end. Resolves when all of that is done.
   */
  close(options: CloseOptions = {}): Promise<void> {
    this.closeDeadline.apply(closeSettings(options))
    this.closing ??= this.shutDown()
    return this.closing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /**
   * @internal Ends the kernel immediately: its CPUs are terminated, and unfinished tasks never end. Resolves
   * when that is done.
   */
  abandon(): Promise<void> {
    this.closing ??= this.tearDown(true)
    return this.closing
  }

  private async shutDown(): Promise<void> {
    await this.shutdown.endTasks(this.admission, this.driver !== null)
    if (this.launch !== null) await endsWithin(this.launch.end(), STOP_MS)
    await this.tearDown(false)
  }

  private async tearDown(terminates: boolean): Promise<void> {
    const { view } = this.booted
    this.undoHooks()
    this.monitor.stop()
    this.driver?.close()
    this.collector.close()
    this.deaths.isEnding = true
    this.cpuSet.close()
    if (terminates) await this.shutdown.terminateAll()
    await this.shutdown.endMachine()
    view.codec.published.close()
    leaveKernel(view)
  }

  /** Serves other threads while this thread blocks. */
  private serveWhileBlocked(): void {
    const { published } = this.booted.view.codec
    if (published.isAsked) published.serve()
    this.deaths.releaseUnreported()
    this.reports.isBlocked = true
    this.monitor.takeDeadlocks()
    this.reports.isBlocked = false
  }

  /**
   * @internal Numbers the functions of a module before any CPU has loaded it: each CPU does when it starts.
   * `names` are all functions that it exports.
   */
  declare(url: string, names: readonly string[]): readonly FunctionReference[] {
    return this.imports.declare(url, names)
  }

  /** Sends the published objects of a payload to CPUs that are being started. */
  private sendPublished(word: number): void {
    const published = this.booted.view.codec.publishedIn(word)
    if (published.length === 0 || this.booted.machine.post === undefined) return
    for (const cpu of this.cpuSet.coming()) this.mail.sendPublished(cpu, published)
  }

  /** Chooses the CPU for a task whose arguments only a message can carry. */
  private cpuForMail(affinity: readonly number[] | undefined): number {
    const { machine, view } = this.booted
    if (machine.post === undefined)
      throw new TypeError('transfer: a simulated machine can move only ArrayBuffers; use machine: "threads"')
    const allowed = affinity ?? Array.from({ length: machine.cpus }, (_, cpu) => cpu)
    let best = -1
    let least = Infinity
    for (const cpu of allowed) {
      if (!this.cpuSet.isHere(cpu)) continue
      const load = cpuAccount(view.i32, view.s.queueOf(cpu)).load
      if (load < least) {
        best = cpu
        least = load
      }
    }
    if (best >= 0) return best
    const coming = allowed.find(cpu => this.cpuSet.isComing(cpu)) ?? this.cpuSet.grow()
    if (coming < 0)
      throw new Error(
        'transfer: no CPU can receive the transferred objects now; try again when a CPU is back',
      )
    return coming
  }

  private start(
    reference: FunctionReference,
    args: readonly unknown[],
    options: SpawnOptions,
    origin: Origin,
  ): Task<unknown> {
    const { view } = this.booted
    if (options !== noOptions) checkSpawnOptions(options, this.cpus)
    const { name, detached, restartable, transfer } = options
    if ((options.movable === true || options.checkpoint !== undefined) && reference.immovable !== null)
      throw immovableError(reference.name, reference.immovable)
    let control = JOB_BOOTER | (detached ? JOB_DETACHED : 0) | (restartable ? JOB_RESTARTABLE : 0)
    if (options.movable === false) control |= JOB_PINNED
    const context = captureContextWord(view.codec)
    let word = 0
    let job: number
    let mailed: MailedArgs | null = null
    const waits = this.admission !== null && reference.number !== LOAD_MODULE
    try {
      if (transfer !== undefined && onlyBuffers(transfer))
        mailed = this.moveArguments(args, transfer, options)
      if (mailed === null && (transfer === undefined || onlyBuffers(transfer))) {
        word = view.codec.encodeList(args, 'args', transfer)
        if (word > 0 && this.cpuSet.isAnyComing) this.sendPublished(word)
      } else {
        if (restartable)
          throw new TypeError(
            'restartable: transferred objects cannot be sent a second time; leave out one of the two options',
          )
        mailed ??= this.mail.sendArgs(this.cpuForMail(options.affinity), args, transfer ?? [])
        word = view.codec.encode(mailed, 'args')
        control |= JOB_ARGS_MAILED
        options = { ...options, affinity: [mailed.cpu] }
      }
      const spec: JobSpec = {
        fn: reference.number,
        name: name ?? reference.name,
        args: word,
        context,
        control,
        owner: BOOTING_THREAD,
        spawner: 0,
        task: taskOptions(view, options, name ?? reference.name),
        checkpoint: options.checkpoint,
      }
      const { signal } = options
      const isOver = signal?.aborted === true
      job = spawnJob(
        view,
        spec,
        isOver ? made => killUnstarted(view, made, KILL_ABORTED, signal.reason) : undefined,
        !waits,
      )
    } catch (error) {
      view.codec.free(word)
      view.codec.free(context)
      if (mailed !== null) this.mail.dropArgs(mailed)
      throw error
    }
    const task = new Task<unknown>(view, job, name ?? reference.name, options, origin)
    if (mailed !== null) this.mail.sent(task, mailed.cpu)
    this.collector.add(task)
    if (waits) this.admission?.add(task, options)
    if (this.cpuSet.isElastic) this.cpuSet.demand()
    this.driver?.kick()
    return task
  }

  /**
   * Moves large buffers among the arguments by a message to the one CPU that the task can start on. Null:
   * nothing was sent, and the arguments go through the arena. A restartable task needs them again.
   */
  private moveArguments(
    args: readonly unknown[],
    transfer: readonly ArrayBuffer[],
    { affinity, restartable }: SpawnOptions,
  ): MailedArgs | null {
    const { machine, view } = this.booted
    const cpu = affinity === undefined && machine.cpus === 1 ? 0 : affinity?.length === 1 ? affinity[0]! : -1
    if (cpu < 0 || restartable === true || machine.post === undefined || !this.cpuSet.isHere(cpu)) return null
    if (!view.codec.published.isDirect || !movesByMessage(args, transfer)) return null
    checkTransfer(transfer)
    try {
      return this.mail.sendArgs(cpu, args, transfer)
    } catch {
      // A message carries less than the arena: no Proxy, no buffer of a WebAssembly memory.
      return null
    }
  }

  private nameOf(job: number): string {
    const { view } = this.booted
    const handle = this.collector.handleOf(job)
    if (handle !== undefined) return handle.name
    return this.imports.nameOf(view.i32[job + Job.fn]) ?? `#${view.i32[job + Job.number]}`
  }

  private madeRoom(): void {
    if (this.roomWaiters.length === 0 || this.collector.waiting >= this.booted.settings.queue) return
    for (const resolve of this.roomWaiters.splice(0)) resolve()
  }

  private throwIfClosed(what: string): void {
    const ended = this.endedBy(what)
    if (ended !== null) throw ended
  }

  private endedBy(what: string): Error | null {
    if (this.closing !== null) return new KernelClosedError(what)
    if (this.booted.view.thread.sections !== 0) this.deaths.isFaulty()
    return this.deaths.broken
  }
}

printsAs(Kernel, 'Kernel')
staysHere(Kernel, 'a task spawns by spawn() of heddle, without it')
