import type { Arena, Region } from '../arena/arena.ts'
import type { TimekeeperBoot } from './timekeeper.ts'
import { pageMs, webClock } from './web-clock.ts'
import { type RunningCpu, WorkerMachine } from './workermachine.ts'

/**
 * CPUs on Web Workers, of a page that is cross-origin isolated or of one of its workers.
 *
 * A browser does not say when a worker is gone. So each CPU holds a lock of the Web Locks API for as long as it lives, and
 * this side asks for the same lock: it is granted when the worker has ended, in whatever way.
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
  readonly lock: string
  readonly data: unknown
}

/** What it answers when it holds its lock. */
export const WEB_CPU_ALIVE = 'heddle cpu alive'

interface RunningWebCpu extends RunningCpu {
  /** It is being terminated, and may never say that it is alive. */
  readonly giveUp: () => void
}

export class WebMachine extends WorkerMachine<RunningWebCpu> {
  readonly now: () => number
  private readonly options: WebMachineOptions
  private readonly origin: number
  private readonly timekeeper: Worker
  private starts = 0

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
  }

  protected launch(cpu: number): RunningWebCpu {
    const worker = this.options.worker(`heddle cpu ${cpu}`)
    const lock = `heddle cpu ${cpu} of ${this.origin} start ${++this.starts}`
    let giveUp!: () => void
    const givenUp = new Promise<void>(resolve => (giveUp = resolve))
    const gone = this.watch(cpu, worker, lock, givenUp)
    const boot: WebCpuBoot = {
      buffer: this.arena.buffer,
      region: this.region,
      id: cpu,
      origin: this.origin,
      lock,
      data: this.options.data,
    }
    worker.postMessage(boot)
    return { worker, gone, giveUp, terminated: false }
  }

  protected override isEnding({ terminated, giveUp }: RunningWebCpu): void {
    if (terminated) giveUp()
  }

  protected async timekeeperEnd(): Promise<void> {
    this.timekeeper.terminate()
  }

  private async watch(cpu: number, worker: Worker, lock: string, givenUp: Promise<void>): Promise<void> {
    let thrown: { error: unknown } | undefined
    const told = new Promise<void>(resolve => {
      worker.addEventListener('message', ({ data }) => {
        if (data === WEB_CPU_ALIVE) resolve()
      })
      worker.addEventListener('error', event => {
        thrown = { error: event.error ?? new Error(event.message || 'its module could not be loaded') }
        worker.terminate()
        resolve()
      })
    })
    await Promise.race([told, givenUp])
    // Also where it was not yet alive: it may have the lock, and have died before it could say so.
    await navigator.locks.request(lock, () => undefined)
    this.ended(cpu, 1, thrown)
  }
}
