import { throwIfInside } from '../../arena/sync/section.ts'
import { refuseUnknown } from '../../coroutine/core/knownoptions.ts'
import { endsWithin } from '../../machine/timekeeper/alarm.ts'
import { CPU_ONLINE, cpuRecord, CpuRecord } from '../../machine/core/cpurecord.ts'
import { awaitRescues } from '../../machine/core/deaths.ts'
import type { CpuDeath } from '../../machine/core/machine.ts'
import { isMail } from '../../machine/core/mail.ts'
import { cpuAccount } from '../../sched/core/account.ts'
import { isRecording } from '../../arena/rings/eventring.ts'
import type { TaskOptions } from '../../sched/core/fork.ts'
import type { LostTask } from '../../sched/recovery/lost.ts'
import { RunQueue } from '../../sched/core/runqueue.ts'
import { SimulatedMachine } from '../../machine/simulated/simulatedmachine.ts'
import {
  assembleKernel,
  type BootedKernel,
  codeSource,
  planKernel,
  type PlannedKernel,
  makeKernel,
  startCpus,
} from './boot.ts'
import { Admission } from '../spawn/admission.ts'
import { enterKernel, leaveKernel } from '../../thread/context.ts'
import { type CloseOptions, closeSettings, killAll } from './close.ts'
import { Collector, type UnjoinedFailure } from '../join/collector.ts'
import { captureContextWord } from '../cpu/context.ts'
import { endedBy } from './counters.ts'
import { CpuSet } from './cpuset.ts'
import type { Deadlock } from '../recovery/deadlock.ts'
import {
  CrashLoopError,
  describe,
  KernelClosedError,
  KernelFaultError,
  RecoveryError,
  SpawnQueueFullError,
  TaskKilledError,
  ThreadLeftError,
} from '../join/errors.ts'
import { type ExportedFunction, importModule, LOAD_MODULE, warnOfModule } from '../spawn/functions.ts'
import { runBootHooks } from './hooks.ts'
import { KernelMonitor } from './monitor.ts'
import {
  JOB_ARGS_MAILED,
  JOB_BOOTER,
  JOB_DETACHED,
  Job,
  OUTCOME_PENDING,
  JOB_POSTED,
  JOB_RESTARTABLE,
  JOB_RESULT_MAILED,
} from '../spawn/job.ts'
import { type KernelEvents, KernelListeners, type StuckTask, warn } from './kernelevents.ts'
import { BOOTING_THREAD } from './layout.ts'
import { BooterMail, type MailedArgs, type ToBooter } from '../cpu/mail.ts'
import { onlyBuffers } from '../join/transferred.ts'
import {
  FunctionReference,
  moduleUrl,
  type ModuleView,
  moduleView,
  referenceOf,
  type Spawnable,
  type SpawnArguments,
} from '../spawn/modules.ts'
import { type KernelMachine, loaderUrl } from './machines.ts'
import { type MapOptions, TaskMap } from '../spawn/map.ts'
import { ModuleTable } from '../spawn/moduletable.ts'
import { checkSpawnOptions, type KernelOptions, priorityOf, type SpawnOptions } from './options.ts'
import { type Launch, launchOf } from './launch.ts'
import { type Origin, Origins } from '../spawn/origins.ts'
import { LoadedPolicy, policyAddress, type PolicyOptions, policyOptions } from './policy.ts'
import { type Recovery, recoverCpu, releaseDead, rescuer } from '../recovery/recovery.ts'
import { Restarts } from '../recovery/restarts.ts'
import { withRunDefaults } from './rundefaults.ts'
import { SimulatedDriver } from './simulateddriver.ts'
import { TaskScope } from '../scope/scope.ts'
import { type JobSpec, spawnJob } from '../spawn/spawn.ts'
import { KernelSummary } from './summary.ts'
import { Task } from '../join/task.ts'
import { CloseDeadline } from './closedeadline.ts'
import type { KernelView } from './view.ts'

const noOptions: SpawnOptions = {}
const noTaskOptions: TaskOptions = {}

