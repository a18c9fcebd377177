import { CPU_MAX } from '../../arena/sync/thread.ts'
import { checkCpus } from '../../machine/core/cpurecord.ts'
import { checkSignal, checkTime } from '../../coroutine/core/blocking.ts'
import {
  checkOptions,
  type Kinds,
  type Known,
  refuseUnknown,
  show,
} from '../../coroutine/core/knownoptions.ts'
import { checkMovable } from '../../payload/transfer.ts'
import { FAIR_PRIORITY, makePriority, NICE_MAX, NICE_MIN } from '../../sched/core/priority.ts'
import type { FutexSizes } from '../../futex/core/layout.ts'

/** The options of `Kernel.boot`. Each has a default. */
export interface KernelOptions {
  /**
   * Worker threads that run tasks: 1 to 64. Default: the number of cores. Or `{ min, max, idle }`: the kernel
   * starts with `min`, adds CPUs while tasks wait for one, and ends a CPU that was idle for `idle`
   * milliseconds.
   */
  readonly cpus?: number | CpuRange
  /** Milliseconds that a task runs before a task of equal priority gets its turn. Default: 10. */
  readonly slice?: number
  /**
   * How many tasks spawned by the booting thread may be started on each CPU; the others wait for one to end,
   * by priority. Tasks spawned by tasks do not count. Default: no limit.
   */
  readonly tasksPerCpu?: number
  /** The maximum of living tasks. Default: 65536. */
  readonly tasks?: number
  /** How many spawned tasks may be unfinished before `spawn` throws. Default: the value of `tasks`. */
  readonly queue?: number
  /**
   * Bytes of the arena for the payloads of arguments and results. Default: 256 MiB; unused memory costs
   * nothing.
   */
  readonly heap?: number
  readonly futexes?: FutexSizes
  /** Milliseconds that a killed task has to end before it loses its CPU. Default: 1000. */
  readonly grace?: number
  /** What to do about a task that runs for too long without a safepoint. */
  readonly watchdog?: WatchdogOptions | false
  /** Limits of each CPU's heap, as in worker_threads. */
  readonly resourceLimits?: ResourceLimits
  /** Node's flags for each CPU. Default: those of this process. */
  readonly execArgv?: readonly string[]
  /** `process.argv` of each CPU after its first two entries. Node only. */
  readonly argv?: readonly unknown[]
  /**
   * `process.env` of each CPU. Default: a copy of this thread's. `SHARE_ENV` of node:worker_threads: the same
   * object. Node only.
   */
  readonly env?: Readonly<Record<string, string | undefined>> | symbol
  /**
   * A value that each CPU gets a copy of: `workerData` of node:worker_threads on the CPU, and `workerData()`
   * of heddle.
   */
  readonly workerData?: unknown
  /**
   * Close the files that a CPU opened and left open, when it ends. Default: true, as in node:worker_threads.
   * Node only.
   */
  readonly trackUnmanagedFds?: boolean
  /**
   * When a CPU runs its event loop. 'needed' (the default): while a task waits for an event of the event
   * loop. 'always': also while it has no task, so that timers and sockets that a task left there stay active.
   */
  readonly eventLoop?: 'needed' | 'always'
  /**
   * On Node: code that CPUs compile although it does not contain 'use task'. Packages by name (`'jpeg-js'`,
   * `'@acme/*'`, `/^@acme\\//`), files and folders by an absolute path or a file: URL, `'all'`; `'!react'`
   * excludes one.
   */
  readonly compile?: readonly (string | RegExp | URL)[] | 'all'
  /**
   * 'threads': CPUs are worker threads. 'simulated': virtual CPUs in this thread, in virtual time, by `seed`.
   */
  readonly machine?: 'threads' | 'simulated'
  /** For a simulated machine: the same seed gives the same run. */
  readonly seed?: number
  /** For a simulated machine: how far apart the clocks of its CPUs may be, in virtual milliseconds. */
  readonly skew?: number
  /**
   * Events that each thread's ring keeps for traces: a power of two, 16 or more; 0: no ring. Default: 4096.
   */
  readonly events?: number
  /** Let `heddle top` of the same user inspect this kernel and control its tasks. Default: true. */
  readonly control?: boolean
  /** How long a hand-off lock yields before it sleeps. LH_YIELD_BUDGET and LH_FALLBACK_US take precedence. */
  readonly handoff?: HandoffKnobs
  /**
   * Check the kernel's lock order, record the holder of each lock, and throw into a task or thread that would
   * close a cycle of waits.
   */
  readonly debug?: boolean
}

