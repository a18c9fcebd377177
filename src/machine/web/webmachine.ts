import type { Arena, Region } from '../../arena/memory/arena.ts'
import { CpuRecord, cpuRecord } from '../core/cpurecord.ts'
import type { TimekeeperBoot } from '../timekeeper/timekeeper.ts'
import { pageMs, webClock } from './web-clock.ts'
import { type HubMessage, joinHub } from './webhub.ts'
import { type RunningCpu, WorkerMachine } from '../core/workermachine.ts'

/**
 * CPUs on Web Workers, of a page that is cross-origin isolated or of one of its workers.
 *
 * A browser does not say when a worker is gone. So each CPU holds a lock of the Web Locks API for as long as
 * it lives, and the undertaker asks for the same lock: it is granted when the worker has ended, in whatever
 * way. The undertaker is a worker that does nothing else and never blocks. It writes what it learns into the
 * CPU's record, and then tells: a page that spins at a lock of the kernel hears nothing, and the lock may be
 * one of the CPU that is gone.
 *
 *   the page                        the undertaker                     the CPU
 *   --------                        --------------                     -------
 *                                                                      has the Web Lock, says so
 *                                   asks for the Web Lock              holds L of the kernel
 *   terminates the CPU                                                 is gone, with L
 *   spins at L, looks at `gone`     has it: gone = this start, tells
 *   breaks L
 *   is told
 *
 * The page does not ask for the Web Lock itself: it would be given it, and not know, while it spins. A start
 * has a number: what is learned of one is not said of the next.
 */
export interface WebMachineOptions {
  readonly arena: Arena
  readonly region: Region
  /** Makes the worker of a CPU. Its module calls `runWebCpu`; the call stands where bundlers see it. */
  readonly worker: (name: string) => Worker
  readonly data?: unknown
}

/** What a CPU's worker is told first of all. */
export interface WebCpuBoot {
  readonly buffer: SharedArrayBuffer
  readonly region: Region
  readonly id: number
  readonly origin: number
  readonly start: number
  readonly lock: string
  /** To the undertaker: the number of its start says that it holds its lock. */
  readonly undertaker: MessagePort
  readonly data: unknown
}

/**
 * What the undertaker is told of a CPU: where to write the number of this start when its lock is free.
 * Through the port the CPU says that it has it, and what it tells all others.
 */
export interface Undertaking {
  readonly buffer: SharedArrayBuffer
  readonly gone: number
  readonly start: number
  readonly lock: string
  readonly cpu: MessagePort
}

/**
 * What the undertaker is told of one that may never have had its lock: the number of its start. It answers
 * with that of each one that is gone.
 */
export type Burial = number

interface RunningWebCpu extends RunningCpu {
  readonly start: number
}

export class WebMachine extends WorkerMachine<RunningWebCpu> {
  readonly now: () => number
  private readonly options: WebMachineOptions
  private readonly origin: number
  private readonly timekeeper: Worker
  private readonly undertaker: Worker
  /** Who is to be told that the CPU of this start is gone. */
  private readonly buried = new Map<Burial, () => void>()
  /** Why no CPU can run here. */
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
    this.undertaker = new Worker(new URL('./web-deathwatch.ts', import.meta.url), {
      type: 'module',
      name: 'heddle undertaker',
    })
    for (const worker of [this.timekeeper, this.undertaker]) {
      worker.addEventListener('error', event => this.breakDown(workerError(event)))
    }
    this.undertaker.addEventListener('message', ({ data }: MessageEvent<Burial | HubMessage>) => {
      if (typeof data === 'number') this.buried.get(data)?.()
    })
    joinHub(this.arena.buffer, this.undertaker)
  }

  /**
   * Whether the CPU's thread runs no more, though its death may not have been told yet. Without a turn of the
   * event loop.
   */
  isGone(cpu: number): boolean {
    const running = this.running[cpu]
    return running === undefined || Atomics.load(this.arena.i32, this.goneWord(cpu)) === running.start
  }

  protected launch(cpu: number, start: number): RunningWebCpu {
    const worker = this.options.worker(`heddle cpu ${cpu}`)
    const lock = `heddle cpu ${cpu} of ${this.origin} start ${start}`
    const { buffer } = this.arena
    const { port1, port2 } = new MessageChannel()
    const undertaking: Undertaking = { buffer, gone: this.goneWord(cpu), start, lock, cpu: port1 }
    this.undertaker.postMessage(undertaking, [port1])
    const boot: WebCpuBoot = {
      buffer,
      region: this.region,
      id: cpu,
      origin: this.origin,
      start,
      lock,
      undertaker: port2,
      data: this.options.data,
    }
    worker.postMessage(boot, [port2])
    return { worker, start, gone: this.watch(cpu, worker, start), terminated: false }
  }

  protected override isEnding({ terminated, start }: RunningWebCpu): void {
    if (terminated) this.bury(start)
  }

  protected async timekeeperEnd(): Promise<void> {
    this.timekeeper.terminate()
    this.undertaker.terminate()
  }

  /**
   * A worker that the machine cannot do without is not there: no CPU can run, and the undertaker may not be
   * there to say so.
   */
  private breakDown(error: unknown): void {
    this.broken ??= { error }
    for (const resolve of this.buried.values()) resolve()
  }

  private goneWord(cpu: number): number {
    return cpuRecord(this.region, cpu) + CpuRecord.gone
  }

  private bury(start: Burial): void {
    this.undertaker.postMessage(start)
  }

  private async watch(cpu: number, worker: Worker, start: number): Promise<void> {
    let thrown: { error: unknown } | undefined
    worker.addEventListener('message', event => this.heard(cpu, event.data))
    worker.addEventListener('error', event => {
      thrown = { error: workerError(event) }
      worker.terminate()
      this.bury(start)
    })
    if (this.broken === undefined) await new Promise<void>(resolve => this.buried.set(start, resolve))
    else await Promise.resolve()
    this.buried.delete(start)
    if (this.broken !== undefined) worker.terminate()
    this.ended(cpu, 1, thrown ?? this.broken)
  }
}

/** A worker whose script cannot be loaded says nothing but that. */
function workerError({ error, message, filename }: ErrorEvent): unknown {
  if (error !== null && error !== undefined) return error
  if (message) return new Error(filename ? `${message} (${filename})` : message)
  return new Error(
    'the script of a worker of heddle could not be loaded; the server must send it with the headers of the page, and a bundler needs the plugin of heddle',
  )
}
