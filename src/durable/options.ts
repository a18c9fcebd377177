import { checkTime } from '../coroutine/core/blocking.ts'
import { type Known, refuseUnknown, show } from '../coroutine/core/knownoptions.ts'
import type { Kernel } from '../kernel/boot/kernel.ts'
import { priorityOf, type TaskPriority } from '../kernel/boot/options.ts'
import type { Spawnable } from '../kernel/spawn/modules.ts'
import { checkName } from './names.ts'
import { type RunState, runStates } from './states.ts'
import { isPostgresUrl } from './database/refusals.ts'
import type { StoredOptions } from './store/rows.ts'
import { checkSpan, SPAN_MAX } from './task/times.ts'
import { runModuleKey } from './worker/modules.ts'

/** The options of `Durable.open`. */
export interface DurableOptions {
  /** The kernel that runs the runs. Without one this process starts, awaits and lists runs, and runs none. */
  readonly kernel?: Kernel
  /** The URL of a PostgreSQL server, 14 or later. Default: an embedded database in `folder`. */
  readonly database?: string | undefined
  /** The folder of the embedded database; 'memory://': it ends with the process. Default: .heddle/runs */
  readonly folder?: string
  /** The queues that this process takes runs from. Default: ['default']. */
  readonly queues?: readonly string[]
  /** Runs that it has at the same time. Default: the CPUs of the kernel. 0: it takes none. */
  readonly concurrency?: number
  /** Its name in rows and reports. Default: host name, process number and a random part. */
  readonly name?: string
  /** Seconds without a heartbeat after which a run goes on elsewhere: 10 or more. Default: 10. */
  readonly lease?: number
  /** Milliseconds between two looks for runs when no notification arrives. Default: 1000. */
  readonly poll?: number
  /** The most bytes of the stored state of a run, compressed. Default: 64 MiB. */
  readonly imageLimit?: number
  /** Milliseconds: a run that sleeps or waits no longer than this stays in memory. Default: 1000. */
  readonly patience?: number
  /** Milliseconds after which ended runs are forgotten. Default: 30 days; Infinity: never. */
  readonly retention?: number
  /** Milliseconds that `close` waits for the states of running runs. Default: 10000. */
  readonly grace?: number
}

/** The options of `durable.start`. */
export interface StartOptions {
  /** The same id again is the same run. Default: a random one. */
  readonly id?: string
  /** Default: the name of the function. */
  readonly name?: string
  readonly queue?: string
  /** Among all runs of the queue, on all machines. Default: 'normal'. */
  readonly priority?: TaskPriority
  /**
   * Milliseconds between two checkpoints of a running run. Default: 5000. False: none; the run begins again
   * when its worker dies. A function that cannot move needs that.
   */
  readonly checkpoint?: number | false
  /** How often it begins again after an error. Default: 0. */
  readonly retries?: number
  /**
   * Milliseconds before the first retry, the factor of each later one, and the most. Default: 1000, 2, 60000.
   */
  readonly backoff?: { readonly initial?: number; readonly factor?: number; readonly max?: number }
  /** Where a retry begins. Default: 'checkpoint', the last one if there is one. */
  readonly retryFrom?: 'checkpoint' | 'start'
  /** At most `limit` runs of a `key` run at the same time, on all machines. */
  readonly concurrency?: { readonly key: string; readonly limit?: number }
  /** Milliseconds before it may start. */
  readonly delay?: number
  /**
   * When a function of its state has another body now: 'wait' (the default) leaves it for workers with the
   * old code; 'restart' begins again with the first arguments; a function of a module gets
   * `{ run, args, image, error }`, and its result is that of the run.
   */
  readonly onCodeChanged?: 'wait' | 'restart' | Spawnable
}

/** What `durable.schedule` needs besides the function. */
export interface ScheduleOptions extends Omit<StartOptions, 'id' | 'delay'> {
  /** The name of a time zone. Default: UTC. */
  readonly timeZone?: string
}