/** The number of CPUs of a kernel, if it changes with the work. */
export interface CpuRange {
  /** 0 to 64. Default: 1. */
  readonly min?: number
  /** `min` to 64, at least 1. Default: the number of cores, or `min` if that is more. */
  readonly max?: number
  /** Milliseconds without a task before a CPU above `min` ends. Default: 10000; Infinity: it stays. */
  readonly idle?: number
}

/** The options of `kernel.resize`. */
export interface ResizeOptions {
  /**
   * Milliseconds that tasks which cannot move have to end on a CPU that ends. Then the CPU is terminated, and
   * they end with CpuLostError. Default: Infinity: they keep the CPU until they end.
   */
  readonly grace?: number
}

export const resizeOptions: Known<ResizeOptions> = { grace: true }

export interface HandoffKnobs {
  /** How often a task yields before it sleeps. Default: 32. */
  readonly yieldBudget?: number
  /** For how long, in microseconds. Default: 100. */
  readonly fallbackUs?: number
}

export interface WatchdogOptions {
  /** Milliseconds. Default: 1000. */
  readonly limit?: number
  /** Take the CPU from a stuck task, instead of only reporting it. */
  readonly evict?: boolean
}

export interface ResourceLimits {
  readonly maxOldGenerationSizeMb?: number
  readonly maxYoungGenerationSizeMb?: number
  readonly codeRangeSizeMb?: number
  readonly stackSizeMb?: number
}

/**
 * A named level, or 4 (highest) to 251 (lowest): less than 128 precedes every ordinary task, 128 is ordinary.
 */
export type TaskPriority = 'realtime' | 'high' | 'normal' | 'low' | 'idle' | number

export interface SpawnOptions {
  /** For errors, reports and `heddle top`. Default: the function's name. */
  readonly name?: string
  readonly priority?: TaskPriority
  /** -20 (most) to 19 (least): its share among ordinary tasks. */
  readonly nice?: number
  /** Milliseconds that it runs before a task of equal priority gets its turn. Default: the kernel's. */
  readonly slice?: number
  /**
   * For a priority better than the ordinary ones: it yields to equals when its slice is over. By default it
   * runs until it waits.
   */
  readonly roundRobin?: boolean
  /** The CPUs that it may start on; it stays on the CPU where it starts. */
  readonly affinity?: readonly number[]
  /** Kills the task when it is aborted. */
  readonly signal?: AbortSignal
  /** Milliseconds; then the task is killed. */
  readonly timeout?: number
  /** Its result is not kept, and it has no parent. A failure is reported. */
  readonly detached?: boolean
  /** It may be started again, with the same arguments, when its CPU dies. */
  readonly restartable?: boolean
  /**
   * True: the task must be able to move to another CPU after it has started; an error if its function cannot.
   * False: it stays on the CPU that starts it. Default: it moves if its function says 'use task movable'.
   */
  readonly movable?: boolean
  /**
   * Milliseconds between two checkpoints of a movable task: if its CPU dies, it goes on from the last one.
   * All that it did since happens again: messages are sent, files written and tasks spawned a second time. A
   * checkpoint waits while the task holds a lock; `task.status.checkpointing` says so.
   */
  readonly checkpoint?: number
  /**
   * ArrayBuffers among the arguments that are moved instead of copied. On the booting thread also ports and
   * other objects that `postMessage` transfers: the CPU of such a task is chosen when it is spawned. Large
   * buffers move without a copy if only one CPU can start the task.
   */
  readonly transfer?: readonly object[]
}

const levels: Readonly<Record<Exclude<TaskPriority, number>, number>> = {
  realtime: makePriority(8, 0),
  high: makePriority(24, 0),
  normal: FAIR_PRIORITY,
  low: makePriority(40, 0),
  idle: makePriority(60, 0),
}

/** The kernel's number for a priority. Throws a RangeError that lists the valid values. */
export function priorityOf(priority: TaskPriority): number {
  if (typeof priority === 'number') {
    if (Number.isInteger(priority) && priority >= 4 && priority <= 251) return priority
  } else if (typeof priority === 'string' && Object.hasOwn(levels, priority)) return levels[priority]
  throw new RangeError(
    `priority: ${show(priority)} is not a priority; give ${Object.keys(levels).join(', ')} or an integer from 4 to 251`,
  )
}

