import type { WorkerOptions } from 'node:worker_threads'
import { compileOf } from '../piscina/compilepatterns.ts'
import { PoolCpus } from '../piscina/cpus.ts'
import { ownOptions, SHARED_TASKS, THREADS_MAX } from '../piscina/options.ts'
import { checkOptions } from '../coroutine/core/knownoptions.ts'
import { CpuLostError } from '../kernel/join/errors.ts'
import type { KernelEvents } from '../kernel/boot/kernelevents.ts'
import { errorOf, TerminateError } from './errors.ts'
import {
  checkThreadOptions,
  checkType,
  countsOf,
  execKinds,
  type ExecOptions,
  poolKinds,
  type WorkerArg,
  type WorkerPoolOptions,
} from './options.ts'
import { type CpuGroup, PoolWorker, type RunningTask } from './poolworker.ts'
import { CancellationError, TimeoutError, WorkerpoolPromise } from './promise.ts'
import { queueOf, type Task, type TaskQueue } from './queues.ts'
import type { Answer, Cleaned, EventMessage } from './worker.ts'

export interface PoolStats {
  readonly totalWorkers: number
  readonly busyWorkers: number
  readonly idleWorkers: number
  readonly pendingTasks: number
  readonly activeTasks: number
}

interface Ending {
  /** The worker does not respond, and is not asked to clean up. */
  readonly isStuck?: boolean
  /** Other workers replace it: the pool continues. */
  readonly isReplaced?: boolean
}

type AnyMethod = (...args: any[]) => any

/** The methods of a worker, as promises. */
export type Proxy<T extends Record<string, AnyMethod> = Record<string, AnyMethod>> = {
  [M in keyof T]: (...args: Parameters<T[M]>) => WorkerpoolPromise<Awaited<ReturnType<T[M]>>>
}

/**
 * workerpool's pool. A worker is a CPU of a kernel, and a task that has left the queue is a task of the
 * kernel.
 *
 * Without `compile`, a worker has one task at a time. A cancelled task ends its worker, unless its abort
 * listeners succeed, as in workerpool. If the tasks are compiled, the kernel preempts them: a worker has many
 * tasks, and a cancelled task leaves its worker alone.
 */
export class Pool {
  readonly script: string | null
  readonly workers: PoolWorker[] = []
  readonly taskQueue: TaskQueue
  readonly forkArgs: readonly string[]
  readonly forkOpts: object
  readonly workerOpts: object
  readonly workerThreadOpts: WorkerOptions
  readonly workerType: string
  readonly maxQueueSize: number
  readonly workerTerminateTimeout: number
  readonly minWorkers: number | undefined
  readonly maxWorkers: number
  readonly emitStdStreams: boolean
  readonly onCreateWorker: NonNullable<WorkerPoolOptions['onCreateWorker']>
  readonly onTerminateWorker: (arg: WorkerArg) => void
  private readonly compile: readonly (string | RegExp | URL)[]
  private readonly tasksPerWorker: number
  /** The kernel of the workers, by script and options. */
  private readonly groups = new Map<string | null, Map<WorkerOptions, CpuGroup>>()
  private readonly running = new Map<number, RunningTask>()
  private lastId = 0
  /** A worker died before it took a task. A replacement would die too, so none is started. */
  private startsFail = false

