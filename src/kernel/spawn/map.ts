import { checkSignal } from '../../coroutine/core/blocking.ts'
import { type Known, refuseUnknown, show } from '../../coroutine/core/knownoptions.ts'
import { SpawnQueueFullError } from '../join/errors.ts'
import type { Spawnable } from './modules.ts'
import {
  checkSpawnOptions,
  priorityOf,
  type SpawnOptions,
  spawnOptions as spawnKeys,
} from '../boot/options.ts'

export interface MapOptions extends Omit<SpawnOptions, 'signal' | 'detached' | 'transfer'> {
  /** How many tasks may run or have untaken results at the same time. Default: twice the number of CPUs. */
  readonly concurrency?: number
  /** Results in the order of the items; false: in the order of completion. Default: true. */
  readonly ordered?: boolean
  /** Ends the map: its tasks are killed, and the iterator throws the signal's reason. */
  readonly signal?: AbortSignal
  /** Called after each item, when its task has ended. */
  readonly onProgress?: (progress: MapProgress) => void
}

const { detached: _detached, transfer: _transfer, ...eachOptions } = spawnKeys
const mapOptions: Known<MapOptions> = { ...eachOptions, concurrency: true, ordered: true, onProgress: true }

export interface MapProgress {
  /** Items whose tasks have been spawned. */
  readonly started: number
  /** Of those, how many have ended. */
  readonly finished: number
  /** Results that have been taken. */
  readonly taken: number
  /** The number of items; undefined while it is unknown. */
  readonly total: number | undefined
}

/** The kernel's functions that a map needs. */
interface MapKernel {
  readonly cpus: number
  readonly ready: Promise<void>
  spawn(fn: Spawnable, args: readonly unknown[], options: SpawnOptions): MapTask
}

interface MapTask {
  join(): Promise<unknown>
  kill(reason?: unknown): boolean
}

/**
 * Runs a function over many items, as tasks: an async iterator of the results. It takes items only as fast as
 * results are taken: at most `concurrency` tasks run or have untaken results. A failure ends it: later items
 * are killed, and after the results of earlier items the iterator throws the error. Leaving the loop early
 * (`break`) kills the other tasks.
 */
export class TaskMap<T> implements AsyncIterableIterator<T, undefined, undefined> {
  private readonly kernel: MapKernel
  private readonly fn: Spawnable
  private readonly items: Iterable<unknown> | AsyncIterable<unknown>
  private readonly options: MapOptions
  private readonly spawnOptions: SpawnOptions
  private readonly concurrency: number
  private readonly ordered: boolean
  private readonly running = new Map<number, MapTask>()
  /** Untaken results by item number, in order of completion. */
  private readonly results = new Map<number, T>()
  private readonly total: number | undefined
  private started = 0
  private finished = 0
  private taken = 0
  private isExhausted = false
  /** The error that ended it; in an ordered map, results of items before `at` are still yielded. */
  private failure: { readonly error: unknown; readonly at: number } | null = null
  private isStopped = false
  private feeding: Promise<void> | null = null
  private changed: (() => void)[] = []
  /** Calls of `next` are served one after the other. */
  private turn: Promise<unknown> = Promise.resolve()
  private readonly onAbort = (): void => this.abort(this.options.signal?.reason)

  constructor(
    kernel: object,
    fn: Spawnable,
    items: Iterable<unknown> | AsyncIterable<unknown>,
    options: MapOptions = {},
  ) {
    refuseUnknown('map(fn, items, options)', options, mapOptions)
    this.kernel = kernel as MapKernel
    this.fn = fn
    this.items = items
    this.options = options
    const {
      concurrency = this.kernel.cpus * 2,
      ordered = true,
      signal: _,
      onProgress,
      ...spawnOptions
    } = options
    if (concurrency !== Infinity && !(Number.isInteger(concurrency) && concurrency >= 1)) {
      throw new RangeError(
        `concurrency: ${show(concurrency)} is not a positive integer; give the number of tasks, at least 1`,
      )
    }
    if (
      items === null ||
      items === undefined ||
      !(Symbol.iterator in Object(items) || Symbol.asyncIterator in Object(items))
    ) {
      throw new TypeError(
        `map(${fn.name}, items): ${show(items)} cannot be iterated; give an array, an iterable or an async iterable`,
      )
    }
    if (typeof ordered !== 'boolean')
      throw new TypeError(`ordered: ${show(ordered)} is not a boolean; give true or false`)
    if (onProgress !== undefined && typeof onProgress !== 'function')
      throw new TypeError(`onProgress: ${show(onProgress)} is not a function; give a function`)
    checkSignal(options.signal)
    checkSpawnOptions(spawnOptions, this.kernel.cpus)
    if (spawnOptions.priority !== undefined) priorityOf(spawnOptions.priority)
    this.concurrency = concurrency
    this.ordered = ordered
    this.spawnOptions = spawnOptions
    this.total = sizeOf(items)
  }