/** The name of a priority, if it has one. */
export function priorityName(priority: number): TaskPriority {
  for (const [name, level] of Object.entries(levels)) if (level === priority) return name as TaskPriority
  return priority
}

export function checkNice(nice: unknown): asserts nice is number {
  if (typeof nice !== 'number' || !Number.isInteger(nice) || nice < NICE_MIN || nice > NICE_MAX) {
    throw new RangeError(`nice: ${show(nice)} is not a nice value; give an integer from -20 to 19`)
  }
}

export function checkAffinity(affinity: unknown, cpus: number): asserts affinity is readonly number[] {
  const given = affinity as readonly unknown[]
  if (!Array.isArray(affinity) || given.length === 0) {
    throw new TypeError(`affinity: ${show(affinity)} is not a list of CPUs; give at least one, as in [0, 1]`)
  }
  for (const cpu of given) {
    if (typeof cpu !== 'number' || !Number.isInteger(cpu) || cpu < 0 || cpu >= cpus) {
      throw new RangeError(`affinity: there is no CPU ${show(cpu)}; the kernel has 0 to ${cpus - 1}`)
    }
  }
}

export const spawnOptions: Known<SpawnOptions> = {
  name: true,
  priority: true,
  nice: true,
  slice: true,
  roundRobin: true,
  affinity: true,
  signal: true,
  timeout: true,
  detached: true,
  restartable: true,
  movable: true,
  checkpoint: true,
  transfer: true,
}

function checkSlice(slice: unknown): void {
  if (typeof slice !== 'number' || !(slice > 0) || slice > 10_000) {
    throw new RangeError(`slice: ${show(slice)} is not a slice; give milliseconds above 0, as in 10`)
  }
}

function checkCheckpoint({ checkpoint, movable }: SpawnOptions): void {
  if (typeof checkpoint !== 'number' || !(checkpoint >= 1) || checkpoint > 0x7fff_ffff) {
    throw new RangeError(`checkpoint: ${show(checkpoint)} is not an interval; give milliseconds from 1 on`)
  }
  if (movable === false) {
    throw new TypeError(
      'checkpoint: a task with `movable: false` has no checkpoints; leave out one of the two options',
    )
  }
}

function checkBoolean(name: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'boolean')
    throw new TypeError(`${name}: ${show(value)} is not a boolean; give true or false`)
}

export function checkSpawnOptions(options: SpawnOptions, cpus: number): void {
  refuseUnknown('spawn(fn, args, options)', options, spawnOptions)
  const { name, nice, affinity, signal, timeout, transfer } = options
  if (transfer !== undefined && !Array.isArray(transfer))
    throw new TypeError(`transfer: ${show(transfer)} is not a list of objects; give a list, as in [buffer]`)
  if (transfer !== undefined) checkMovable(transfer)
  if (name !== undefined && typeof name !== 'string')
    throw new TypeError(`name: ${show(name)} is not a string; give a string`)
  if (nice !== undefined) checkNice(nice)
  const { slice, roundRobin, detached, restartable } = options
  if (slice !== undefined) checkSlice(slice)
  checkBoolean('roundRobin', roundRobin)
  checkBoolean('detached', detached)
  checkBoolean('restartable', restartable)
  checkBoolean('movable', options.movable)
  if (options.checkpoint !== undefined) checkCheckpoint(options)
  if (affinity !== undefined) checkAffinity(affinity, cpus)
  if (timeout !== undefined) checkTime('timeout', timeout)
  checkSignal(signal)
}

/** The checked options of a boot, with all defaults. */
export interface BootSettings {
  /** The maximum of CPUs. */
  readonly cpus: number
  /** The number of CPUs at the start, and the minimum. */
  readonly minCpus: number
  /** Milliseconds before an idle CPU above `minCpus` ends. */
  readonly idle: number
  readonly slice: number
  readonly tasks: number
  readonly tasksPerCpu: number
  readonly queue: number
  readonly heap: number
  readonly grace: number
  readonly watchdog: { readonly limit: number; readonly evict: boolean } | null
  readonly compile: readonly string[]
}

const TASKS_MAX = 13_000_000