/** Milliseconds between two rounds of kills while a kernel closes. */
const KILL_AGAIN_MS = 50

/**
 * Milliseconds that evictions and their recovery may take while a kernel closes; then its CPUs are
 * terminated.
 */
const EVICTIONS_MS = 1000

/** Milliseconds that idle CPUs may take to stop, and terminated ones to end. */
const STOP_MS = 5000

/**
 * A kernel: CPUs that run tasks. This is the side of the thread that booted it; what tasks themselves call is
 * in current.ts.
 */
export class Kernel {
  private readonly booted: BootedKernel
  private readonly collector: Collector
  private readonly driver: SimulatedDriver | null
  private readonly origins = new Origins()
  private readonly modules: ModuleTable
  private readonly imported = new Map<string, Promise<Record<string, FunctionReference>>>()
  private readonly functionNames = new Map<number, string>()
  private readonly listeners = new KernelListeners()
  private readonly monitor: KernelMonitor
  private roomWaiters: (() => void)[] = []
  private closing: Promise<void> | null = null
  private readonly closeDeadline = new CloseDeadline()
  /** CPUs whose threads did not end when the kernel closed. */
  private readonly left = new Set<number>()
  private undoHooks: () => void = () => undefined
  private launch: Launch | null = null
  private isEnding = false
  private isBlocked = false
  private readonly cpuSet: CpuSet
  private readonly mail: BooterMail
  private readonly admission: Admission | null
  private readonly restarts: Restarts
  /** CPUs that are not started again. */
  private readonly given = new Set<number>()
  /** Why no CPU is left. */
  private broken: CrashLoopError | KernelFaultError | null = null
  /** Of CPUs that are gone, and whose death has not been told yet: the tasks that are lost with them. */
  private readonly released = new Map<number, readonly LostTask[]>()

