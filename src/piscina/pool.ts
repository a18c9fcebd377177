import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { warn, type KernelEvents } from '../kernel/boot/kernelevents.ts'
import { AbortError, type AbortSignalEventTarget } from './abort.ts'
import { leastBusy, type PiscinaLoadBalancer, type PiscinaWorker } from './balancer.ts'
import { compileOf } from './compilepatterns.ts'
import { PoolCpus } from './cpus.ts'
import { Errors, exitError, failureOf } from './errors.ts'
import { Times } from './histogram.ts'
import {
  type FilledOptions,
  filePath,
  ownOptions,
  type PoolOptions,
  filledOptions,
  type RunOptions,
  THREADS_MAX,
} from './options.ts'
import { PoolTask, queued, unqueued } from './pooltask.ts'
import { PoolWorker, workerOf } from './poolworker.ts'
import { FixedQueue, type TaskQueue } from './queues.ts'
import { Placements } from './taskpriority.ts'

/** Receives the events of a pool. */
interface PoolListener {
  emit(event: string, ...args: unknown[]): boolean
  readonly asyncId: number
}

const ENDED_STARTS_MOST = 5

/**
 * The tasks and the workers of a `Piscina`. A worker is a CPU of a kernel. A task waits in the queue, on this
 * thread, until the load balancer gives it a worker with room, and is then a task of the kernel.
 *
 * If the tasks are compiled, the kernel preempts them. Then a worker has many tasks by default. An abort
 * throws into the task, and the worker stays. With piscina's own balancer, a task runs on the first free CPU.
 */
export class ThreadPool {
  readonly options: FilledOptions
  readonly taskQueue: TaskQueue
  /** Abortable tasks for which no worker had room: they are next. */
  readonly skipQueue: PoolTask[] = []
  readonly workers: Set<PoolWorker> = new Set()
  readonly runTimes: Times | null
  readonly waitTimes: Times | null
  readonly start: number = performance.now()
  completed = 0
  needsDrain = false
  private readonly listener: PoolListener
  private readonly preempts: boolean
  private readonly compile: readonly (string | RegExp | URL)[]
  private readonly balancer: PiscinaLoadBalancer
  readonly standings: Placements
  private cpus: PoolCpus | null = null
  private isClosing = false
  private isDestroying = false
  /** A worker died before it took a task. A replacement would die too, so none is started. */
  private startsFail = false
  /** Threads that ended while they started, since a worker was ready. */
  private endedStarts = 0
  private flushWaiters: (() => void)[] = []

  constructor(listener: PoolListener, options: PoolOptions) {
    this.listener = listener
    this.compile = compileOf(options)
    this.preempts = this.compile.length > 0
    this.standings = new Placements(this.preempts)
    this.options = filledOptions(options, this.preempts)
    const { maxThreads, concurrentTasksPerWorker, recordTiming } = this.options
    if (maxThreads > THREADS_MAX) {
      warn(
        `maxThreads: ${maxThreads} is more than the ${THREADS_MAX} CPUs that a kernel has; the pool has ${THREADS_MAX}`,
        'HEDDLE_MAX_THREADS',
      )
      this.options.maxThreads = THREADS_MAX
      this.options.minThreads = Math.min(this.options.minThreads, THREADS_MAX)
    }
    this.taskQueue = options.taskQueue ?? new FixedQueue()
    this.options.taskQueue = this.taskQueue
    this.runTimes = recordTiming ? new Times() : null
    this.waitTimes = recordTiming ? new Times() : null
    this.balancer = options.loadBalancer ?? leastBusy(concurrentTasksPerWorker, this.preempts)
    // Throws as `new Worker` would, which is called later for some workers: without workers there is no pool.
    if (options.workerData !== undefined) structuredClone(options.workerData)
    this.startFirst()
  }