export const durableOptions: Known<DurableOptions> = {
  kernel: true,
  database: true,
  folder: true,
  queues: true,
  concurrency: true,
  name: true,
  lease: true,
  poll: true,
  imageLimit: true,
  patience: true,
  retention: true,
  grace: true,
}

const startOptions: Known<StartOptions> = {
  id: true,
  name: true,
  queue: true,
  priority: true,
  checkpoint: true,
  retries: true,
  backoff: true,
  retryFrom: true,
  concurrency: true,
  delay: true,
  onCodeChanged: true,
}

const { id: _id, delay: _delay, ...ofEachRun } = startOptions
/** The runs of a schedule have ids and times of their own. */
export const scheduleOptions: Known<ScheduleOptions> = { ...ofEachRun, timeZone: true }

const backoffOptions: Known<NonNullable<StartOptions['backoff']>> = { initial: true, factor: true, max: true }
const concurrencyOptions: Known<NonNullable<StartOptions['concurrency']>> = { key: true, limit: true }

/** Which runs `durable.list` gives. */
export interface RunFilter {
  readonly state?: RunState | readonly RunState[]
  readonly queue?: string
  /** The most runs. Default: 100. */
  readonly limit?: number
}

const filterOptions: Known<RunFilter> = { state: true, queue: true, limit: true }

export const DEFAULT_QUEUE = 'default'
const CHECKPOINT_MS = 5000
/** pg-boss's rule for names of queues, with room for `.dead`. */
const queueName = /^[\w.-]{1,100}$/
const GROUP_LIMIT_MAX = 1000
const LEASE_MIN = 10
const LIST_MAX = 100_000
const PATH_MAX = 4000

export function checkQueue(name: string, queue: unknown): asserts queue is string {
  if (typeof queue !== 'string' || !queueName.test(queue) || queue.endsWith('.dead')) {
    throw new TypeError(
      `${name}: ${show(queue)} is not a name of a queue; give up to 100 letters, digits, dots, dashes and underscores, without .dead at the end`,
    )
  }
}

function checkKernel(kernel: unknown): void {
  const { internals } = (kernel ?? {}) as Partial<Kernel>
  if (typeof internals?.endedBy !== 'function')
    throw new TypeError(
      `kernel: ${show(kernel)} is not a kernel; give the result of await Kernel.boot(), or leave it out`,
    )
  if (internals.isSimulated)
    throw new TypeError(
      "kernel: it has simulated CPUs, which cannot run durable runs; boot one with machine: 'threads'",
    )
  const ended = internals.endedBy()
  if (ended !== null)
    throw new TypeError(`kernel: it runs nothing any more (${ended.message}); give one that is open`, {
      cause: ended,
    })
}

/** The text may have a password that somebody sees in a log. */
function withoutPassword(text: string): string {
  return text.replace(/(:\/\/[^:]*):.*@/, '$1:…@')
}

export function checkDurableOptions(options: DurableOptions): void {
  refuseUnknown('Durable.open(options)', options, durableOptions)
  const { kernel, database, folder, queues, concurrency, name, lease, imageLimit } = options
  if (kernel !== undefined) checkKernel(kernel)
  if (database !== undefined && !isPostgresUrl(database)) {
    throw new TypeError(
      `database: ${typeof database === 'string' ? withoutPassword(show(database)) : show(database)} is not the URL of a PostgreSQL server; give one as in postgres://user:password@host/name (a character as # in a password is written as %23), or leave it out for an embedded database`,
    )
  }
  if (folder !== undefined) checkName('folder', folder, PATH_MAX, Infinity)
  if (name !== undefined) checkName('name', name)
  if (queues !== undefined) {
    if (!Array.isArray(queues) || queues.length === 0)
      throw new TypeError(`queues: ${show(queues)} is not a list of queues; give names, as in ['default']`)
    queues.forEach((queue, index) => checkQueue(`queues[${index}]`, queue))
  }
  if (concurrency !== undefined) checkCount('concurrency', concurrency, 0, 10_000)
  if (lease !== undefined) checkCount('lease', lease, LEASE_MIN, 3600)
  if (imageLimit !== undefined) checkCount('imageLimit', imageLimit, 1, 1024 ** 3)
  for (const key of ['poll', 'patience', 'retention', 'grace'] as const)
    if (options[key] !== undefined) checkTime(key, options[key])
}