  get progress(): MapProgress {
    const { started, finished, taken } = this
    return { started, finished, taken, total: this.total ?? (this.isExhausted ? started : undefined) }
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<T, undefined>> {
    const next = this.turn.then(() => this.takeNext())
    this.turn = next.catch(() => undefined)
    return next
  }

  /** Leaves the loop: kills the running tasks, and resolves when they have ended. */
  async return(): Promise<IteratorResult<T, undefined>> {
    this.failure = null
    this.stop()
    await this.ended()
    return { done: true, value: undefined }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return()
  }

  private async takeNext(): Promise<IteratorResult<T, undefined>> {
    if (this.feeding === null && !this.isStopped) this.begin()
    for (;;) {
      const number = this.ordered ? this.taken : this.firstCome()
      if (number !== undefined && this.results.has(number)) {
        const value = this.results.get(number) as T
        this.results.delete(number)
        this.taken++
        this.change()
        return { done: false, value }
      }
      if (this.failure !== null && this.isDue(this.failure.at)) {
        await this.ended()
        const { error } = this.failure
        this.failure = null
        throw error
      }
      if (this.isStopped && this.failure === null) return { done: true, value: undefined }
      if (this.isExhausted && this.taken === this.started) {
        this.stop()
        return { done: true, value: undefined }
      }
      await this.nextChange()
    }
  }

  /** Whether all results before the failure of item `at` have been yielded. */
  private isDue(at: number): boolean {
    return this.ordered ? this.taken >= at : true
  }

  private firstCome(): number | undefined {
    for (const number of this.results.keys()) return number
    return undefined
  }

  private begin(): void {
    const { signal } = this.options
    if (signal?.aborted) this.onAbort()
    else signal?.addEventListener('abort', this.onAbort, { once: true })
    this.feeding = this.feed().catch(error => this.fail(error, this.started))
  }

  /** Takes items and spawns their tasks, while there is room. */
  private async feed(): Promise<void> {
    const source =
      Symbol.asyncIterator in this.items ? this.items[Symbol.asyncIterator]() : this.items[Symbol.iterator]()
    try {
      for (;;) {
        while (!this.isStopped && this.started - this.taken >= this.concurrency) await this.nextChange()
        if (this.isStopped) return
        const pulled = source.next()
        const { done, value } = 'then' in pulled ? await pulled : pulled
        if (done === true) {
          this.isExhausted = true
          this.change()
          return
        }
        if (this.isStopped) return
        await this.start(value)
      }
    } finally {
      if (!this.isExhausted) await source.return?.()
    }
  }

  private async start(item: unknown): Promise<void> {
    for (;;) {
      try {
        const task = this.kernel.spawn(this.fn, [item], this.spawnOptions)
        const number = this.started++
        this.running.set(number, task)
        void task.join().then(
          value => this.finish(number, value as T),
          error => this.finishFailed(number, error),
        )
        return
      } catch (error) {
        if (!(error instanceof SpawnQueueFullError)) throw error
        await this.kernel.ready
        if (this.isStopped) return
      }
    }
  }

  private finish(number: number, value: T): void {
    this.running.delete(number)
    this.finished++
    if (!this.isStopped || (this.ordered && this.failure !== null && number < this.failure.at))
      this.results.set(number, value)
    this.change()
    this.options.onProgress?.(this.progress)
  }

  private finishFailed(number: number, error: unknown): void {
    this.running.delete(number)
    this.finished++
    // In an ordered map the failure of the earliest item counts, as if they had run one after the other.
    if (!this.isStopped || (this.failure !== null && number < this.failure.at)) this.fail(error, number)
    this.change()
  }

  /** Ends the map. In an ordered one, the items before `at` still run to their end. */
  private fail(error: unknown, at: number): void {
    if (this.isStopped && this.failure === null) return
    this.failure = { error, at }
    this.stop(error, this.ordered ? at : 0)
  }

  /** Ends it immediately: no more results are yielded. */
  private abort(reason: unknown): void {
    if (this.isStopped && this.failure === null) return
    this.failure = { error: reason, at: 0 }
    this.results.clear()
    this.stop(reason)
  }

  private stop(reason?: unknown, from = 0): void {
    if (!this.isStopped) this.options.signal?.removeEventListener('abort', this.onAbort)
    this.isStopped = true
    for (const [number, task] of this.running) if (number >= from) task.kill(reason)
    if (this.ordered || this.failure === null) {
      for (const number of this.results.keys()) if (number >= from) this.results.delete(number)
    }
    this.change()
  }

  private change(): void {
    if (this.changed.length > 0) for (const resolve of this.changed.splice(0)) resolve()
  }

  private nextChange(): Promise<void> {
    return new Promise(resolve => this.changed.push(resolve))
  }

  /** Resolves when no task is left and no item is being taken. */
  private async ended(): Promise<void> {
    await this.feeding
    while (this.running.size > 0) await this.nextChange()
  }
}

function sizeOf(items: unknown): number | undefined {
  const { length, size } = items as { length?: unknown; size?: unknown }
  if (typeof length === 'number') return length
  return typeof size === 'number' ? size : undefined
}
