import { Worker, type WorkerOptions } from 'node:worker_threads'
import type { Arena, Region } from '../../arena/memory/arena.ts'
import { claimsMemory, tellProgram } from './node-claims.ts'
import { flagsOfWorkers } from './node-flags.ts'
import { clockSince, hrtimeMs } from './node-clock.ts'
import type { CpuBoot } from './node-cpu.ts'
import { Lifeline, type LifelineEnd, lifelineEnds } from './node-lifeline.ts'
import { stackOfThread, terminateUnseen } from './node-stack.ts'
import type { TimekeeperBoot } from '../timekeeper/timekeeper.ts'
import { runtime } from '../core/runtime.ts'
import { type RunningCpu, WorkerMachine } from '../core/workermachine.ts'

const TIMEKEEPER_END_MS = 5000

export interface NodeMachineOptions {
  readonly arena: Arena
  /** From `reserveMachine`, in the plan that the arena was created from. */
  readonly region: Region
  /** A module whose default export is a CpuProgram. Every CPU imports it. */
  readonly program: URL
  /** Structured-cloned to each CPU's program. */
  readonly data?: unknown
  /** What each CPU's thread is made with. */
  readonly worker?: Pick<
    WorkerOptions,
    'argv' | 'env' | 'execArgv' | 'resourceLimits' | 'trackUnmanagedFds' | 'workerData'
  >
  /** CPUs do not keep the program alive, once they run, but while one is being stopped. */
  readonly unref?: boolean
}

interface NodeCpu extends RunningCpu {
  readonly worker: Worker
  readonly lifeline: Lifeline
  /** It is being stopped, or terminated: until it is gone it keeps the program alive. */
  ending: boolean
  /** When that began, by `performance.now()`. */
  endingSince: number
  /** Resolves `gone` though the thread is there. */
  readonly leave: () => void
}

/**
 * A thread that was terminated so long ago runs no more, where it cannot be seen (Bun: tried, less than a
 * tenth of it).
 */
const TERMINATED_MS = 1000

/**
 * The options without a prototype: what a polluted one has is no option. A literal that says `__proto__` is
 * more than webpack reads.
 */
function bare(options: WorkerOptions): WorkerOptions {
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
    this.origin = hrtimeMs()
    this.now = clockSince(this.origin)
    const boot: TimekeeperBoot = { buffer: this.arena.buffer, region: this.region, origin: this.origin }
    this.timekeeper = new Worker(
      new URL('./node-timekeeper.ts', import.meta.url),
      bare({ workerData: boot, name: 'heddle timekeeper' }),
    )
    this.timekeeper.unref()
    // Where no CPU starts either, the boot fails and says why.
    this.timekeeper.on('error', error => {
      if (!this.anyStarted) return
      throw new Error(`heddle: the timekeeper's thread has failed: ${String(error)}`, { cause: error })
    })
    this.timekeeperGone = new Promise(resolve => this.timekeeper.once('exit', () => resolve()))
  }

  /** The thread of a CPU that runs, or is being started. */
  threadOf(cpu: number): Worker | undefined {
    return this.running[cpu]?.worker
  }

  /**
   * Whether the CPU's thread runs no more, though its death may not have been told yet. Without a turn of the
   * event loop. Exact in Node; in Bun, where a lifeline does not tell, a thread counts as gone some time
   * after it was terminated; in Deno none is.
   */
  isGone(cpu: number): boolean {
    const running = this.running[cpu]
    if (running === undefined) return true
    if (runtime() === 'node') return running.lifeline.cut
    return running.terminated && performance.now() - running.endingSince > TERMINATED_MS
  }

  /**
   * Deno says at once that a worker has ended, and lets it compute on: a CPU in its place would be there
   * twice. So there none is ended by force. Resolves when the CPU has ended by itself.
   */
  override async terminate(cpu: number): Promise<void> {
    const running = this.running[cpu]
    if (running === undefined || runtime() !== 'deno') return await super.terminate(cpu)
    process.emitWarning(
      `CPU ${cpu} cannot be taken from its task: Deno does not end a worker that computes; it is free when the task has ended by itself. Mark what it runs 'use task'`,
      { type: 'HeddleWarning', code: 'HEDDLE_CANNOT_EVICT' },
    )
    await this.stop(cpu)
  }

  async stackOf(cpu: number): Promise<readonly string[] | null> {
    const worker = this.running[cpu]?.worker
    return worker === undefined ? null : stackOfThread(worker)
  }

  protected launch(cpu: number, start: number): NodeCpu {
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
      bare({ name: `heddle cpu ${cpu}`, ...this.options.worker }),
    )
    // The first message: `workerData` is the program's.
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
    return terminateUnseen(worker)
  }

  protected timekeeperEnd(): Promise<void> {
    this.timekeeper.ref()
    // It ends by itself, unless its thread never came up.
    const late = setTimeout(() => void terminateUnseen(this.timekeeper), TIMEKEEPER_END_MS)
    return this.timekeeperGone.finally(() => clearTimeout(late))
  }

  /**
   * The machine closes, and this CPU's thread does not end: it is in a call of the operating system, or
   * stopped by the debugger of a user. Nothing waits for it any more, and it keeps the program alive no
   * longer. When its call returns, it ends; so does a process that exits meanwhile.
   */
  leave(cpu: number): void {
    const running = this.running[cpu]
    if (running === undefined) return
    this.running[cpu] = undefined
    running.worker.unref()
    running.leave()
  }

  private watch(cpu: number, worker: Worker, lifeline: Lifeline): Pick<NodeCpu, 'gone' | 'leave'> {
    let thrown: { error: unknown } | undefined
    let leave = (): void => undefined
    worker.on('message', message => this.heard(cpu, message))
    worker.on('error', error => {
      thrown = { error }
    })
    const gone = new Promise<void>(resolve => {
      leave = resolve
      worker.once('exit', exitCode => {
        lifeline.close()
        const isLeft = this.running[cpu]?.worker !== worker
        try {
          if (!isLeft) this.ended(cpu, exitCode, thrown)
        } finally {
          resolve()
        }
      })
    })
    return { gone, leave }
  }
}