  constructor(script?: string | WorkerPoolOptions | null, given?: WorkerPoolOptions) {
    const options = (typeof script === 'string' ? given : (script ?? given)) ?? {}
    checkOptions('workerpool.pool(script, options)', options, poolKinds)
    this.script = typeof script === 'string' && script !== '' ? script : null
    this.taskQueue = queueOf(options.queueStrategy || 'fifo')
    this.forkArgs = Object.freeze(options.forkArgs || [])
    this.forkOpts = Object.freeze(options.forkOpts || {})
    this.workerOpts = Object.freeze(options.workerOpts || {})
    this.workerThreadOpts = Object.freeze(options.workerThreadOpts || {})
    this.workerType = options.workerType || options.nodeWorker || 'auto'
    checkType(this.workerType)
    this.maxQueueSize = options.maxQueueSize || Infinity
    this.workerTerminateTimeout = options.workerTerminateTimeout || 1000
    this.onCreateWorker = options.onCreateWorker || (() => null)
    this.onTerminateWorker = options.onTerminateWorker || (() => undefined)
    this.emitStdStreams = options.emitStdStreams || false
    this.compile = compileOf({ compile: options.compile, filename: this.script })
    this.tasksPerWorker = this.compile.length > 0 ? SHARED_TASKS : 1
    const { minWorkers, maxWorkers } = countsOf(options)
    this.minWorkers = minWorkers
    this.maxWorkers = maxWorkers
    this.ensureMinimum()
  }

  /**
   * Runs a method of the script, or a function, which is sent to the worker as text and cannot use outer
   * variables.
   */
  exec<F extends AnyMethod>(
    method: string | F,
    params?: Parameters<F> | null,
    options?: ExecOptions,
  ): WorkerpoolPromise<Awaited<ReturnType<F>>> {
    if (params && !Array.isArray(params)) throw new TypeError('Array expected as argument "params"')
    if (options !== undefined && options !== null) {
      checkOptions('exec(method, params, options)', options, execKinds)
      if (options.transfer !== undefined && !Array.isArray(options.transfer))
        throw new TypeError(
          `transfer: ${String(options.transfer)} is not a list; give the objects, as in [buffer]`,
        )
    }
    if (typeof method === 'function') return this.exec('run', [String(method), params], options) as never
    if (typeof method !== 'string') throw new TypeError('Function or string expected as argument "method"')
    if (this.taskQueue.size() >= this.maxQueueSize)
      throw new Error(`Max queue size of ${this.maxQueueSize} reached`)
    if (this.workers.length < this.maxWorkers) checkThreadOptions(this.workerThreadOpts)
    const resolver = WorkerpoolPromise.defer()
    const { promise } = resolver
    const task: Task = { method, params, resolver, timeout: null, options }
    this.taskQueue.push(task)
    // The timeout of a waiting task starts when the task does.
    const timeoutNow = promise.timeout
    promise.timeout = delay => {
      if (!this.taskQueue.contains(task)) return timeoutNow.call(promise, delay)
      task.timeout = delay
      return promise
    }
    this.next()
    return promise
  }

  /** An object with all methods of the workers. */
  proxy<T extends Record<string, AnyMethod> = Record<string, AnyMethod>>(
    ...none: never[]
  ): WorkerpoolPromise<Proxy<T>> {
    if (none.length > 0) throw new Error('No arguments expected')
    return this.exec('methods').then((names: string[]) => {
      const calls = names.map(name => [name, (...args: unknown[]) => this.exec(name, args)])
      return Object.fromEntries(calls) as Proxy<T>
    })
  }

  stats(): PoolStats {
    let [busyWorkers, activeTasks] = [0, 0]
    for (const worker of this.workers) {
      if (worker.busy()) busyWorkers++
      activeTasks += worker.tasks.size
    }
    const totalWorkers = this.workers.length
    return {
      totalWorkers,
      busyWorkers,
      idleWorkers: totalWorkers - busyWorkers,
      pendingTasks: this.taskQueue.size(),
      activeTasks,
    }
  }