  run(task: any, options: RunOptions): Promise<any> {
    const name = options.name ?? this.options.name
    const given = options.filename ?? this.options.filename
    if (typeof given !== 'string') return Promise.reject(Errors.filenameNotProvided())
    const isEnding = this.isClosing || this.isDestroying
    const signal = isEnding ? AbortSignal.abort('queue is being terminated') : (options.signal ?? null)
    let resolve!: (value: any) => void
    let reject!: (error: unknown) => void
    const promise = new Promise<any>((resolved, rejected) => {
      resolve = resolved
      reject = rejected
    })
    const poolTask = new PoolTask(
      {
        task,
        transferList: options.transferList ?? [],
        filename: filePath(given),
        name,
        abortSignal: signal,
        priority: options.priority,
        nice: options.nice,
        triggerAsyncId: this.listener.asyncId,
      },
      (error, result) => {
        this.completed++
        if (poolTask.started !== 0) this.runTimes?.record(performance.now() - poolTask.started)
        if (error === null) resolve(result)
        else reject(error)
        queueMicrotask(() => this.maybeDrain())
      },
    )
    if (signal !== null) {
      const { aborted, reason } = signal as AbortSignalEventTarget
      if (aborted) {
        reject(new AbortError(reason))
        return promise
      }
      poolTask.listen(signal, () => {
        reject(new AbortError((signal as AbortSignalEventTarget).reason))
        this.abort(poolTask)
      })
    }
    const refusal = this.enqueue(poolTask)
    if (refusal !== null) reject(refusal)
    queueMicrotask(() => this.maybeDrain())
    return promise
  }

  /** How many tasks the starting workers have room for. */
  get pendingCapacity(): number {
    let pending = 0
    for (const worker of this.workers) if (!worker.isReady) pending++
    return pending * this.options.concurrentTasksPerWorker
  }

  get queueSize(): number {
    return Math.max(this.taskQueue.size + this.skipQueue.length - this.pendingCapacity, 0)
  }

  async destroy(): Promise<void> {
    this.isDestroying = true
    for (let task = this.nextWaiting(); task !== null; task = this.nextWaiting()) {
      task.done(Errors.threadTermination())
    }
    const { cpus } = this
    this.cpus = null
    for (const worker of this.workers) this.remove(worker)
    await cpus?.end()
    this.isDestroying = false
  }

  async close(force: boolean): Promise<void> {
    this.isClosing = true
    if (force) {
      for (let task = this.nextWaiting(); task !== null; task = this.nextWaiting()) {
        task.done(new AbortError('pool is closed'))
      }
    }
    const flushed = new Promise<true>(resolve => {
      if (this.isFlushed) resolve(true)
      else this.flushWaiters.push(() => resolve(true))
    })
    const late = sleep(this.options.closeTimeout, false, { ref: false })
    if (!(await Promise.race([flushed, late]))) this.listener.emit('error', Errors.closeTimeout())
    await this.destroy()
    this.listener.emit('close')
    this.isClosing = false
  }

  private get isFlushed(): boolean {
    if (this.taskQueue.size > 0 || this.skipQueue.length > 0) return false
    for (const worker of this.workers) if (worker.tasks.size > 0) return false
    return true
  }

  /** Gives the task a worker, or queues it. Returns the error that rejects it, or null. */
  private enqueue(task: PoolTask): Error | null {
    const { maxQueue } = this.options
    if (this.taskQueue.size > 0) {
      if (this.taskQueue.size >= maxQueue + this.pendingCapacity)
        return maxQueue === 0 ? Errors.noTaskQueue() : Errors.taskQueueAtLimit()
      this.taskQueue.push(queued(task))
      // Workers for a burst of tasks start together, not one after the other.
      if (this.workers.size < this.options.maxThreads) this.add()
      return null
    }
    const ready = [...this.workers].filter(({ isReady }) => isReady)
    if (
      this.distribute(
        task,
        ready.map(worker => worker.interface),
      )
    )
      return null
    if (this.workers.size < this.options.maxThreads) this.add()
    if (maxQueue > 0 || this.pendingCapacity > 0) return null
    this.dequeue(task)
    return Errors.noTaskQueue()
  }

  private nextWaiting(): PoolTask | null {
    return this.skipQueue.shift() ?? (this.taskQueue.size > 0 ? unqueued(this.taskQueue.shift()) : null)
  }

  private dequeue(task: PoolTask): void {
    const at = this.skipQueue.indexOf(task)
    if (at >= 0) this.skipQueue.splice(at, 1)
    else this.taskQueue.remove(queued(task))
  }

  /** Offers the task to the balancer. Returns false if no worker has room, and the task waits again. */
  private distribute(task: PoolTask, workers: PiscinaWorker[]): boolean {
    if (task.aborted) return true
    const worker = workerOf(this.balancer(task.interface, workers))
    if (worker !== undefined && !worker.destroyed) {
      task.started = performance.now()
      this.waitTimes?.record(task.started - task.created)
      this.post(task, worker)
      queueMicrotask(() => this.maybeDrain())
      return true
    }
    const toTail = !this.options.stricterFIFO
    if (task.abortSignal !== null) {
      if (toTail) this.skipQueue.push(task)
      else this.skipQueue.unshift(task)
    } else if (toTail || this.taskQueue.unshift === undefined) this.taskQueue.push(queued(task))
    else this.taskQueue.unshift(queued(task))
    return false
  }

