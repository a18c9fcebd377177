import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Worker, WorkerOptions } from 'node:worker_threads'
import type { Known } from '../coroutine/core/knownoptions.ts'
import type { TaskPriority } from '../kernel/boot/options.ts'
import type { AbortSignalAny } from './abort.ts'
import type { PiscinaLoadBalancer } from './balancer.ts'
import { isTaskQueue, type TaskQueue } from './queues.ts'

export type TransferList = NonNullable<Parameters<Worker['postMessage']>[1]>

/** piscina's own options. */
export interface Options {
  filename?: string | null
  name?: string
  minThreads?: number
  maxThreads?: number
  idleTimeout?: number
  maxQueue?: number | 'auto'
  concurrentTasksPerWorker?: number
  atomics?: 'sync' | 'async' | 'disabled'
  resourceLimits?: WorkerOptions['resourceLimits']
  argv?: string[]
  execArgv?: string[]
  env?: WorkerOptions['env']
  workerData?: any
  taskQueue?: TaskQueue
  niceIncrement?: number
  trackUnmanagedFds?: boolean
  closeTimeout?: number
  recordTiming?: boolean
  stricterFIFO?: boolean
  loadBalancer?: PiscinaLoadBalancer
  workerHistogram?: boolean
}

/** The options of a pool. */
export interface PoolOptions extends Options {
  /**
   * heddle only: the modules that the workers compile, so that tasks are preempted there: package names,
   * files, or 'all'. Default: `"heddle": { "compile": […] }` in package.json.
   */
  compile?: readonly (string | RegExp | URL)[] | 'all'
}

export const poolOptions: Known<PoolOptions> = {
  filename: true,
  name: true,
  minThreads: true,
  maxThreads: true,
  idleTimeout: true,
  maxQueue: true,
  concurrentTasksPerWorker: true,
  atomics: true,
  resourceLimits: true,
  argv: true,
  execArgv: true,
  env: true,
  workerData: true,
  taskQueue: true,
  niceIncrement: true,
  trackUnmanagedFds: true,
  closeTimeout: true,
  recordTiming: true,
  stricterFIFO: true,
  loadBalancer: true,
  workerHistogram: true,
  compile: true,
}

/** The options of a pool with all defaults. */
export interface FilledOptions extends Options {
  filename: string | null
  name: string
  minThreads: number
  maxThreads: number
  idleTimeout: number
  maxQueue: number
  concurrentTasksPerWorker: number
  atomics: NonNullable<Options['atomics']>
  niceIncrement: number
  closeTimeout: number
  recordTiming: boolean
  stricterFIFO: boolean
  workerHistogram: boolean
}

/** The options of one task: piscina's, and its priority among others. */
export interface RunOptions {
  transferList?: TransferList
  filename?: string | null
  signal?: AbortSignalAny | null
  name?: string | null
  /**
   * heddle only: a task of high priority starts before others, and preempts compiled tasks. Default:
   * 'normal'.
   */
  priority?: TaskPriority
  /** heddle only: its share among tasks of the same priority, -20 (most) to 19 (least). */
  nice?: number
}

export const runOptions: Known<RunOptions> = {
  transferList: true,
  filename: true,
  signal: true,
  name: true,
  priority: true,
  nice: true,
}

export interface CloseOptions {
  force?: boolean
}

/** The highest number of CPUs in a kernel. */
export const THREADS_MAX = 64

/** Copies own properties only: a polluted prototype must not add options. */
export function ownOptions<T extends object>(options: T): T {
  return Object.assign(Object.create(null), options) as T
}

const atomics: readonly unknown[] = ['sync', 'async', 'disabled']