  /**
   * Ends all workers: with `force` immediately, else each when its tasks are done. Waiting tasks are
   * rejected.
   */
  terminate(force = false, timeout?: number): WorkerpoolPromise<unknown[]> {
    while (this.taskQueue.size() > 0) {
      const task = this.taskQueue.pop()
      if (task === undefined) break
      task.resolver.reject(new Error('Pool terminated'))
    }
    this.taskQueue.clear()
    return WorkerpoolPromise.all(
      [...this.workers].map(worker => {
        const ended = WorkerpoolPromise.defer<unknown>()
        if (timeout) ended.promise.timeout(timeout)
        const end = (): void => void this.end(worker).then(ended.resolve, ended.reject)
        worker.isLeaving = true
        if (force) for (const { task } of worker.tasks) task.resolver.reject(new Error('Worker terminated'))
        if (worker.isAwaited) worker.whenFree = end
        else end()
        return ended.promise
      }),
    )
  }

  /** Gives waiting tasks to workers with room. */
  private next(): void {
    while (this.taskQueue.size() > 0) {
      let worker: PoolWorker | null
      try {
        worker = this.withRoom()
      } catch (error) {
        // No worker can be made for it.
        this.taskQueue.pop()?.resolver.reject(error)
        continue
      }
      if (worker === null) return
      const task = this.taskQueue.pop()
      if (task === undefined) return
      if (task.resolver.promise.pending) this.start(task, worker)
    }
  }

  /** A worker without tasks, or a new one; if tasks are preempted, also the one with the fewest. */
  private withRoom(): PoolWorker | null {
    let best: PoolWorker | null = null
    for (const worker of this.workers) {
      if (worker.isLeaving || worker.tasks.size >= this.tasksPerWorker) continue
      if (best === null || worker.tasks.size < best.tasks.size) best = worker
    }
    if (best?.tasks.size === 0) return best
    return (this.workers.length < this.maxWorkers ? this.add() : null) ?? best
  }

  private start(task: Task, worker: PoolWorker): void {
    const { method, params, resolver, options } = task
    const id = ++this.lastId
    const running: RunningTask = { id, task, worker, kernelTask: null, heard: 0, answer: null }
    worker.tasks.add(running)
    this.running.set(id, running)
    resolver.promise.catch(error => {
      if (error instanceof CancellationError || error instanceof TimeoutError) void this.abort(running)
    })
    const { cpus } = worker.group
    try {
      running.kernelTask = cpus.kernel.spawn(cpus.function('perform'), [id, method, params ?? null], {
        name: method === 'run' ? 'workerpool task' : method,
        affinity: [worker.cpu],
        ...(options?.priority !== undefined && { priority: options.priority }),
        ...(options?.nice !== undefined && { nice: options.nice }),
        ...(options?.transfer && options.transfer.length > 0 && { transfer: options.transfer }),
      }) as RunningTask['kernelTask']
    } catch (error) {
      queueMicrotask(() => this.finish(running, () => resolver.reject(error)))
      return
    }
    running.kernelTask?.then(
      answer => this.answered(running, answer),
      (error: unknown) => {
        // The death of its worker will give a better error.
        if (worker.isGone || worker.end !== null || !isLost(error))
          this.finish(running, () => resolver.reject(error))
      },
    )
    if (task.timeout !== null) resolver.promise.timeout(task.timeout)
  }

  /** Settles a task after its events have arrived, which travel separately. */
  private answered(running: RunningTask, answer: Answer): void {
    running.answer = answer
    if (running.heard < answer.events) return
    const { resolver } = running.task
    this.finish(running, () => {
      if ('result' in answer) resolver.resolve(answer.result)
      else resolver.reject(failureOf(answer))
    })
  }

  private heard(message: unknown): void {
    const { workerpool: id, payload } = (message ?? {}) as Partial<EventMessage>
    const running = typeof id === 'number' ? this.running.get(id) : undefined
    if (running === undefined) return
    running.heard++
    try {
      running.task.options?.on?.(payload)
    } finally {
      if (running.answer !== null) this.answered(running, running.answer)
    }
  }

  /** Removes a task from its worker. */
  private finish(running: RunningTask, settle: () => void): void {
    const { id, worker } = running
    if (!worker.tasks.delete(running)) return
    this.running.delete(id)
    if (worker.whenFree !== null && !worker.isAwaited) worker.whenFree()
    this.next()
    settle()
  }