  private constructor(booted: BootedKernel, onKick: { call: () => void }) {
    const { machine, settings, view } = booted
    this.booted = booted
    this.restarts = new Restarts(cpu => endedBy(view, cpu))
    this.monitor = new KernelMonitor(view, settings, {
      nameOf: job => this.nameOf(job),
      evict: cpu => void machine.terminate(cpu),
      stuck: (report, evict) => this.reportStuck(report, evict),
      deadlock: deadlock => this.reportDeadlock(deadlock),
      isFaulty: () => this.isFaulty(),
    })
    this.mail = new BooterMail(view, machine)
    view.booter = {
      mail: this.mail,
      limitGrace: (job, ms) => this.monitor.limitGrace(job, ms),
      reportDeadlock: deadlock => this.reportDeadlock(deadlock),
    }
    this.collector = new Collector(view, this.mail, {
      collected: () => this.madeRoom(),
      failed: failure => this.reportFailure(failure),
      nameOf: job => this.nameOf(job),
      busy: () => this.monitor.start(),
      idle: () => this.monitor.stop(),
    })
    this.modules = new ModuleTable(view.i32, view.plan.moduleTable)
    this.cpuSet = new CpuSet(
      view,
      machine,
      { min: settings.minCpus, max: settings.cpus, idle: settings.idle },
      {
        online: cpu => {
          this.restarts.isReady(cpu)
          this.listeners.emit('online', { cpu })
          this.admission?.admit()
        },
        offline: cpu => void this.listeners.emit('offline', { cpu }),
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
    const { driver } = this
    if (driver !== null) onKick.call = () => driver.kick()
  }

  /** Boots a kernel: resolves when every CPU runs. */
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
   * @internal Boots a kernel without waiting for its CPUs, on a machine that `make` makes: tasks that are
   * spawned meanwhile wait for the first CPU. One that dies before it takes tasks is told as any other.
   * `startsCpus` false: the caller starts and ends CPUs itself, by `internals.cpuSet`.
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

  /** What the booting thread does for a kernel whose CPUs run, or are about to. */
  private attach(options: KernelOptions): void {
    const { machine, view } = this.booted
    enterKernel(view)
    machine.onMessage?.((cpu, message) => {
      if (isMail(message)) this.mail.receive(message.heddleMail as ToBooter)
      else this.listeners.emit('message', { cpu, message })
    })
    machine.onDeath(death => this.died(death))
    if (machine.isGone !== undefined) {
      view.thread.rescuer = {
        repairDead: rescuer(view, machine),
        serveWhileBlocked: () => this.serveWhileBlocked(),
      }
    }
    this.undoHooks = runBootHooks(this, view, {
      control: options.control ?? true,
      debug: options.debug ?? false,
      events: this.listeners,
    })
  }

  /** The most CPUs that there may be. */
  get cpus(): number {
    return this.booted.machine.cpus
  }

  /**
   * CPUs that there are now, or that are about to be: between the `min` and the `max` of the option `cpus`.
   */
  get online(): number {
    return this.cpuSet.count
  }

  /** What the kernel has done since its boot; `String(kernel.summary)` is one line for people. */
  get summary(): KernelSummary {
    const { completed, failed, active } = this.collector
    const { view, machine } = this.booted
    return new KernelSummary(view, machine.now(), { completed, failed, active, online: this.online })
  }

  /** @internal */
  get internals(): { readonly view: KernelView; readonly machine: KernelMachine; readonly cpuSet: CpuSet } {
    return { view: this.booted.view, machine: this.booted.machine, cpuSet: this.cpuSet }
  }

  /** Tasks that have not ended. */
  get active(): number {
    return this.collector.active
  }

  /**
   * Loads a module on every CPU, and gives its functions, to be spawned. `M` is the module's type:
   * `kernel.import<typeof import('./work.ts')>(new URL('./work.ts', import.meta.url))`.
   */
  async import<M = Record<string, (...args: any[]) => any>>(url: URL | string): Promise<ModuleView<M>> {
    this.throwIfClosed('import')
    const href = moduleUrl(url)
    let loading = this.imported.get(href)
    if (loading === undefined) {
      loading = this.load(href)
      this.imported.set(href, loading)
      loading.catch(() => this.imported.delete(href))
    }
    return (await loading) as unknown as ModuleView<M>
  }

  /**
   * Starts a task that runs the function with these arguments, on whichever CPU comes first. Throws when an
   * argument cannot travel, and when there is no room (await `ready` before the next).
   */
  spawn<A extends readonly unknown[], T>(fn: Spawnable<A, T>, ...rest: SpawnArguments<A>): Task<T>
  spawn(fn: Spawnable, args: readonly unknown[] = [], options: SpawnOptions = noOptions): Task<unknown> {
    const reference = referenceOf(this, fn)
    this.throwIfClosed(`spawn(${reference.name})`)
    if (!Array.isArray(args)) {
      throw new TypeError(
        `spawn(${reference.name}, args): the arguments are a list, as in spawn(fn, [1, 2]); got ${typeof args}`,
      )
    }
    if (this.collector.waiting >= this.booted.settings.queue) {
      this.collector.collect()
      if (this.collector.waiting >= this.booted.settings.queue)
        throw new SpawnQueueFullError(this.booted.settings.queue)
    }
    return this.start(reference, args, options, this.origins.take(reference, Kernel.prototype.spawn))
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
   * `await kernel.scope(async scope => { scope.spawn(work.fn, [1]) })`. Leaving it waits for them; when the
   * body or a task fails, the others are killed first, and failed tasks make an AggregateError. Without a
   * body: `await using scope = kernel.scope()`.
   */
  scope(): TaskScope
  scope<R>(body: (scope: TaskScope) => R | PromiseLike<R>): Promise<R>
  scope<R>(body?: (scope: TaskScope) => R | PromiseLike<R>): TaskScope | Promise<R> {
    const scope = new TaskScope(this)
    return body === undefined ? scope : scope.run(body)
  }

  /**
   * Puts the kernel's tasks under a scheduling policy: 'handoff', 'fifo', 'vtime', 'latency', or the address
   * of a module of your own. Tasks that run go on meanwhile. Resolves when every CPU has it.
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

  /** Calls `listener` whenever that happens to the kernel; what is returned ends it. */
  on<K extends keyof KernelEvents>(event: K, listener: (event: KernelEvents[K]) => void): () => void {
    return this.listeners.add(event, listener)
  }

  /**
   * Ends the kernel: no more is spawned from outside; the tasks end by themselves, or are killed; then the
   * CPUs go. Resolves when nothing of it is left.
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
   * @internal Ends the kernel where it stands: its CPUs are terminated, and tasks that have not ended never
   * do. Resolves when nothing of it is left.
   */
  abandon(): Promise<void> {
    this.closing ??= this.tearDown(true)
    return this.closing
  }

  /**
   * With a deadline it ends, whatever has happened: nothing here waits for a CPU, or for what is in the
   * arena, without a limit.
   *
   *   1  the tasks end by themselves             until the deadline
   *   2  they are killed, again and again        for a grace period, and a little more
   *   3  the CPUs are terminated, and what is left is settled from the handles alone
   *   4  a thread that does not end is reported, and left
   */
  private async shutDown(): Promise<void> {
    const { closeDeadline } = this
    const drained = this.collector.drained()
    const isDrained = await Promise.race([drained.then(() => true), closeDeadline.over.then(() => false)])
    closeDeadline.stop()
    if (!isDrained && !(await this.killUntil(drained))) {
      await this.terminateAll()
      this.collector.abandon((name, started) => {
        const how = started ? 'evicted' : 'unstarted'
        return new TaskKilledError(name, how, closeDeadline.reason, 'was killed because its kernel closed')
      })
    }
    if (this.launch !== null) await endsWithin(this.launch.end(), STOP_MS)
    await this.tearDown(false)
  }

  private async tearDown(terminates: boolean): Promise<void> {
    const { view } = this.booted
    this.undoHooks()
    this.monitor.stop()
    this.driver?.close()
    this.collector.close()
    this.isEnding = true
    this.cpuSet.close()
    if (terminates) await this.terminateAll()
    await this.endMachine()
    view.codec.published.close()
    leaveKernel(view)
  }

  /** Kills every task until none is left. False: some did not end in time. */
  private async killUntil(drained: Promise<void>): Promise<boolean> {
    const { settings, view } = this.booted
    const grace = settings.grace === Infinity ? 0 : settings.grace
    const end = performance.now() + grace + EVICTIONS_MS
    // What is spawned meanwhile, by tasks that have not ended yet, is killed too.
    while (this.collector.isBusy) {
      if (performance.now() >= end && this.driver === null) return false
      try {
        killAll(view, this.closeDeadline.reason)
        this.admission?.open()
      } catch (error) {
        this.tellFault(new RecoveryError(-1, error))
        return false
      }
      await endsWithin(drained, KILL_AGAIN_MS)
    }
    return true
  }

  private async terminateAll(): Promise<void> {
    const { machine } = this.booted
    this.isEnding = true
    await Promise.all(
      Array.from({ length: machine.cpus }, async (_, cpu) => {
        if (await endsWithin(machine.terminate(cpu), STOP_MS)) return
        machine.abandon?.(cpu)
        if (this.left.has(cpu)) return
        this.left.add(cpu)
        this.tellFault(new ThreadLeftError(cpu))
      }),
    )
  }

  private async endMachine(): Promise<void> {
    const closed = this.booted.machine.close()
    if (await endsWithin(closed, STOP_MS)) return
    await this.terminateAll()
    await endsWithin(closed, 2 * STOP_MS)
  }

  /** This thread blocks: what others need of it all the same. */
  private serveWhileBlocked(): void {
    const { published } = this.booted.view.codec
    if (published.isAsked) published.serve()
    this.releaseUntold()
    this.isBlocked = true
    this.monitor.takeDeadlocks()
    this.isBlocked = false
  }

  /**
   * @internal Makes functions of a module known before any CPU has loaded it: each CPU does when it starts.
   * `names` are all functions that it exports.
   */
  declare(url: string, names: readonly string[]): readonly FunctionReference[] {
    const { view } = this.booted
    const word = view.codec.encode(url, 'url')
    if (word > 0) view.heap.publish(word)
    const base = this.modules.add(word)
    return [...names].sort().map((name, index) => {
      this.functionNames.set(base + index, name)
      return new FunctionReference(this, url, name, base + index)
    })
  }

  /**
   * This thread blocks, and hears of no death: nobody is to wait for a CPU that is gone. The rest is done
   * when it is told.
   */
  private releaseUntold(): void {
    const { machine, view } = this.booted
    for (let cpu = 0; cpu < machine.cpus; cpu++) {
      if (this.released.has(cpu) || machine.isGone?.(cpu) !== true) continue
      const state = cpuRecord(view.plan.machine, cpu) + CpuRecord.state
      if (Atomics.load(view.i32, state) === CPU_ONLINE) this.released.set(cpu, releaseDead(view, cpu))
    }
  }

  /** A CPU has died: what it left is repaired, its tasks are seen to, and another takes its place. */
  private died(death: CpuDeath): void {
    const { machine, view } = this.booted
    this.collector.deaths.set(death.cpu, death)
    if (this.broken instanceof KernelFaultError) {
      this.listeners.emit('death', death)
      return
    }
    let recovery: Recovery
    try {
      recovery = recoverCpu(view, this.collector, death, this.released.get(death.cpu))
    } catch (error) {
      this.given.add(death.cpu)
      this.cpuSet.giveUp(death.cpu)
      this.tellFault(new RecoveryError(death.cpu, error))
      this.listeners.emit('death', death)
      return
    }
    this.released.delete(death.cpu)
    this.mail.died(death.cpu)
    this.loseMailedResults(death.cpu)
    machine.recovered(death.cpu)
    awaitRescues(view.thread, view.plan.machine, cpu => machine.isGone?.(cpu) !== false)
    // What was lost with both ends of it ended without anyone being told.
    view.completions.interrupt()
    const isWanted = this.cpuSet.died(death.cpu)
    this.listeners.emit('death', death)
    const wait = this.restarts.died(death, recovery.lost + recovery.crashed)
    if (wait === Infinity) this.giveUp(death)
    else if (isWanted) void this.replace(death.cpu, wait)
  }

  /** Jobs that have ended on the dead CPU, and whose results it had not sent. */
  private loseMailedResults(dead: number): void {
    const { i32, jobs } = this.booted.view
    for (let job = jobs.after(i32, 0); job !== 0; job = jobs.after(i32, job)) {
      const control = Atomics.load(i32, job + Job.control)
      if (Atomics.load(i32, job + Job.cpu) !== dead + 1) continue
      if ((control & JOB_RESULT_MAILED) !== 0) this.mail.loseResult(i32[job + Job.number])
      if ((control & JOB_POSTED) !== 0 && Atomics.load(i32, job + Job.outcome) !== OUTCOME_PENDING)
        this.mail.heardAll(i32[job + Job.number])
    }
  }

  private sendPublished(word: number): void {
    const published = this.booted.view.codec.publishedIn(word)
    if (published.length === 0 || this.booted.machine.post === undefined) return
    for (const cpu of this.cpuSet.coming()) this.mail.sendLent(cpu, published)
  }

  /** The CPU that a task with these options is sent to, with what only a message carries. */
  private cpuForMail(affinity: readonly number[] | undefined): number {
    const { machine, view } = this.booted
    if (machine.post === undefined)
      throw new TypeError('transfer: a simulated machine moves ArrayBuffers only; use machine: "threads"')
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
      throw new Error('transfer: no CPU can take what is transferred now; try again when one is back')
    return coming
  }

  /** Starts a CPU again, after `wait` milliseconds. */
  private async replace(cpu: number, wait: number): Promise<void> {
    if (wait > 0) await new Promise(resolve => setTimeout(resolve, wait))
    if (this.isEnding || this.cpuSet.isHere(cpu) || this.cpuSet.isComing(cpu)) return
    this.restarts.starts(cpu)
    // One that dies again is told so, and started again from there.
    if (!(await this.cpuSet.start(cpu))) return
    this.driver?.kick()
    this.listeners.emit('restart', { cpu })
  }

  /** A CPU is not started again. If it was the last, nothing will ever run. */
  private giveUp({ cpu, error }: CpuDeath): void {
    this.given.add(cpu)
    this.cpuSet.giveUp(cpu)
    const left = this.cpus - this.given.size
    const loop = new CrashLoopError(cpu, this.restarts.reasonsOf(cpu), left, error)
    if (left === 0) {
      this.broken = loop
      this.collector.abandon(() => loop)
    }
    this.tellFault(loop)
  }

  /**
   * Whether this thread has left a call of the kernel half done, with what it holds locked: nothing that
   * recovers from deaths can recover the thread that does so. Every task fails with why, and the CPUs, which
   * wait for those locks, are ended.
   */
  private isFaulty(): boolean {
    if (this.broken instanceof KernelFaultError) return true
    const { thread } = this.booted.view
    if (thread.sections === 0) return false
    let cause: unknown
    try {
      throwIfInside(thread, 'the thread that booted the kernel')
    } catch (error) {
      cause = error
    }
    const fault = new KernelFaultError(cause)
    this.broken = fault
    this.collector.abandon(() => fault, false)
    void this.terminateAll()
    this.tellFault(fault)
    return true
  }

  private tellFault(error: KernelEvents['error']): void {
    if (!this.listeners.emit('error', error)) warn(error.message, error.code)
  }

  /** Somebody writes a trace: tasks tell their names. */
  private get isRecorded(): boolean {
    const { i32, plan } = this.booted.view
    const { events } = plan.scheduler
    return events !== null && isRecording(i32, events)
  }

  private start(
    reference: FunctionReference,
    args: readonly unknown[],
    options: SpawnOptions,
    origin: Origin,
  ): Task<unknown> {
    const { view } = this.booted
    const { name, detached, restartable, transfer } = options
    if (options !== noOptions) checkSpawnOptions(options, this.cpus)
    let control = JOB_BOOTER | (detached ? JOB_DETACHED : 0) | (restartable ? JOB_RESTARTABLE : 0)
    const context = captureContextWord(view.codec)
    let word = 0
    let job: number
    let mailed: MailedArgs | null = null
    const waits = this.admission !== null && reference.number !== LOAD_MODULE
    try {
      if (transfer === undefined || onlyBuffers(transfer)) {
        word = view.codec.encodeList(args, 'args', transfer)
        if (word > 0 && this.cpuSet.isAnyComing) this.sendPublished(word)
      } else {
        if (restartable)
          throw new TypeError('restartable: what is transferred cannot be given a second time; leave it out')
        const cpu = this.cpuForMail(options.affinity)
        mailed = { id: this.mail.sendArgs(cpu, args, transfer), cpu }
        word = view.codec.encode(mailed, 'args')
        control |= JOB_ARGS_MAILED
        options = { ...options, affinity: [cpu] }
      }
      const spec: JobSpec = {
        fn: reference.number,
        name: name ?? reference.name,
        args: word,
        context,
        control,
        owner: BOOTING_THREAD,
        spawner: 0,
        task: this.isRecorded
          ? taskOptions({ ...options, name: name ?? reference.name })
          : options === noOptions
            ? noTaskOptions
            : taskOptions(options),
      }
      job = spawnJob(view, spec, undefined, !waits)
    } catch (error) {
      view.codec.free(word)
      view.codec.free(context)
      if (mailed !== null) this.mail.dropArgs(mailed.cpu, mailed.id)
      throw error
    }
    const task = new Task<unknown>(view, job, name ?? reference.name, options, origin)
    if (mailed !== null) this.mail.sent(task, mailed.cpu)
    this.collector.add(task)
    if (waits) this.admission?.add(task)
    if (this.cpuSet.isElastic) this.cpuSet.demand()
    this.driver?.kick()
    return task
  }

  private async load(url: string): Promise<Record<string, FunctionReference>> {
    const { view, machine } = this.booted
    // How long files take to be read must not show in virtual time. What is wrong with the module, the CPUs
    // say.
    if (this.driver !== null) {
      await importModule(url, codeSource(this.booted.settings.compile)).catch(() => undefined)
    }
    const word = view.codec.encode(url, 'url')
    if (word > 0) view.heap.publish(word)
    const base = this.modules.add(word)
    const load = new FunctionReference(this, 'heddle', 'heddle import', LOAD_MODULE)
    const options: SpawnOptions = { priority: 'high', restartable: true }
    const loads: Task<unknown>[] = []
    for (let cpu = 0; cpu < machine.cpus; cpu++) {
      if (!machine.isActive(cpu)) continue
      loads.push(
        this.start(load, [url, base], { ...options, affinity: [cpu], name: `import on CPU ${cpu}` }, null),
      )
    }
    // All are on their way back from a death: the first that is there says what the module has.
    if (loads.length === 0) loads.push(this.start(load, [url, base], { ...options, name: 'import' }, null))
    try {
      const functions = (await Promise.all(loads)) as (readonly ExportedFunction[])[]
      for (const { name, number } of functions[0]) this.functionNames.set(number, name)
      warnOfModule(url, functions[0], loaderUrl())
      return moduleView(this, url, functions[0])
    } catch (error) {
      throw new Error(`kernel.import: cannot load ${url}: ${describe(error)}`, { cause: error })
    }
  }

  private reportFailure(failure: UnjoinedFailure): void {
    // As a promise that nobody handles: the program decides, and ends if it does not.
    if (!this.listeners.emit('failure', failure)) void Promise.reject(failure.error)
  }

  private reportDeadlock(deadlock: Deadlock): void {
    if (this.listeners.emit('deadlock', deadlock)) return
    // A warning is printed by the event loop, and this thread may be part of it, and blocked for good.
    if (this.isBlocked) console.error(deadlock.message)
    else warn(deadlock.message, 'HEDDLE_DEADLOCK')
  }

  private async reportStuck(
    report: Omit<StuckTask, 'stack' | 'evicted'>,
    evict: (() => void) | null,
  ): Promise<boolean> {
    const { name, id, cpu, where, ms } = report
    const { machine, view } = this.booted
    const heartbeat = view.s.queueOf(cpu) + RunQueue.heartbeat
    const before = Atomics.load(view.i32, heartbeat)
    const frames = await machine.stackOf?.(cpu).catch(() => null)
    const stack = frames == null ? null : frames.join('\n')
    const evicted = evict !== null && Atomics.load(view.i32, heartbeat) === before
    if (evicted) evict()
    this.listeners.emit('stuck', { ...report, evicted, stack })
    const how =
      where === 'task'
        ? 'without a safepoint'
        : "in its event loop (promises that settle at once, or a long callback; begin the async function with 'use task')"
    const lost = evicted ? '; its CPU is taken from it' : ''
    const place = stack ? `\n${stack}` : ''
    warn(
      `task ${name} #${id} has kept CPU ${cpu} for ${Math.round(ms)} ms ${how}: others wait behind it${lost}${place}`,
      'HEDDLE_STUCK_TASK',
    )
    return evicted
  }

  private nameOf(job: number): string {
    const { view } = this.booted
    const handle = this.collector.handleOf(job)
    if (handle !== undefined) return handle.name
    return this.functionNames.get(view.i32[job + Job.fn]) ?? `#${view.i32[job + Job.number]}`
  }

  private madeRoom(): void {
    if (this.roomWaiters.length === 0 || this.collector.waiting >= this.booted.settings.queue) return
    for (const resolve of this.roomWaiters.splice(0)) resolve()
  }

  private throwIfClosed(what: string): void {
    if (this.closing !== null) throw new KernelClosedError(what)
    if (this.booted.view.thread.sections !== 0) this.isFaulty()
    if (this.broken !== null) throw this.broken
  }
}

function taskOptions({ name, priority, nice, affinity, slice, roundRobin }: SpawnOptions): TaskOptions {
  return {
    ...(name !== undefined && { name }),
    ...(priority !== undefined && { priority: priorityOf(priority) }),
    ...(nice !== undefined && { nice }),
    ...(affinity !== undefined && { affinity }),
    ...(slice !== undefined && { slice }),
    ...(roundRobin !== undefined && { roundRobin }),
  }
}
