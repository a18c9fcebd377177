import { Worker, type WorkerOptions } from 'node:worker_threads'
import type { Arena, Region } from '../../arena/memory/arena.ts'
import { cacheFolder } from './node-cachefolder.ts'
import { claimsMemory, programFile, tellProgram } from './node-claims.ts'
import { tellCodeCache } from './node-codecache.ts'
import { flagsOfWorkers } from './node-flags.ts'
import { clockSince, hrtimeMs } from './node-clock.ts'
import type { CpuBoot } from './node-cpurun.ts'
import { Lifeline, type LifelineEnd, lifelineEnds } from './node-lifeline.ts'
import { stackOfThread, terminateThread } from './node-stack.ts'
import type { TimekeeperBoot } from '../timekeeper/timekeeper.ts'
import { runtime } from '../core/runtime.ts'
import { type RunningCpu, WorkerMachine } from '../core/workermachine.ts'

const TIMEKEEPER_END_MS = 5000

export interface NodeMachineOptions {
  readonly arena: Arena
  /** The result of `reserveMachine`, in the plan that the arena was created from. */
  readonly region: Region
  /** A module whose default export is a CpuProgram. Every CPU imports it. */
  readonly program: URL
  /** Structured-cloned to each CPU's program. */
  readonly data?: unknown
  /** Options of each CPU's thread. */
  readonly worker?: Pick<
    WorkerOptions,
    'argv' | 'env' | 'execArgv' | 'resourceLimits' | 'trackUnmanagedFds' | 'workerData'
  >
  /** Running CPUs do not keep the program alive, except while one is being stopped. */
  readonly unref?: boolean
}

interface NodeCpu extends RunningCpu {
  readonly worker: Worker
  readonly lifeline: Lifeline
  /** It is being stopped or terminated: until it is gone it keeps the program alive. */
  ending: boolean
  /** When `ending` was set, by `performance.now()`. */
  endingSince: number
  /** Resolves `gone` although the thread still exists. */
  readonly abandon: () => void
}

/**
 * In Bun, whose lifelines do not tell, a thread counts as gone this long after it was terminated (in trials
 * it took less than a tenth of that).
 */
const TERMINATED_MS = 1000

/**
 * Copies options into an object without a prototype: a polluted Object.prototype must not add options.
 * Webpack cannot parse a literal with `__proto__`.
 */
function withoutPrototype(options: WorkerOptions): WorkerOptions {
  const own: WorkerOptions = Object.assign(Object.create(null) as WorkerOptions, options)
  const flags = own.execArgv ?? flagsOfWorkers(process.execArgv)
  if (flags !== undefined) own.execArgv = flags
  return own
}

/** CPUs on worker threads of this process. */
export class NodeMachine extends WorkerMachine<NodeCpu> {
  readonly now: () => number
  private readonly options: NodeMachineOptions
  private readonly origin: number
  private readonly timekeeper: Worker
  private readonly timekeeperGone: Promise<void>
  private anyStarted = false

  constructor(options: NodeMachineOptions) {
    super(options.arena, options.region)
    this.options = options
    claimsMemory()
    tellProgram()
    tellCodeCache(cacheFolder(programFile()))
    this.origin = hrtimeMs()
    this.now = clockSince(this.origin)
    const boot: TimekeeperBoot = { buffer: this.arena.buffer, region: this.region, origin: this.origin }
    this.timekeeper = new Worker(
      new URL('./node-timekeeper.ts', import.meta.url),
      withoutPrototype({ workerData: boot, name: 'heddle timekeeper' }),
    )
    this.timekeeper.unref()
    // If no CPU starts either, the boot fails and reports the reason.
    this.timekeeper.on('error', error => {
      if (!this.anyStarted) return
      throw new Error(`heddle: the timekeeper's thread failed:  ${String(error)}`, { cause: error })
    })
    this.timekeeperGone = new Promise(resolve => this.timekeeper.once('exit', () => resolve()))
  }

  /** The thread of a CPU that runs or is being started. */
  threadOf(cpu: number): Worker | undefined {
    return this.running[cpu]?.worker
  }