/** The filter as the statement takes it, with its default. */
export function checkFilter(filter: RunFilter): {
  readonly states: readonly RunState[] | null
  readonly queue: string | null
  readonly limit: number
} {
  refuseUnknown('list(filter)', filter, filterOptions)
  const { state, queue, limit = 100 } = filter
  const states = state === undefined ? null : [state].flat()
  for (const one of states ?? []) {
    if (!runStates.includes(one))
      throw new TypeError(`list: ${show(one)} is not a state; give ${runStates.join(', ')}`)
  }
  if (queue !== undefined) checkQueue('list: queue', queue)
  checkCount('list: limit', limit, 0, LIST_MAX)
  return { states, queue: queue ?? null, limit }
}

/** The options as a row keeps them, with all defaults. */
export function storedOptions(call: string, options: StartOptions): StoredOptions {
  refuseUnknown(`${call}(fn, args, options)`, options, startOptions)
  const { id, name, queue, checkpoint = CHECKPOINT_MS, retries = 0, backoff = {}, concurrency } = options
  const { retryFrom = 'checkpoint', onCodeChanged = 'wait', delay, priority } = options
  for (const [key, text] of Object.entries({ id, name })) if (text !== undefined) checkName(key, text)
  if (queue !== undefined) checkQueue('queue', queue)
  if (priority !== undefined) priorityOf(priority)
  if (
    checkpoint !== false &&
    (typeof checkpoint !== 'number' || !(checkpoint >= 1) || checkpoint > 0x7fff_ffff)
  )
    throw new RangeError(
      `checkpoint: ${show(checkpoint)} is not an interval; give milliseconds from 1 on, or false`,
    )
  checkCount('retries', retries, 0, 1_000_000)
  refuseUnknown('backoff', backoff, backoffOptions)
  const { initial = 1000, factor = 2, max = 60_000 } = backoff
  checkSpan('backoff.initial', initial)
  checkTime('backoff.max', max)
  if (typeof factor !== 'number' || !(factor >= 1 && factor < Infinity))
    throw new RangeError(`backoff.factor: ${show(factor)} is not a factor; give a number from 1 on`)
  checkRetryFrom('retryFrom', retryFrom)
  if (delay !== undefined) checkSpan('delay', delay)
  if (concurrency !== undefined) refuseUnknown('concurrency', concurrency, concurrencyOptions)
  const limit = concurrency?.limit ?? 1
  if (concurrency !== undefined) {
    checkName('concurrency.key', concurrency.key)
    checkCount('concurrency.limit', limit, 1, GROUP_LIMIT_MAX)
  }
  return {
    checkpoint: checkpoint === false ? null : checkpoint,
    retries,
    backoff: { initial, factor, max: Math.min(max, SPAN_MAX) },
    retryFrom,
    onCodeChanged: storedChoice(onCodeChanged),
    groupLimit: limit,
  }
}

export function checkRetryFrom(option: string, place: unknown): void {
  if (place !== 'checkpoint' && place !== 'start')
    throw new TypeError(`${option}: ${show(place)} is not a place; give 'checkpoint' or 'start'`)
}

function storedChoice(choice: NonNullable<StartOptions['onCodeChanged']>): StoredOptions['onCodeChanged'] {
  if (choice === 'wait' || choice === 'restart') return choice
  const { module, name } = (choice ?? {}) as Partial<Spawnable>
  if (typeof module !== 'string' || typeof name !== 'string')
    throw new TypeError(
      `onCodeChanged: ${show(choice)} is not a way to go on; give 'wait', 'restart', or a function of kernel.import(url)`,
    )
  return { module: runModuleKey(module), name }
}

function checkCount(option: string, value: unknown, least: number, most: number): void {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most)
    throw new RangeError(
      `${option}: ${show(value)} is not a number in range; give an integer from ${least} to ${most}`,
    )
}