  /** Rejects a task that was cancelled or timed out, and ends it. */
  private async abort(running: RunningTask): Promise<void> {
    const { id, worker } = running
    if (worker.whenFree !== null && !worker.isAwaited) worker.whenFree()
    if (worker.isGone) return
    const cleaned = await this.ask<Cleaned>(worker, 'clean', [id])
    if (!worker.tasks.has(running) || worker.end !== null) return
    if (this.compile.length > 0 || cleaned === 'clean') running.kernelTask?.kill(new CancellationError())
    else {
      await this.end(worker, { isStuck: cleaned === null, isReplaced: true })
      this.next()
    }
  }

  /** Calls a function of worker.ts beside the worker's tasks. Null if it has not answered in time. */
  private async ask<T>(worker: PoolWorker, name: string, args: unknown[] = []): Promise<T | null> {
    const { cpus } = worker.group
    const asked = cpus.kernel.spawn(cpus.function(name), args as never, {
      name: `workerpool ${name}`,
      affinity: [worker.cpu],
      priority: 'high',
    })
    let late: NodeJS.Timeout | undefined
    const tooLate = new Promise<null>(tell => {
      late = setTimeout(() => tell(null), this.workerTerminateTimeout)
    })
    const answer = asked.then(
      value => value as T,
      () => null,
    )
    const first = await Promise.race([answer, tooLate])
    clearTimeout(late)
    if (first === null) asked.kill()
    return first
  }

  /** Ends a worker, after its clean-up. Its tasks are rejected. */
  private end(worker: PoolWorker, how: Ending = {}): Promise<void> {
    worker.isLeaving = true
    return (worker.end ??= this.finishWorker(worker, how))
  }

  private async finishWorker(worker: PoolWorker, how: Ending): Promise<void> {
    // It has died, and that was reported.
    if (worker.isGone) return
    if (!how.isStuck) await this.ask(worker, 'leave')
    // Its clean-up has ended it.
    if (worker.isGone) return this.onTerminateWorker(worker.arg)
    const { group } = worker
    this.forget(worker)
    this.failAll(worker, new Error('Worker terminated'))
    if (how.isReplaced) {
      this.ensureMinimum()
      this.next()
    }
    if (group.workers.size > 0) await group.cpus.terminate(worker.cpu)
    else await group.cpus.end()
    this.onTerminateWorker(worker.arg)
  }

  private failAll(worker: PoolWorker, failure: Error): void {
    for (const running of worker.tasks) {
      worker.tasks.delete(running)
      this.running.delete(running.id)
      running.kernelTask?.kill(failure)
      running.task.resolver.reject(failure)
    }
  }

  /**
   * Removes a worker from the pool. If it is the last of its group, the group is removed too, and the caller
   * ends its kernel.
   */
  private forget(worker: PoolWorker): void {
    worker.isGone = true
    worker.isLeaving = true
    const at = this.workers.indexOf(worker)
    if (at >= 0) this.workers.splice(at, 1)
    const { group } = worker
    group.workers.delete(worker)
    if (group.workers.size > 0) return
    for (const byOptions of this.groups.values())
      for (const [options, one] of byOptions) if (one === group) byOptions.delete(options)
  }

  private died(group: CpuGroup, { cpu, reason, error, exitCode }: KernelEvents['death']): void {
    let worker: PoolWorker | undefined
    for (const one of group.workers) if (one.cpu === cpu) worker = one
    if (worker === undefined || worker.isGone) {
      // The slot of an ended worker is free again.
      this.next()
      return
    }
    if (!worker.isOnline && reason !== 'terminated') this.startsFail = true
    const isReplaced = !worker.isLeaving && !this.startsFail
    this.forget(worker)
    const failure =
      error === undefined
        ? new TerminateError(deathText(worker.arg.script, exitCode))
        : new TerminateError(`Workerpool Worker error: ${(error as Error)?.message ?? String(error)}`, error)
    const { whenFree } = worker
    const tasks = [...worker.tasks]
    worker.tasks.clear()
    for (const { id, kernelTask } of tasks) {
      this.running.delete(id)
      kernelTask?.kill(failure)
    }
    if (group.workers.size === 0) void group.cpus.end()
    if (isReplaced) this.ensureMinimum()
    if (worker.end === null) this.onTerminateWorker(worker.arg)
    for (const { task } of tasks) task.resolver.reject(failure)
    whenFree?.()
    this.next()
  }

