import { checkCpus } from '../machine/cpurecord.ts'
import { checkTime } from '../coroutine/blocking.ts'
import { FAIR_PRIORITY, makePriority, NICE_MAX, NICE_MIN } from '../sched/priority.ts'
import type { FutexSizes } from '../futex/layout.ts'

/** How a kernel is booted. Everything has a default. */
export interface KernelOptions {
  /** Worker threads that run tasks: 1 to 64. As many as the machine has cores. */
  readonly cpus?: number
  /** Milliseconds that a task runs before an equal gets its turn. 10. */
  readonly slice?: number
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
  /** 'threads': CPUs are worker threads. 'simulated': virtual CPUs in this thread, in virtual time, by `seed`. */
  readonly machine?: 'threads' | 'simulated'
  /** Of a simulated machine: the same seed gives the same run. */
  readonly seed?: number
  /** Of a simulated machine: how far its CPUs may run apart, in virtual milliseconds. */
  readonly skew?: number
  /** Events that each thread's ring remembers, for traces: a power of two, 16 or more; 0: it has none. 4096. */
  readonly events?: number
  /** Let `heddle top` of the same user look at this kernel and steer its tasks. On by default. */
  readonly control?: boolean
  /** Check the kernel's lock order. */
  readonly debug?: boolean
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
  /** ArrayBuffers among the arguments that are moved instead of copied. */
  readonly transfer?: readonly ArrayBuffer[]
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

export function checkSpawnOptions(options: SpawnOptions, cpus: number): void {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`options: ${show(options)} is not an object of spawn options`)
  }
  const { name, nice, affinity, signal, timeout } = options
  if (name !== undefined && typeof name !== 'string')
    throw new TypeError(`name: ${show(name)} is not a string`)
  if (nice !== undefined) checkNice(nice)
  if (affinity !== undefined) checkAffinity(affinity, cpus)
  if (timeout !== undefined) checkTime('timeout', timeout)
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') {
    throw new TypeError(`signal: ${show(signal)} is not an AbortSignal`)
  }
}

/** The options of a boot, checked, with every default in place. */
export interface BootSettings {
  readonly cpus: number
  readonly slice: number
  readonly tasks: number
  readonly queue: number
  readonly heap: number
  readonly grace: number
  readonly watchdog: { readonly limit: number; readonly evict: boolean } | null
}

const TASKS_MAX = 1_000_000

export function bootSettings(options: KernelOptions, cores: () => number): BootSettings {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`Kernel.boot(options): ${show(options)} is not an object of boot options`)
  }
  const cpus = options.cpus ?? Math.min(64, Math.max(1, cores()))
  checkCpus(cpus)
  const { slice = 10, tasks = 65_536, heap = 256 * 1024 * 1024, grace = 1000 } = options
  if (typeof slice !== 'number' || !(slice > 0) || slice > 10_000) {
    throw new RangeError(`slice: ${show(slice)} is not a slice; give milliseconds above 0, as in 10`)
  }
  checkCount('tasks', tasks, TASKS_MAX)
  const queue = options.queue ?? tasks
  checkCount('queue', queue, tasks)
  checkTime('grace', grace)
  const { machine = 'threads' } = options
  if (machine !== 'threads' && machine !== 'simulated') {
    throw new TypeError(`machine: ${show(machine)} is no machine; give 'threads' or 'simulated'`)
  }
  const asked = options.watchdog ?? {}
  const limit = asked === false ? 0 : (asked.limit ?? 1000)
  checkTime('watchdog.limit', limit)
  return {
    cpus,
    slice,
    tasks,
    queue,
    heap,
    grace,
    watchdog: asked === false ? null : { limit, evict: asked.evict ?? false },
  }
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