export const kernelOptions: Known<KernelOptions> = {
  cpus: true,
  slice: true,
  tasksPerCpu: true,
  tasks: true,
  queue: true,
  heap: true,
  futexes: true,
  grace: true,
  watchdog: true,
  resourceLimits: true,
  execArgv: true,
  argv: true,
  env: true,
  workerData: true,
  trackUnmanagedFds: true,
  eventLoop: true,
  compile: true,
  machine: true,
  seed: true,
  skew: true,
  events: true,
  control: true,
  handoff: true,
  debug: true,
}
const watchdogOptions: Kinds<WatchdogOptions> = { limit: 'checked', evict: 'boolean' }
const handoffOptions: Kinds<HandoffKnobs> = { yieldBudget: 'number', fallbackUs: 'number' }

const limitOptions: Kinds<ResourceLimits> = {
  maxOldGenerationSizeMb: 'number',
  maxYoungGenerationSizeMb: 'number',
  codeRangeSizeMb: 'number',
  stackSizeMb: 'number',
}

function checkObject(name: string, value: unknown): void {
  if (typeof value !== 'object' || value === null)
    throw new TypeError(`${name}: ${show(value)} is not an object; give an object of sizes`)
}

export function bootSettings(options: KernelOptions, cores: () => number): BootSettings {
  refuseUnknown('Kernel.boot(options)', options, kernelOptions)
  const { cpus, minCpus, idle } = cpuSettings(options.cpus, cores)
  checkCpuOptions(options)
  const { slice = 10, tasks = 65_536, heap = 256 * 1024 * 1024, grace = 1000 } = options
  checkSlice(slice)
  checkCount('tasks', tasks, TASKS_MAX)
  const queue = options.queue ?? tasks
  checkCount('queue', queue, tasks)
  const { tasksPerCpu = Infinity } = options
  if (tasksPerCpu !== Infinity) checkCount('tasksPerCpu', tasksPerCpu, tasks)
  checkTime('grace', grace)
  const { machine = 'threads' } = options
  if (machine !== 'threads' && machine !== 'simulated') {
    throw new TypeError(`machine: ${show(machine)} is not a machine; give 'threads' or 'simulated'`)
  }
  const asked = options.watchdog ?? {}
  if (asked !== false) checkOptions('watchdog', asked, watchdogOptions)
  checkBoolean('control', options.control)
  checkBoolean('debug', options.debug)
  if (options.futexes !== undefined) checkObject('futexes', options.futexes)
  if (options.handoff !== undefined) checkOptions('handoff', options.handoff, handoffOptions)
  const limit = asked === false ? 0 : (asked.limit ?? 1000)
  checkTime('watchdog.limit', limit)
  if (machine === 'simulated' && minCpus !== cpus) {
    throw new TypeError(
      `cpus: a simulated machine has the same CPUs from its boot on; give a number, as in cpus: ${cpus}`,
    )
  }
  return {
    cpus,
    minCpus,
    idle,
    slice,
    tasks,
    tasksPerCpu,
    queue,
    heap,
    grace,
    watchdog: asked === false ? null : { limit, evict: asked.evict ?? false },
    compile: compilePatterns(options.compile ?? []),
  }
}

function cpuSettings(
  asked: KernelOptions['cpus'],
  cores: () => number,
): Pick<BootSettings, 'cpus' | 'minCpus' | 'idle'> {
  const most = (): number => Math.min(CPU_MAX, Math.max(1, cores()))
  if (typeof asked !== 'object' || asked === null) {
    const cpus = asked ?? most()
    checkCpus(cpus)
    return { cpus, minCpus: cpus, idle: Infinity }
  }
  for (const key of Object.keys(asked)) {
    if (key !== 'min' && key !== 'max' && key !== 'idle')
      throw new TypeError(`cpus.${key}: there is no such option; give min, max and idle`)
  }
  const { min = 1, idle = 10_000 } = asked
  if (typeof min !== 'number' || !Number.isInteger(min) || min < 0 || min > CPU_MAX) {
    throw new RangeError(
      `cpus.min: ${show(min)} is not a number of CPUs; give an integer from 0 to ${CPU_MAX}`,
    )
  }
  const { max = Math.max(min, most()) } = asked
  if (typeof max !== 'number' || !Number.isInteger(max) || max < Math.max(1, min) || max > CPU_MAX) {
    throw new RangeError(
      `cpus.max: ${show(max)} is not a number of CPUs; give an integer from ${Math.max(1, min)} (because of cpus.min) to ${CPU_MAX}`,
    )
  }
  checkTime('cpus.idle', idle)
  return { cpus: max, minCpus: min, idle }
}