  private ensureMinimum(): void {
    while (this.workers.length < (this.minWorkers ?? 0) && this.add() !== null);
  }

  /** Null if all slots of the kernel are taken until an ending CPU is gone. */
  private add(): PoolWorker | null {
    const { forkArgs, forkOpts, workerOpts, workerThreadOpts, script } = this
    const own: WorkerArg = { forkArgs, forkOpts, workerOpts, workerThreadOpts, script }
    const changed = this.onCreateWorker({ ...own }) || {}
    const arg: WorkerArg = {
      ...own,
      ...Object.fromEntries(Object.entries(changed).filter(([, value]) => value)),
    }
    const group = this.groupOf(arg.script ?? null, arg.workerThreadOpts ?? {})
    const started = group.cpus.start()
    if (started === null) return null
    const worker = new PoolWorker(started.cpu, started.thread, group, arg)
    group.workers.add(worker)
    this.workers.push(worker)
    return worker
  }

  private groupOf(script: string | null, options: WorkerOptions): CpuGroup {
    const byOptions = this.groups.get(script) ?? new Map<WorkerOptions, CpuGroup>()
    this.groups.set(script, byOptions)
    const found = byOptions.get(options)
    if (found !== undefined) return found
    checkThreadOptions(options)
    const made = this.makeGroup(script, options)
    byOptions.set(options, made)
    return made
  }

  private makeGroup(script: string | null, options: WorkerOptions): CpuGroup {
    const { argv, env, execArgv, resourceLimits, trackUnmanagedFds, workerData } = ownOptions(options)
    const url = new URL('./worker.ts', import.meta.url)
    if (script !== null) url.searchParams.set('script', script)
    if (this.emitStdStreams) url.searchParams.set('capture', 'yes')
    const group: CpuGroup = {
      workers: new Set(),
      cpus: new PoolCpus(
        ownOptions({
          cpus: { min: 0, max: Math.min(THREADS_MAX, 2 * this.maxWorkers) },
          watchdog: false,
          eventLoop: 'always',
          grace: this.workerTerminateTimeout,
          workerData,
          ...(argv && { argv }),
          ...(env && { env: env as Record<string, string> }),
          ...(execArgv && { execArgv }),
          ...(resourceLimits && { resourceLimits }),
          ...(trackUnmanagedFds !== undefined && { trackUnmanagedFds }),
          ...(this.compile.length > 0 && { compile: this.compile }),
        }),
        { url, names: ['perform', 'clean', 'leave'] },
        {
          online: cpu => {
            for (const worker of group.workers) if (worker.cpu === cpu) worker.isOnline = true
          },
          died: death => this.died(group, death),
          message: message => this.heard(message),
        },
      ),
    }
    return group
  }
}

function isLost(error: unknown): boolean {
  return error instanceof CpuLostError
}

function failureOf({ error, isTerminate }: Extract<Answer, { error: unknown }>): Error {
  return isTerminate ? new TerminateError(String(error.message), error.cause) : errorOf(error)
}

function deathText(script: string | null | undefined, exitCode: number): string {
  return `Workerpool Worker terminated Unexpectedly
    exitCode: \`${exitCode}\`
    signalCode: \`undefined\`
    workerpool.script: \`${script ?? 'heddle/workerpool/worker.js'}\`
`
}