  /** Offers waiting tasks again, to a worker that is new or has room. */
  private available(worker: PoolWorker): void {
    let workers: PiscinaWorker[] | null = null
    while (this.taskQueue.size > 0 || this.skipQueue.length > 0) {
      const task = this.nextWaiting() as PoolTask
      workers ??= [...this.workers].map(one => one.interface)
      if (this.distribute(task, workers)) continue
      if (this.workers.size >= this.options.maxThreads || !this.add()) break
    }
    this.retireWhenIdle(worker)
  }

  private retireWhenIdle(worker: PoolWorker): void {
    const { idleTimeout, minThreads } = this.options
    if (idleTimeout === Infinity || worker.usage !== 0 || this.workers.size <= minThreads) return
    worker.whenIdle(idleTimeout, () => {
      if (worker.usage !== 0 || worker.destroyed || this.workers.size <= this.options.minThreads) return
      this.forget(worker)
      this.cpus?.retire(worker.cpu)
    })
  }

  private post(task: PoolTask, worker: PoolWorker): void {
    const { cpus, options } = this
    task.worker = worker
    worker.tasks.add(task)
    const { filename, name, transferList, task: value } = task
    const isFree = this.preempts && options.loadBalancer === undefined
    const { standings } = this
    const handler = standings.handlerOf(task)
    const { options: standing, goesAhead } = standings.of(task, handler)
    task.task = null
    try {
      if (cpus === null) throw Errors.threadTermination()
      task.kernelTask = cpus.kernel.spawn(
        cpus.function('handle'),
        [
          filename,
          name,
          value,
          options.niceIncrement,
          standings.known,
          handler,
          goesAhead,
          standings.afterAhead,
        ],
        {
          name: name === 'default' ? 'piscina task' : name,
          ...(!isFree && { affinity: [worker.cpu] }),
          ...standing,
          ...(transferList.length > 0 && { transfer: transferList }),
        },
      )
    } catch (error) {
      queueMicrotask(() => this.ended(task, worker, error))
      return
    }
    task.kernelTask.then(
      result => this.ended(task, worker, null, result),
      error => this.ended(task, worker, failureOf(error)),
    )
  }

  private ended(task: PoolTask, worker: PoolWorker, error: unknown, result?: unknown): void {
    if (!worker.tasks.delete(task)) return
    worker.times?.record(performance.now() - task.started)
    task.done(error, result)
    if (!worker.destroyed) this.available(worker)
    this.tellFlushed()
  }

  private tellFlushed(): void {
    if (this.flushWaiters.length > 0 && this.isFlushed) for (const tell of this.flushWaiters.splice(0)) tell()
  }

  private abort(task: PoolTask): void {
    const { worker } = task
    if (worker === null) {
      this.dequeue(task)
    } else if (this.preempts) {
      task.kernelTask?.kill(new AbortError())
    } else {
      const { cpus } = this
      this.remove(worker)
      void cpus?.terminate(worker.cpu)
      this.ensureMinimum()
      this.endIfUnused()
    }
  }

  /** Starts the first workers, which listeners consider present from the start. */
  private startFirst(): void {
    this.boot()
    while (this.workers.size < this.options.minThreads) {
      const worker = this.add()
      if (worker === null) break
      worker.isReady = true
      queueMicrotask(() => {
        this.tellCreated(worker)
        if (!worker.destroyed) this.available(worker)
      })
    }
  }

  private ensureMinimum(): void {
    if (this.isClosing || this.isDestroying) return
    while (this.workers.size < this.options.minThreads && this.add() !== null);
  }

  private add(): PoolWorker | null {
    if (this.isClosing) return null
    const started = this.boot().start()
    if (started === null) return null
    const { workerHistogram: times } = this.options
    const worker = new PoolWorker(started.cpu, started.thread, { times, sharesAbortable: this.preempts })
    this.workers.add(worker)
    return worker
  }

  private boot(): PoolCpus {
    return (this.cpus ??= this.makeCpus())
  }

