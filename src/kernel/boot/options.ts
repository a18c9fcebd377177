import { CPU_MAX } from '../../arena/sync/thread.ts'
import { checkCpus } from '../../machine/core/cpurecord.ts'
import { checkTime } from '../../coroutine/core/blocking.ts'
import { checkOptions, type Kinds, type Known, refuseUnknown } from '../../coroutine/core/knownoptions.ts'
import { FAIR_PRIORITY, makePriority, NICE_MAX, NICE_MIN } from '../../sched/core/priority.ts'
import type { FutexSizes } from '../../futex/core/layout.ts'

/** How a kernel is booted. Everything has a default. */
export interface KernelOptions {
  /**
   * Worker threads that run tasks: 1 to 64. As many as the machine has cores. Or `{ min, max, idle }`: the
   * kernel starts with `min`, adds CPUs while tasks wait for one, and ends a CPU that had nothing to do for
   * `idle` milliseconds.
   */
  readonly cpus?: number | CpuRange
  /** Milliseconds that a task runs before an equal gets its turn. 10. */
  readonly slice?: number
  /**
   * How many of the tasks that the booting thread spawns may have started on each CPU; the others wait for
   * one to end, by priority. What tasks spawn is not counted. No limit by default.
   */
  readonly tasksPerCpu?: number
  /** How many tasks may live at once. 65536. */
  readonly tasks?: number
  /** How many tasks may be on their way before `spawn` throws. As many as `tasks`. */
  readonly queue?: number
  /** Bytes of the arena for arguments and results on their way. 256 MiB; what is not used costs nothing. */
  readonly heap?: number
  readonly futexes?: FutexSizes
  /** Milliseconds that a killed task has to end before it costs its CPU. 1000. */
  readonly grace?: number
  /** What to do about a task that runs for too long without a safepoint. */
  readonly watchdog?: WatchdogOptions | false
  /** Limits of each CPU's heap, as worker_threads has them. */
  readonly resourceLimits?: ResourceLimits
  /** Node's flags for each CPU; those of this process by default. */
  readonly execArgv?: readonly string[]
  /** What follows the first two words of `process.argv` on each CPU. Node only. */
  readonly argv?: readonly unknown[]
  /**
   * `process.env` of each CPU: a copy of this thread's by default; `SHARE_ENV` of node:worker_threads: the
   * same object. Node only.
   */
  readonly env?: Readonly<Record<string, string | undefined>> | symbol
  /**
   * A value that each CPU gets a copy of: `workerData` of node:worker_threads there, and `workerData()` of
   * heddle.
   */
  readonly workerData?: unknown
  /**
   * Close the files that a CPU opened and left open, when it ends. True, as node:worker_threads has it. Node
   * only.
   */
  readonly trackUnmanagedFds?: boolean
  /**
   * When a CPU lets its event loop turn. 'needed': while a task waits for something that only the event loop
   * brings. 'always': also while it has no task, so that timers and sockets which a task left there go on.
   * 'needed'.
   */
  readonly eventLoop?: 'needed' | 'always'
  /**
   * On Node: what CPUs compile although nothing in it says 'use task'. Packages by name (`'jpeg-js'`,
   * `'@acme/*'`, `/^@acme\\//`), files and folders by an absolute path or a file: URL, `'all'`; `'!react'`
   * leaves one out.
   */
  readonly compile?: readonly (string | RegExp | URL)[] | 'all'
  /**
   * 'threads': CPUs are worker threads. 'simulated': virtual CPUs in this thread, in virtual time, by `seed`.
   */
  readonly machine?: 'threads' | 'simulated'
  /** Of a simulated machine: the same seed gives the same run. */
  readonly seed?: number
  /** Of a simulated machine: how far its CPUs may run apart, in virtual milliseconds. */
  readonly skew?: number
  /**
   * Events that each thread's ring remembers, for traces: a power of two, 16 or more; 0: it has none. 4096.
   */
  readonly events?: number
  /** Let `heddle top` of the same user look at this kernel and steer its tasks. On by default. */
  readonly control?: boolean
  /**
   * How long a hand-off lock gives way before it waits for real. LH_YIELD_BUDGET and LH_FALLBACK_US go before
   * it.
   */
  readonly handoff?: HandoffKnobs
  /**
   * Check the kernel's lock order, keep a record of who holds which lock, and throw into whoever would close
   * a circle of waits.
   */
  readonly debug?: boolean
}

