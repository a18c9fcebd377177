import type { WorkerOptions } from 'node:worker_threads'
import type { Kinds } from '../coroutine/core/knownoptions.ts'
import { warn } from '../kernel/boot/kernelevents.ts'
import { THREADS_MAX } from '../piscina/options.ts'
import type { TaskPriority } from '../kernel/boot/options.ts'
import { cpus } from './environment.ts'
import type { TaskQueue } from './queues.ts'

/** The options of a worker, for the callbacks of a pool. */
export interface WorkerArg {
  forkArgs?: readonly string[]
  forkOpts?: object
  workerOpts?: object
  workerThreadOpts?: WorkerOptions
  script?: string | null
}

export interface WorkerPoolOptions {
  minWorkers?: number | 'max'
  maxWorkers?: number
  maxQueueSize?: number
  workerType?: 'auto' | 'thread'
  /** The old name of `workerType`. */
  nodeWorker?: 'auto' | 'thread'
  queueStrategy?: 'fifo' | 'lifo' | TaskQueue
  /** Milliseconds for a worker to clean up before it is terminated. Default: 1000. */
  workerTerminateTimeout?: number
  workerThreadOpts?: WorkerOptions
  emitStdStreams?: boolean
  onCreateWorker?: (arg: WorkerArg) => WorkerArg | null | undefined | void
  onTerminateWorker?: (arg: WorkerArg) => void
  /** For processes and browsers: accepted, passed to the callbacks, and without effect. */
  forkArgs?: readonly string[]
  forkOpts?: object
  workerOpts?: object
  debugPortStart?: number
  /**
   * heddle only: the modules that the workers compile, so that tasks are preempted there: package names,
   * files, or 'all'. Default: `"heddle": { "compile": […] }` in the package.json of the script.
   */
  compile?: readonly (string | RegExp | URL)[] | 'all'
}

export interface ExecOptions {
  on?: (payload: any) => unknown
  transfer?: readonly object[]
  metadata?: any
  /**
   * heddle only: a task of high priority starts before others of its worker, and preempts compiled tasks.
   * Default: 'normal'.
   */
  priority?: TaskPriority
  /** heddle only: its share among tasks of the same priority, -20 (most) to 19 (least). */
  nice?: number
}

export const poolKinds: Kinds<WorkerPoolOptions> = {
  minWorkers: 'checked',
  maxWorkers: 'checked',
  maxQueueSize: 'number',
  workerType: 'checked',
  nodeWorker: 'checked',
  queueStrategy: 'checked',
  workerTerminateTimeout: 'number',
  workerThreadOpts: 'checked',
  emitStdStreams: 'boolean',
  onCreateWorker: 'function',
  onTerminateWorker: 'function',
  forkArgs: 'checked',
  forkOpts: 'checked',
  workerOpts: 'checked',
  debugPortStart: 'checked',
  compile: 'checked',
}

export const execKinds: Kinds<ExecOptions> = {
  on: 'function',
  transfer: 'checked',
  metadata: 'checked',
  priority: 'checked',
  nice: 'checked',
}

export interface WorkerRegisterOptions {
  onTerminate?: (code: number | undefined) => PromiseLike<void> | void
  abortListenerTimeout?: number
}

const types: readonly unknown[] = ['auto', 'thread', 'threads']

export function checkType(type: unknown): void {
  if (types.includes(type)) return
  const why =
    type === 'process'
      ? 'the workers are CPUs of a kernel, which are threads'
      : type === 'web'
        ? 'heddle/workerpool is for Node; in a browser use Kernel of heddle'
        : 'there is no such type'
  throw new TypeError(
    `workerType: ${JSON.stringify(type)} is not possible: ${why}; give 'thread' or 'auto', or none`,
  )
}

/** The minimum and maximum number of workers. */
export function countsOf(options: WorkerPoolOptions): { minWorkers: number | undefined; maxWorkers: number } {
  let maxWorkers = Math.max(cpus - 1, 1)
  if ('maxWorkers' in options) {
    checkCount('maxWorkers', options.maxWorkers, 1)
    maxWorkers = options.maxWorkers as number
  }
  let minWorkers: number | undefined
  if (options.minWorkers === 'max') minWorkers = maxWorkers
  else if ('minWorkers' in options) {
    checkCount('minWorkers', options.minWorkers, 0)
    minWorkers = options.minWorkers as number
    maxWorkers = Math.max(minWorkers, maxWorkers)
  }
  if (maxWorkers > THREADS_MAX) {
    warn(
      `maxWorkers: ${maxWorkers} is more than the ${THREADS_MAX} CPUs that a kernel has; the pool has ${THREADS_MAX}`,
      'HEDDLE_MAX_WORKERS',
    )
    maxWorkers = THREADS_MAX
    if (minWorkers !== undefined) minWorkers = Math.min(minWorkers, THREADS_MAX)
  }
  return { minWorkers, maxWorkers }
}

function checkCount(name: string, value: unknown, least: number): void {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least)
    throw new TypeError(`Option ${name} must be an integer number >= ${least}`)
}

const known: readonly string[] = [
  'argv',
  'env',
  'execArgv',
  'workerData',
  'trackUnmanagedFds',
  'resourceLimits',
  'name',
]
const impossible: readonly string[] = ['eval', 'stdin', 'stdout', 'stderr', 'transferList']
const threadOptions = [...known, ...impossible]

/**
 * Throws workerpool's errors for options that no thread has, and an error for thread options that a CPU does
 * not support.
 */
export function checkThreadOptions(options: WorkerOptions): void {
  const given = Object.keys(options)
  const unknown = given.find(name => !threadOptions.includes(name))
  if (unknown !== undefined)
    throw new Error(`Object "workerThreadOpts" contains an unknown option "${unknown}"`)
  const inherited = threadOptions.find(
    name => (Object.prototype as Record<string, unknown>)[name] && !given.includes(name),
  )
  if (inherited !== undefined)
    throw new Error(
      `Object "workerThreadOpts" contains an inherited option "${inherited}" which is not defined in the object itself but in its prototype`,
    )
  const refused = given.find(
    name => impossible.includes(name) && Boolean((options as Record<string, unknown>)[name]),
  )
  if (refused !== undefined)
    throw new Error(
      `workerThreadOpts.${refused} is not possible: the workers are CPUs of a kernel, whose threads it starts; ${refused.startsWith('std') ? 'use emitStdStreams' : 'use workerData and transfer'}`,
    )
}