  private makeCpus(): PoolCpus {
    const {
      maxThreads,
      filename,
      name,
      niceIncrement,
      atomics,
      argv,
      env,
      execArgv,
      resourceLimits,
      trackUnmanagedFds,
      workerData,
    } = this.options
    const places = Math.min(THREADS_MAX, 2 * Math.ceil(maxThreads))
    const url = new URL('./worker.ts', import.meta.url)
    if (filename !== null) {
      url.searchParams.set('filename', filename)
      url.searchParams.set('name', name)
      url.searchParams.set('nice', String(niceIncrement))
    }
    const cpus: PoolCpus = new PoolCpus(
      ownOptions({
        cpus: { min: 0, max: places },
        watchdog: false,
        workerData,
        eventLoop: atomics === 'sync' && !process.env.PISCINA_DISABLE_ATOMICS ? 'needed' : 'always',
        ...(argv && { argv }),
        ...(env && { env: env as Record<string, string> }),
        ...(execArgv && { execArgv }),
        ...(resourceLimits && { resourceLimits }),
        ...(trackUnmanagedFds !== undefined && { trackUnmanagedFds }),
        ...(this.preempts && { compile: this.compile }),
      }),
      { url, names: ['handle'] },
      {
        online: cpu => {
          if (this.cpus === cpus) this.isOnline(cpu)
        },
        died: death => {
          if (this.cpus === cpus) this.died(death)
        },
        message: message => void this.listener.emit('message', message),
      },
    )
    return cpus
  }

  private workerOn(cpu: number): PoolWorker | undefined {
    for (const worker of this.workers) if (worker.cpu === cpu) return worker
    return undefined
  }

  private isOnline(cpu: number): void {
    const worker = this.workerOn(cpu)
    if (worker === undefined || worker.isReady) return
    worker.isReady = true
    this.endedStarts = 0
    this.tellCreated(worker)
    this.available(worker)
  }

  private died({ cpu, reason, error, exitCode }: KernelEvents['death']): void {
    const worker = this.workerOn(cpu)
    // An ending worker's slot is free again.
    if (worker === undefined) {
      this.ensureMinimum()
      this.addForWaiting()
      return
    }
    const had = worker.tasks.size
    const failure = error ?? exitError(exitCode)
    if (!worker.isReady) this.startsFail ||= this.failsAgain(reason)
    this.forget(worker)
    if (this.startsFail) this.failAll(worker, failure)
    else this.ensureMinimum()
    this.addForWaiting()
    if (had === 0 && (reason === 'uncaught error' || reason === 'out of memory'))
      this.listener.emit('error', failure)
  }

  /**
   * Whether the next worker would die before it takes a task too. A program may terminate a thread that is
   * just starting, which looks like an exit of its module: only many of those in a row count.
   */
  private failsAgain(reason: KernelEvents['death']['reason']): boolean {
    return (
      reason === 'uncaught error' || reason === 'out of memory' || ++this.endedStarts >= ENDED_STARTS_MOST
    )
  }

  /** Starts a worker for tasks that wait for the one that is gone. */
  private addForWaiting(): void {
    if (this.startsFail || this.isDestroying) return
    const waiting = this.taskQueue.size + this.skipQueue.length
    if (waiting > 0 && this.workers.size < this.options.maxThreads) this.add()
  }

  private failAll(worker: PoolWorker, failure: unknown): void {
    for (const task of worker.tasks) {
      // Otherwise the kernel would run a task that has not started on another CPU.
      task.kernelTask?.kill(failure)
      this.ended(task, worker, failure)
    }
  }

  /** Removes a worker from the pool; its tasks may still end. */
  private forget(worker: PoolWorker): void {
    this.workers.delete(worker)
    worker.leave()
    // Listeners must see as many creations as removals.
    if (!worker.isReady) this.tellCreated(worker)
    this.listener.emit('workerDestroy', worker.interface)
  }

  private tellCreated(worker: PoolWorker): void {
    if (worker.isTold) return
    worker.isTold = true
    this.listener.emit('workerCreate', worker.interface)
  }

  /**
   * Without a worker, nothing ends tasks that were killed before they started: the kernel ends, and the next
   * worker makes a new one.
   */
  private endIfUnused(): void {
    if (this.workers.size > 0 || this.taskQueue.size > 0 || this.skipQueue.length > 0) return
    void this.cpus?.end()
    this.cpus = null
  }

  /** Removes a worker, and ends its tasks. */
  private remove(worker: PoolWorker): void {
    this.forget(worker)
    this.failAll(worker, Errors.threadTermination())
  }

  private maybeDrain(): void {
    let usage = 0
    for (const worker of this.workers)
      if (worker.isReady && Number.isFinite(worker.usage)) usage += worker.usage
    const capacity = this.options.maxThreads * this.options.concurrentTasksPerWorker
    if (usage === capacity) {
      this.needsDrain = true
      queueMicrotask(() => this.listener.emit('needsDrain'))
    } else if (usage < capacity && this.needsDrain) {
      this.needsDrain = false
      queueMicrotask(() => this.listener.emit('drain'))
    }
  }
}