/** How many CPUs a kernel has, where the number changes with the work. */
export interface CpuRange {
  /** 0 to 64. 1. */
  readonly min?: number
  /** `min` to 64, at least 1. As many as the machine has cores, or `min` where that is more. */
  readonly max?: number
  /** Milliseconds without a task before a CPU above `min` ends. 10000; Infinity: it stays. */
  readonly idle?: number
}

export interface HandoffKnobs {
  /** How often a task gives way before it waits for real. 32. */
  readonly yieldBudget?: number
  /** For how long, in microseconds. 100. */
  readonly fallbackUs?: number
}

export interface WatchdogOptions {
  /** Milliseconds. 1000. */
  readonly limit?: number
  /** Take its CPU from a task that is stuck, instead of only reporting it. */
  readonly evict?: boolean
}

export interface ResourceLimits {
  readonly maxOldGenerationSizeMb?: number
  readonly maxYoungGenerationSizeMb?: number
  readonly codeRangeSizeMb?: number
  readonly stackSizeMb?: number
}

/** A named level, or 4 (highest) to 251 (lowest): below 128 outranks every ordinary task, 128 is ordinary. */
export type TaskPriority = 'realtime' | 'high' | 'normal' | 'low' | 'idle' | number

export interface SpawnOptions {
  /** For people: in errors, reports and `heddle top`. The function's name by default. */
  readonly name?: string
  readonly priority?: TaskPriority
  /** -20 (most) to 19 (least): its share among ordinary tasks. */
  readonly nice?: number
  /** Milliseconds that it runs before an equal gets its turn. The kernel's by default. */
  readonly slice?: number
  /**
   * Among equals of a priority above the ordinary ones: it gives way when its slice is over. By default it
   * runs until it waits.
   */
  readonly roundRobin?: boolean
  /** The CPUs that it may start on; it stays on the one that it starts on. */
  readonly affinity?: readonly number[]
  /** Kills it when it is aborted. */
  readonly signal?: AbortSignal
  /** Milliseconds; then it is killed. */
  readonly timeout?: number
  /** It belongs to nobody: its result is not kept, and it has no parent. A failure is reported. */
  readonly detached?: boolean
  /** It may be started again, with the same arguments, when its CPU dies. */
  readonly restartable?: boolean
  /**
   * ArrayBuffers among the arguments that are moved instead of copied. From the booting thread also ports,
   * and whatever else `postMessage` transfers: such a task's CPU is chosen when it is spawned.
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

/** The kernel's number for a priority. Throws a RangeError that says what there is. */
export function priorityOf(priority: TaskPriority): number {
  if (typeof priority === 'number') {
    if (Number.isInteger(priority) && priority >= 4 && priority <= 251) return priority
  } else if (Object.hasOwn(levels, priority)) return levels[priority]
  throw new RangeError(
    `priority: ${show(priority)} is not a priority; give ${Object.keys(levels).join(', ')} or an integer from 4 to 251`,
  )
}

/** The name of a priority, where it has one. */
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
  transfer: true,
}

function checkSlice(slice: unknown): void {
  if (typeof slice !== 'number' || !(slice > 0) || slice > 10_000) {
    throw new RangeError(`slice: ${show(slice)} is not a slice; give milliseconds above 0, as in 10`)
  }
}

function checkBoolean(name: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'boolean')
    throw new TypeError(`${name}: ${show(value)} is not true or false`)
}