/** Throws piscina's errors. */
export function checkOptions(options: Options): void {
  const { filename, name, minThreads, maxThreads, maxQueue, niceIncrement, loadBalancer } = options
  must(filename == null || typeof filename === 'string', 'options.filename must be a string or null')
  must(name == null || typeof name === 'string', 'options.name must be a string or null')
  must(isCount(minThreads, 0), 'options.minThreads must be a non-negative integer')
  must(isCount(maxThreads, 1), 'options.maxThreads must be a positive integer')
  if (minThreads !== undefined && maxThreads !== undefined && minThreads > maxThreads)
    throw new RangeError('options.minThreads and options.maxThreads must not conflict')
  must(isCount(options.idleTimeout, 0), 'options.idleTimeout must be a non-negative integer')
  must(maxQueue === 'auto' || isCount(maxQueue, 0), 'options.maxQueue must be a non-negative integer')
  must(
    isCount(options.concurrentTasksPerWorker, 1),
    'options.concurrentTasksPerWorker must be a positive integer',
  )
  must(
    options.atomics == null || atomics.includes(options.atomics),
    'options.atomics should be a value of sync, sync or disabled.',
  )
  const { resourceLimits, taskQueue } = options
  must(
    resourceLimits === undefined || (typeof resourceLimits === 'object' && resourceLimits !== null),
    'options.resourceLimits must be an object',
  )
  must(taskQueue === undefined || isTaskQueue(taskQueue), 'options.taskQueue must be a TaskQueue object')
  must(
    niceIncrement === undefined ||
      (typeof niceIncrement === 'number' && (niceIncrement >= 0 || process.platform === 'win32')),
    'options.niceIncrement must be a non-negative integer on Unix systems',
  )
  must(isBoolean(options.trackUnmanagedFds), 'options.trackUnmanagedFds must be a boolean value')
  must(isCount(options.closeTimeout, 0), 'options.closeTimeout must be a non-negative integer')
  must(
    loadBalancer === undefined || (typeof loadBalancer === 'function' && loadBalancer.length >= 1),
    'options.loadBalancer must be a function with at least two args',
  )
  must(isBoolean(options.recordTiming), 'options.recordTiming must be a boolean')
  must(isBoolean(options.workerHistogram), 'options.workerHistogram must be a boolean')
  must(isBoolean(options.stricterFIFO), 'options.stricterFIFO must be a boolean')
}

function must(isSo: boolean, message: string): void {
  if (!isSo) throw new TypeError(message)
}

function isCount(value: unknown, least: number): boolean {
  return value === undefined || (typeof value === 'number' && value >= least)
}

function isBoolean(value: unknown): boolean {
  return value === undefined || typeof value === 'boolean'
}

/** How many tasks a worker has by default if tasks are preempted: they share the CPU in slices. */
export const SHARED_TASKS = 64

/** Fills in the defaults. `preempts`: the tasks of the pool are compiled. */
export function filledOptions(options: Options, preempts: boolean): FilledOptions {
  const cores = availableParallelism()
  const { minThreads, maxThreads, maxQueue, filename, name, atomics: mode } = options
  const filled: FilledOptions = Object.assign(Object.create(null), {
    minThreads: Math.max(Math.floor(cores / 2), 1),
    maxThreads: Math.min(cores * 1.5, THREADS_MAX),
    idleTimeout: 0,
    concurrentTasksPerWorker: preempts ? SHARED_TASKS : 1,
    niceIncrement: 0,
    trackUnmanagedFds: true,
    closeTimeout: 30_000,
    recordTiming: true,
    stricterFIFO: false,
    workerHistogram: false,
    ...options,
    name: name ?? 'default',
    atomics: mode ?? 'sync',
    filename: filename ? filePath(filename) : null,
    maxQueue: 0,
  })
  if (maxThreads !== undefined) filled.minThreads = Math.min(filled.minThreads, maxThreads)
  if (minThreads !== undefined) filled.maxThreads = Math.max(filled.maxThreads, minThreads)
  filled.maxQueue = maxQueue === 'auto' ? filled.maxThreads ** 2 : (maxQueue ?? Infinity)
  return filled
}

/** The path of a file, given as a path or as a URL. */
export function filePath(filename: string): string {
  return filename.startsWith('file:') ? fileURLToPath(new URL(filename)) : filename
}
