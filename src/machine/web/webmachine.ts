import type { Arena, Region } from '../../arena/memory/arena.ts'
import { CpuRecord, cpuRecord } from '../core/cpurecord.ts'
import type { TimekeeperBoot } from '../timekeeper/timekeeper.ts'
import { pageMs, webClock } from './web-clock.ts'
import { type HubMessage, joinHub } from './webhub.ts'
import { type RunningCpu, WorkerMachine } from '../core/workermachine.ts'

/**
 * CPUs on Web Workers, of a cross-origin isolated page or of one of its workers.
 *
 * A browser does not report that a worker is gone. So each CPU holds a lock of the Web Locks API while it
 * lives, and the death watcher requests the same lock: the browser grants it when the worker has ended in any
 * way. The death watcher is a worker that does nothing else and never blocks. It writes the death into the
 * CPU's record and then posts a message: a page that spins for a kernel lock receives no message, and the
 * lock may belong to the dead CPU.
 *
 *   page                            death watcher                      CPU
 *   ----                            -------------                      ---
 *                                                                      holds the Web Lock, reports that
 *                                   requests the Web Lock              holds kernel lock L
 *   terminates the CPU                                                 is gone, with L
 *   spins for L, reads `gone`       gets it: gone = start, posts
 *   breaks L
 *   receives the message
 *
 * The page does not request the Web Lock itself: the lock could be granted while the page spins, unnoticed.
 * Each start has a number, so that a report about one start is not taken for the next.
 */
export interface WebMachineOptions {
  readonly arena: Arena
  readonly region: Region
  /**
   * Creates the worker of a CPU. Its module calls `runWebCpu`. The caller writes `new Worker(…)`, where
   * bundlers see it.
   */
  readonly worker: (name: string) => Worker
  readonly data?: unknown
}

/** The first message to a CPU's worker. */
export interface WebCpuBoot {
  readonly buffer: SharedArrayBuffer
  readonly region: Region
  readonly id: number
  readonly origin: number
  readonly start: number
  readonly lock: string
  /** To the death watcher: the number of the start says that the CPU holds its lock. */
  readonly deathWatcher: MessagePort
  readonly data: unknown
}

/**
 * A request to the death watcher: write the number of this start to `gone` when the lock is free. Through the
 * port the CPU reports that it has the lock, and sends its broadcasts.
 */
export interface DeathWatch {
  readonly buffer: SharedArrayBuffer
  readonly gone: number
  readonly start: number
  readonly lock: string
  readonly cpu: MessagePort
}

/**
 * The number of a start. To the death watcher: the CPU may never have had its lock. From it: the CPU is gone.
 */
export type StartNumber = number

interface RunningWebCpu extends RunningCpu {
  readonly start: number
}

export class WebMachine extends WorkerMachine<RunningWebCpu> {
  readonly now: () => number
  private readonly options: WebMachineOptions
  private readonly origin: number
  private readonly timekeeper: Worker
  private readonly deathWatcher: Worker
  /** Resolvers of CPUs whose end is awaited, by start. */
  private readonly onGone = new Map<StartNumber, () => void>()
  /** The error because of which no CPU can run. */
  private broken: { readonly error: unknown } | undefined

  constructor(options: WebMachineOptions) {
    super(options.arena, options.region)
    this.options = options
    this.origin = pageMs()
    this.now = webClock(this.origin)
    const boot: TimekeeperBoot = { buffer: this.arena.buffer, region: this.region, origin: this.origin }
    this.timekeeper = new Worker(new URL('./web-timekeeper.ts', import.meta.url), {
      type: 'module',
      name: 'heddle timekeeper',
    })
    this.timekeeper.postMessage(boot)
    this.deathWatcher = new Worker(new URL('./web-deathwatch.ts', import.meta.url), {
      type: 'module',
      name: 'heddle death watcher',
    })
    for (const worker of [this.timekeeper, this.deathWatcher]) {
      worker.addEventListener('error', event => this.breakDown(workerError(event)))
    }
    this.deathWatcher.addEventListener('message', ({ data }: MessageEvent<StartNumber | HubMessage>) => {
      if (typeof data === 'number') this.onGone.get(data)?.()
    })
    joinHub(this.arena.buffer, this.deathWatcher)
  }

  /**
   * Whether the CPU's thread is gone, even if its death was not reported yet. Needs no turn of the event
   * loop.
   */
  isGone(cpu: number): boolean {
    const running = this.running[cpu]
    return running === undefined || Atomics.load(this.arena.i32, this.goneWord(cpu)) === running.start
  }

  protected createWorker(cpu: number, start: number): RunningWebCpu {
    const worker = this.options.worker(`heddle cpu ${cpu}`)
    const lock = `heddle cpu ${cpu} of ${this.origin} start ${start}`
    const { buffer } = this.arena
    const { port1, port2 } = new MessageChannel()
    const watch: DeathWatch = { buffer, gone: this.goneWord(cpu), start, lock, cpu: port1 }
    this.deathWatcher.postMessage(watch, [port1])
    const boot: WebCpuBoot = {
      buffer,
      region: this.region,
      id: cpu,
      origin: this.origin,
      start,
      lock,
      deathWatcher: port2,
      data: this.options.data,
    }
    worker.postMessage(boot, [port2])
    return { worker, start, gone: this.watch(cpu, worker, start), terminated: false }
  }

  protected override isEnding({ terminated, start }: RunningWebCpu): void {
    if (terminated) this.watchForEnd(start)
  }

  protected async timekeeperEnd(): Promise<void> {
    this.timekeeper.terminate()
    this.deathWatcher.terminate()
  }

  /** The timekeeper or the death watcher failed to load: no CPU can run, and perhaps no death is reported. */
  private breakDown(error: unknown): void {
    this.broken ??= { error }
    for (const resolve of this.onGone.values()) resolve()
  }

  private goneWord(cpu: number): number {
    return cpuRecord(this.region, cpu) + CpuRecord.gone
  }

  private watchForEnd(start: StartNumber): void {
    this.deathWatcher.postMessage(start)
  }

  private async watch(cpu: number, worker: Worker, start: number): Promise<void> {
    let thrown: { error: unknown } | undefined
    worker.addEventListener('message', event => this.heard(cpu, event.data))
    worker.addEventListener('error', event => {
      thrown = { error: workerError(event) }
      worker.terminate()
      this.watchForEnd(start)
    })
    if (this.broken === undefined) await new Promise<void>(resolve => this.onGone.set(start, resolve))
    else await Promise.resolve()
    this.onGone.delete(start)
    if (this.broken !== undefined) worker.terminate()
    this.ended(cpu, 1, thrown ?? this.broken)
  }
}

/** If the script of a worker cannot be loaded, the event has no further details. */
function workerError({ error, message, filename }: ErrorEvent): unknown {
  if (error !== null && error !== undefined) return error
  if (message) return new Error(filename ? `${message} (${filename})` : message)
  return new Error(
    'the script of a worker of heddle could not be loaded; serve it with the headers of the page, and build with the plugin of heddle',
  )
}