export function checkSpawnOptions(options: SpawnOptions, cpus: number): void {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`options: ${show(options)} is not an object of spawn options`)
  }
  refuseUnknown('spawn(fn, args, options)', options, spawnOptions)
  const { name, nice, affinity, signal, timeout, transfer } = options
  if (transfer !== undefined && !Array.isArray(transfer))
    throw new TypeError(`transfer: ${show(transfer)} is not a list of objects, as in [buffer]`)
  if (name !== undefined && typeof name !== 'string')
    throw new TypeError(`name: ${show(name)} is not a string`)
  if (nice !== undefined) checkNice(nice)
  const { slice, roundRobin, detached, restartable } = options
  if (slice !== undefined) checkSlice(slice)
  checkBoolean('roundRobin', roundRobin)
  checkBoolean('detached', detached)
  checkBoolean('restartable', restartable)
  if (affinity !== undefined) checkAffinity(affinity, cpus)
  if (timeout !== undefined) checkTime('timeout', timeout)
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') {
    throw new TypeError(`signal: ${show(signal)} is not an AbortSignal`)
  }
}

/** The options of a boot, checked, with every default in place. */
export interface BootSettings {
  /** The most that there can be. */
  readonly cpus: number
  /** How many there are at first, and at least. */
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

const TASKS_MAX = 1_000_000

const kernelOptions: Known<KernelOptions> = {
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

function checkObject(name: string, value: unknown): void {
  if (typeof value !== 'object' || value === null)
    throw new TypeError(`${name}: ${show(value)} is not an object of sizes`)
}

export function bootSettings(options: KernelOptions, cores: () => number): BootSettings {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`Kernel.boot(options): ${show(options)} is not an object of boot options`)
  }
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
    throw new TypeError(`machine: ${show(machine)} is no machine; give 'threads' or 'simulated'`)
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
      `cpus.max: ${show(max)} is not a number of CPUs; give an integer from ${Math.max(1, min)}, as cpus.min says, to ${CPU_MAX}`,
    )
  }
  checkTime('cpus.idle', idle)
  return { cpus: max, minCpus: min, idle }
}

/** The options that are handed on to each CPU's thread. */
function checkCpuOptions(options: KernelOptions): void {
  const { env, argv, execArgv, resourceLimits, trackUnmanagedFds, eventLoop = 'needed' } = options
  if (env !== undefined && typeof env !== 'symbol' && (typeof env !== 'object' || env === null)) {
    throw new TypeError(`env: ${show(env)} is no environment; give an object of strings, or SHARE_ENV`)
  }
  for (const [name, list] of Object.entries({ argv, execArgv })) {
    if (list !== undefined && !Array.isArray(list))
      throw new TypeError(`${name}: ${show(list)} is not a list; give an array of strings`)
  }
  if (resourceLimits !== undefined && (typeof resourceLimits !== 'object' || resourceLimits === null)) {
    throw new TypeError(
      `resourceLimits: ${show(resourceLimits)} is not an object of limits, as in { maxOldGenerationSizeMb: 512 }`,
    )
  }
  checkBoolean('trackUnmanagedFds', trackUnmanagedFds)
  if (eventLoop !== 'needed' && eventLoop !== 'always')
    throw new TypeError(`eventLoop: ${show(eventLoop)} is not known; give 'needed' or 'always'`)
}

/**
 * The patterns as texts, which travel to the CPUs (compiler/loading/selection.ts). Throws for what is none.
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
        `compile: a CPU cannot know what ${show(pattern)} is relative to; give new URL(${show(pattern)}, import.meta.url).href`,
      )
    }
    return pattern
  })
}

interface WithEnvironment {
  readonly process?: { readonly env?: Readonly<Record<string, string | undefined>> }
}

/** The environment's variables for hand-off, which `heddle run` sets. */
export const YIELD_BUDGET_VARIABLE = 'LH_YIELD_BUDGET'
export const FALLBACK_VARIABLE = 'LH_FALLBACK_US'

/** What hand-off locks are told: by the environment, else by the options. */
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
    throw new RangeError(`${name} is not a whole number of 0 or more`)
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

export function show(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`
  if (typeof value === 'function') return `function ${value.name}`
  if (Array.isArray(value)) return `[${value.map(show).join(', ')}]`
  return String(value)
}
