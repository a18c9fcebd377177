import { captureOrigin } from '../coroutine/uncaught.ts'
import { SimulatedMachine } from '../machine/simulated.ts'
import { type BootedKernel, makeKernel, startCpus } from './boot.ts'
import { Collector, type UnjoinedFailure } from './collector.ts'
import { describe, KernelClosedError, SpawnQueueFullError } from './errors.ts'
import { type ExportedFunction, LOAD_MODULE } from './functions.ts'
import { BOOTER, DETACHED, RESTARTABLE } from './job.ts'
import { BOOTING_THREAD } from './layout.ts'
import {
  FunctionReference,
  moduleUrl,
  type ModuleView,
  moduleView,
  referenceOf,
  type Spawnable,
} from './modules.ts'
import { type MapOptions, TaskMap } from './map.ts'
import { ModuleTable } from './moduletable.ts'
import { checkSpawnOptions, type KernelOptions, priorityOf, type SpawnOptions } from './options.ts'
import { SimulatedDriver } from './simulateddriver.ts'
import { TaskScope } from './scope.ts'
import { spawnJob } from './spawn.ts'
import { Task } from './task.ts'

const noOptions: SpawnOptions = {}

/** Frames of where a task was spawned that its errors show: each costs the spawn some time. */
const ORIGIN_FRAMES = 2

/**
 * A kernel: CPUs that run tasks. This is the side of the thread that booted it; what tasks themselves call is in
 * current.ts.
 */
export class Kernel {
  private readonly booted: BootedKernel
  private readonly collector: Collector
  private readonly driver: SimulatedDriver | null
  private readonly modules: ModuleTable
  private readonly imported = new Map<string, Promise<Record<string, FunctionReference>>>()
  private readonly failureListeners = new Set<(failure: UnjoinedFailure) => void>()
  private roomWaiters: (() => void)[] = []
  private isClosing = false

  private constructor(booted: BootedKernel, onKick: { call: () => void }) {
    const { machine, view } = booted
    this.booted = booted
    this.collector = new Collector(
      view,
      () => this.madeRoom(),
      failure => this.reportFailure(failure),
    )
    this.modules = new ModuleTable(view.i32, view.plan.moduleTable)
    this.driver =
      machine instanceof SimulatedMachine
        ? new SimulatedDriver(machine, () => void this.collector.collect())
        : null
    const { driver } = this
    if (driver !== null) onKick.call = () => driver.kick()
  }

  /** Boots a kernel: resolves when every CPU runs. */
  static async boot(options: KernelOptions = {}): Promise<Kernel> {
    const onKick = { call: () => {} }
    const booted = await makeKernel(options, () => onKick.call())
    const kernel = new Kernel(booted, onKick)
    await startCpus(booted.machine)
    return kernel
  }

  get cpus(): number {
    return this.booted.machine.cpus
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
   * Starts a task that runs the function with these arguments, on whichever CPU comes first. Throws when an argument
   * cannot travel, and when there is no room (await `ready` before the next).
   */
  spawn<A extends readonly unknown[], T>(
    fn: Spawnable<A, T>,
    args: A | [] = [],
    options: SpawnOptions = noOptions,
  ): Task<T> {
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
    return this.start(
      reference,
      args,
      options,
      captureOrigin(Kernel.prototype.spawn, ORIGIN_FRAMES),
    ) as Task<T>
  }

  /**
   * Runs a function over many items, as tasks: `for await (const result of kernel.map(work.fn, items, { concurrency: 8 }))`.
   * Items are taken only as fast as results are.
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
   * A scope, which its tasks do not outlive: `await kernel.scope(async scope => { scope.spawn(work.fn, [1]) })`. Leaving it waits for
   * them; when the body or a task fails, the others are killed first, and failed tasks make an AggregateError. Without a body:
   * `await using scope = kernel.scope()`.
   */
  scope(): TaskScope
  scope<R>(body: (scope: TaskScope) => R | PromiseLike<R>): Promise<R>
  scope<R>(body?: (scope: TaskScope) => R | PromiseLike<R>): TaskScope | Promise<R> {
    const scope = new TaskScope(this)
    return body === undefined ? scope : scope.run(body)
  }

  /** Resolves when there is room for another task. */
  get ready(): Promise<void> {
    if (this.collector.waiting < this.booted.settings.queue) return Promise.resolve()
    return new Promise(resolve => this.roomWaiters.push(resolve))
  }

  /** Told of each task that failed while nobody had asked how it would end. Without a listener the program is, as of a promise. */
  onUnjoinedFailure(listener: (failure: UnjoinedFailure) => void): () => void {
    this.failureListeners.add(listener)
    return () => this.failureListeners.delete(listener)
  }

  async close(): Promise<void> {
    this.isClosing = true
    while (this.collector.waiting > 0 || this.collector.active > 0)
      await new Promise(resolve => setTimeout(resolve, 1))
    this.driver?.close()
    this.collector.close()
    await this.booted.machine.close()
    this.booted.view.codec.lent.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  private start(
    reference: FunctionReference,
    args: readonly unknown[],
    options: SpawnOptions,
    origin: { readonly stack?: string } | null,
  ): Task<unknown> {
    const { view } = this.booted
    const { name, priority, nice, affinity, detached, restartable, transfer } = options
    if (options !== noOptions) checkSpawnOptions(options, this.cpus)
    const control = BOOTER | (detached ? DETACHED : 0) | (restartable ? RESTARTABLE : 0)
    const word = view.codec.encodeList(args, 'args', transfer)
    let job: number
    try {
      job = spawnJob(view, {
        fn: reference.number,
        args: word,
        context: 0,
        control,
        owner: BOOTING_THREAD,
        spawner: 0,
        task: {
          ...(name !== undefined && { name }),
          ...(priority !== undefined && { priority: priorityOf(priority) }),
          ...(nice !== undefined && { nice }),
          ...(affinity !== undefined && { affinity }),
        },
      })
    } catch (error) {
      view.codec.free(word)
      throw error
    }
    const task = new Task<unknown>(view, job, name ?? reference.name, options, origin)
    this.collector.add(task)
    this.driver?.kick()
    return task
  }

  private async load(url: string): Promise<Record<string, FunctionReference>> {
    const { view, machine } = this.booted
    const word = view.codec.encode(url, 'url')
    if (word > 0) view.heap.settle(word)
    const base = this.modules.add(word)
    const load = new FunctionReference(this, 'heddle', 'heddle import', LOAD_MODULE)
    const loads: Task<unknown>[] = []
    for (let cpu = 0; cpu < machine.cpus; cpu++) {
      if (machine.isActive(cpu))
        loads.push(
          this.start(
            load,
            [url, base],
            { affinity: [cpu], priority: 'high', name: `import on CPU ${cpu}` },
            null,
          ),
        )
    }
    try {
      const functions = (await Promise.all(loads)) as (readonly ExportedFunction[])[]
      return moduleView(this, url, functions[0])
    } catch (error) {
      throw new Error(`kernel.import: cannot load ${url}: ${describe(error)}`, { cause: error })
    }
  }

  private reportFailure(failure: UnjoinedFailure): void {
    if (this.failureListeners.size > 0) {
      for (const listener of this.failureListeners) listener(failure)
      return
    }
    void Promise.reject(failure.error)
  }

  private madeRoom(): void {
    if (this.roomWaiters.length === 0 || this.collector.waiting >= this.booted.settings.queue) return
    for (const resolve of this.roomWaiters.splice(0)) resolve()
  }

  private throwIfClosed(what: string): void {
    if (this.isClosing) throw new KernelClosedError(what)
  }
}