  /**
   * Whether the CPU's thread is gone, even if its death was not reported yet. Needs no turn of the event
   * loop. Exact in Node. In Bun, where lifelines do not tell, a thread counts as gone some time after it was
   * terminated; in Deno never.
   */
  isGone(cpu: number): boolean {
    const running = this.running[cpu]
    if (running === undefined) return true
    if (runtime() === 'node') return running.lifeline.cut
    return running.terminated && performance.now() - running.endingSince > TERMINATED_MS
  }

  /**
   * Deno reports immediately that a worker has ended, but lets its code run on: a replacement would be a
   * second CPU of the same number. So in Deno no CPU is ended by force. Resolves when the CPU has ended by
   * itself.
   */
  override async terminate(cpu: number): Promise<void> {
    const running = this.running[cpu]
    if (running === undefined || runtime() !== 'deno') return await super.terminate(cpu)
    process.emitWarning(
      `CPU ${cpu} cannot be taken from its task: Deno does not end a worker that computes. The CPU is free when the task has ended. Mark the task's function 'use task'`,
      { type: 'HeddleWarning', code: 'HEDDLE_CANNOT_EVICT' },
    )
    await this.stop(cpu)
  }

  async stackOf(cpu: number): Promise<readonly string[] | null> {
    const worker = this.running[cpu]?.worker
    return worker === undefined ? null : stackOfThread(worker)
  }

  protected createWorker(cpu: number, start: number): NodeCpu {
    const { lifeline, far } = Lifeline.make()
    const { near, far: forTimekeeper } = lifelineEnds()
    const boot: CpuBoot = {
      lifelines: [far, forTimekeeper],
      buffer: this.arena.buffer,
      region: this.region,
      id: cpu,
      origin: this.origin,
      program: this.options.program.href,
      data: this.options.data,
    }
    const worker = new Worker(
      new URL('./node-cpu.ts', import.meta.url),
      withoutPrototype({ name: `heddle cpu ${cpu}`, ...this.options.worker }),
    )
    // The first message carries `boot`: `workerData` belongs to the program.
    worker.postMessage(boot, [...boot.lifelines])
    if (runtime() === 'node') this.timekeeper.postMessage({ cpu, start, near } satisfies LifelineEnd, [near])
    return {
      worker,
      lifeline,
      terminated: false,
      ending: false,
      endingSince: 0,
      ...this.watch(cpu, worker, lifeline),
    }
  }

  protected override hasStarted(running: NodeCpu): void {
    this.anyStarted = true
    if (this.options.unref && !running.ending) running.worker.unref()
  }

  protected override isEnding(running: NodeCpu): void {
    running.ending = true
    running.endingSince = performance.now()
    running.worker.ref()
  }

  protected override endThread({ worker }: NodeCpu): unknown {
    return terminateThread(worker)
  }

  protected timekeeperEnd(): Promise<void> {
    this.timekeeper.ref()
    // The timekeeper ends by itself, unless its thread never started.
    const late = setTimeout(() => void terminateThread(this.timekeeper), TIMEKEEPER_END_MS)
    return this.timekeeperGone.finally(() => clearTimeout(late))
  }

  /**
   * Stops waiting for a CPU whose thread does not end while the machine closes: the thread is in a system
   * call, or paused by a user's debugger. It no longer keeps the program alive. It ends when its call returns
   * or the process exits.
   */
  abandon(cpu: number): void {
    const running = this.running[cpu]
    if (running === undefined) return
    this.running[cpu] = undefined
    running.worker.unref()
    running.abandon()
  }

  private watch(cpu: number, worker: Worker, lifeline: Lifeline): Pick<NodeCpu, 'gone' | 'abandon'> {
    let thrown: { error: unknown } | undefined
    let abandon = (): void => undefined
    worker.on('message', message => this.heard(cpu, message))
    worker.on('error', error => {
      thrown = { error }
    })
    const gone = new Promise<void>(resolve => {
      abandon = resolve
      worker.once('exit', exitCode => {
        lifeline.close()
        const isAbandoned = this.running[cpu]?.worker !== worker
        try {
          if (!isAbandoned) this.ended(cpu, exitCode, thrown)
        } finally {
          resolve()
        }
      })
    })
    return { gone, abandon }
  }
}
