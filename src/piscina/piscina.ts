import { EventEmitterAsyncResource } from 'node:events'
import { performance } from 'node:perf_hooks'
import type { Worker } from 'node:worker_threads'
import { checkObject, refuseUnknown } from '../coroutine/core/knownoptions.ts'
import type { PiscinaHistogram, PiscinaHistogramSummary } from './histogram.ts'
import { move } from './transferable.ts'
import {
  checkOptions,
  type CloseOptions,
  type FilledOptions,
  type PoolOptions,
  poolOptions,
  ownOptions,
  type RunOptions,
  runOptions,
} from './options.ts'
import { ThreadPool } from './pool.ts'
import { ArrayTaskQueue, FixedQueue } from './queues.ts'
import { state } from './workerstate.ts'
import { queueOptionsSymbol, transferableSymbol, valueSymbol } from './symbols.ts'
import { version } from './version.ts'

/** A pool of workers with piscina's interface, whose workers are CPUs of a kernel. */
export class Piscina<T = any, R = any> extends EventEmitterAsyncResource {
  readonly #pool: ThreadPool
  readonly #histogram: PiscinaHistogram

  constructor(options: PoolOptions = {}) {
    checkObject('new Piscina(options)', options, poolOptions)
    const own = ownOptions(options)
    super(ownOptions({ ...own, name: 'Piscina' }) as never)
    refuseUnknown('new Piscina(options)', own, poolOptions)
    checkOptions(own)
    const pool = new ThreadPool(
      { emit: (event, ...args) => this.emit(event, ...args), asyncId: this.asyncId },
      own,
    )
    this.#pool = pool
    this.#histogram = {
      get runTime() {
        return pool.runTimes?.summary as PiscinaHistogramSummary
      },
      get waitTime() {
        return pool.waitTimes?.summary as PiscinaHistogramSummary
      },
      resetRunTime: () => pool.runTimes?.reset(),
      resetWaitTime: () => pool.waitTimes?.reset(),
    }
  }

  /** Runs a task: calls the handler of `filename`, or of the pool's file, with this argument. */
  run(task: T, options: RunOptions = {}): Promise<R> {
    const refusal = runRefusal(options)
    if (refusal !== null) return Promise.reject(new TypeError(refusal))
    try {
      refuseUnknown('run(task, options)', options, runOptions)
    } catch (error) {
      return Promise.reject(error as TypeError)
    }
    return this.#pool.run(task, ownOptions(options))
  }

  /** Ends the pool after its tasks. With `force`, tasks that have not started are aborted. */
  async close(options: CloseOptions = {}): Promise<void> {
    if (options === null || typeof options !== 'object') throw new TypeError('options must be an object')
    const { force } = ownOptions(options)
    if (force !== undefined && typeof force !== 'boolean')
      throw new TypeError('force argument must be a boolean')
    await this.#pool.close(force ?? false)
  }

  /** Ends the pool's workers immediately. Its tasks are rejected. */
  destroy(): Promise<void> {
    return this.#pool.destroy()
  }

  [Symbol.dispose](): void {
    void this.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  get maxThreads(): number {
    return this.#pool.options.maxThreads
  }

  get minThreads(): number {
    return this.#pool.options.minThreads
  }

  get options(): FilledOptions {
    return this.#pool.options
  }

  get threads(): Worker[] {
    return [...this.#pool.workers].map(({ thread }) => thread)
  }

  get idleThreads(): number {
    return [...this.#pool.workers].filter(({ isReady, usage }) => isReady && usage === 0).length
  }

  get queueSize(): number {
    return this.#pool.queueSize
  }

  get completed(): number {
    return this.#pool.completed
  }

  get histogram(): PiscinaHistogram {
    return this.#histogram
  }

  /** The fraction of the time of `maxThreads` workers, since the pool was made, in which tasks ran. */
  get utilization(): number {
    return (this.#pool.runTimes?.total ?? 0) / (this.duration * this.#pool.options.maxThreads)
  }

  get duration(): number {
    return performance.now() - this.#pool.start
  }

  get needsDrain(): boolean {
    return this.#pool.needsDrain
  }

  static get isWorkerThread(): boolean {
    return state.isWorkerThread
  }

  static get workerData(): any {
    return state.workerData
  }

  static get version(): string {
    return version
  }

  static get Piscina(): typeof Piscina {
    return Piscina
  }

  static get FixedQueue(): typeof FixedQueue {
    return FixedQueue
  }

  static get ArrayTaskQueue(): typeof ArrayTaskQueue {
    return ArrayTaskQueue
  }

  static move(value: any): any {
    return move(value)
  }

  static get transferableSymbol(): typeof transferableSymbol {
    return transferableSymbol
  }

  static get valueSymbol(): typeof valueSymbol {
    return valueSymbol
  }

  static get queueOptionsSymbol(): typeof queueOptionsSymbol {
    return queueOptionsSymbol
  }
}

function runRefusal(options: RunOptions): string | null {
  if (options === null || typeof options !== 'object') return 'options must be an object'
  const { transferList, filename, name, signal } = ownOptions(options)
  if (transferList !== undefined && !Array.isArray(transferList))
    return 'transferList argument must be an Array'
  if (filename != null && typeof filename !== 'string') return 'filename argument must be a string'
  if (name != null && typeof name !== 'string') return 'name argument must be a string'
  if (signal != null && typeof signal !== 'object') return 'signal argument must be an object'
  return null
}