/** Checks the options that are passed on to each CPU's thread. */
function checkCpuOptions(options: KernelOptions): void {
  const { env, argv, execArgv, resourceLimits, trackUnmanagedFds, eventLoop = 'needed' } = options
  if (env !== undefined && typeof env !== 'symbol' && (typeof env !== 'object' || env === null)) {
    throw new TypeError(`env: ${show(env)} is not an environment; give an object of strings, or SHARE_ENV`)
  }
  for (const [name, list] of Object.entries({ argv, execArgv })) {
    if (list !== undefined && !Array.isArray(list))
      throw new TypeError(`${name}: ${show(list)} is not a list; give an array of strings`)
  }
  if (resourceLimits !== undefined) checkOptions('resourceLimits', resourceLimits, limitOptions)
  checkBoolean('trackUnmanagedFds', trackUnmanagedFds)
  if (eventLoop !== 'needed' && eventLoop !== 'always')
    throw new TypeError(`eventLoop: ${show(eventLoop)} is not known; give 'needed' or 'always'`)
}

/**
 * The patterns as texts, which are sent to the CPUs (compiler/loading/selection.ts). Throws for an invalid
 * pattern.
 */
function compilePatterns(given: unknown): string[] {
  const patterns: unknown = given === 'all' ? ['all'] : given
  const hint = "give a list of package names, as in ['marked', '@acme/*'], or 'all'"
  if (!Array.isArray(patterns)) throw new TypeError(`compile: ${show(given)} is not a list; ${hint}`)
  return (patterns as unknown[]).map(pattern => {
    if (pattern instanceof RegExp) return `regexp:${pattern.flags}:${pattern.source}`
    if (pattern instanceof URL) return pattern.href
    if (typeof pattern !== 'string' || pattern.replace(/^!/, '') === '') {
      throw new TypeError(`compile: ${show(pattern)} is not a pattern; ${hint}`)
    }
    if (/^!?\.{1,2}(?:[/\\]|$)/.test(pattern)) {
      throw new TypeError(
        `compile: ${show(pattern)} is relative, and a CPU cannot resolve it; give new URL(${show(pattern)}, import.meta.url).href`,
      )
    }
    return pattern
  })
}

interface WithEnvironment {
  readonly process?: { readonly env?: Readonly<Record<string, string | undefined>> }
}

/** The environment variables for hand-off, which `heddle run` sets. */
export const YIELD_BUDGET_VARIABLE = 'LH_YIELD_BUDGET'
export const FALLBACK_VARIABLE = 'LH_FALLBACK_US'

/** The settings of hand-off locks: from the environment, else from the options. */
export function handoffKnobs({ handoff = {} }: KernelOptions): HandoffKnobs {
  const { env = {} } = (globalThis as WithEnvironment).process ?? {}
  const yieldBudget = knob('handoff.yieldBudget', YIELD_BUDGET_VARIABLE, env, handoff.yieldBudget)
  const fallbackUs = knob('handoff.fallbackUs', FALLBACK_VARIABLE, env, handoff.fallbackUs)
  return {
    ...(yieldBudget !== undefined && { yieldBudget }),
    ...(fallbackUs !== undefined && { fallbackUs }),
  }
}

function knob(
  option: string,
  variable: string,
  env: Readonly<Record<string, string | undefined>>,
  given: unknown,
): number | undefined {
  const said = env[variable]
  const value = said === undefined || said === '' ? given : Number(said)
  if (value === undefined) return undefined
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) {
    const name = value === given ? `${option}: ${show(value)}` : `${variable}: ${show(said)}`
    throw new RangeError(`${name} is not a whole number; give 0 or more`)
  }
  return value
}

function checkCount(option: string, value: unknown, most: number): void {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > most) {
    throw new RangeError(
      `${option}: ${show(value)} is not a number of tasks; give an integer from 1 to ${most}`,
    )
  }
}

/** Throws unless the arguments of a spawn are a list. `name`: the name of the function. */
export function checkArguments(name: string, args: unknown): asserts args is readonly unknown[] {
  if (Array.isArray(args)) return
  throw new TypeError(
    `spawn(${name}, args): the arguments are a list, as in spawn(fn, [1, 2]); got ${show(args)}`,
  )
}
