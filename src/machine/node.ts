import { Worker, type WorkerOptions } from 'node:worker_threads'
import type { Arena, Region } from '../arena/arena.ts'
import { assert } from '../arena/assert.ts'
import {
  CPU_DEAD,
  CPU_OFFLINE,
  CPU_ONLINE,
  CPU_STARTING,
  CpuRecord,
  cpuCount,
  cpuRecord,
  isActive,
  MachineRecord,
  setActive,
} from './cpurecord.ts'
import { finishHalt, kickCpu } from './halt.ts'
import type { CpuDeath, Machine } from './machine.ts'
import { clockSince, hrtimeMs } from './node-clock.ts'
import type { CpuBoot } from './node-cpu.ts'
import { Lifeline } from './node-lifeline.ts'
import type { TimekeeperBoot } from './node-timekeeper.ts'
import { disarmSlice, wakeTimekeeper } from './timekeeper.ts'

export interface NodeMachineOptions {
  readonly arena: Arena
  /** From `reserveMachine`, in the plan that the arena was created from. */
  readonly region: Region
  /** A module whose default export is a CpuProgram. Every CPU imports it. */
  readonly program: URL
  /** Structured-cloned to each CPU's program. */
  readonly data?: unknown
  readonly resourceLimits?: WorkerOptions['resourceLimits']
  readonly execArgv?: string[]
  /** CPUs do not keep the program alive, once they run, but while one is being stopped. */
  readonly unref?: boolean
}

interface RunningCpu {
  readonly worker: Worker
  readonly lifeline: Lifeline
  readonly gone: Promise<void>
  terminated: boolean
  /** It is being stopped, or terminated: until it is gone it keeps the program alive. */
  ending: boolean
}

/** CPUs on worker threads of this process. */
export class NodeMachine implements Machine {
  readonly arena: Arena
  readonly region: Region
  readonly cpus: number
  readonly now: () => number
  private readonly options: NodeMachineOptions
  private readonly origin: number
  private readonly running: (RunningCpu | undefined)[] = []
  private readonly listeners: ((death: CpuDeath) => void)[] = []
  private readonly timekeeper: Worker
  private readonly timekeeperGone: Promise<void>

  constructor(options: NodeMachineOptions) {
    this.options = options
    this.arena = options.arena
    this.region = options.region
    this.cpus = cpuCount(options.region)
    this.origin = hrtimeMs()
    this.now = clockSince(this.origin)
    const boot: TimekeeperBoot = { buffer: this.arena.buffer, region: this.region, origin: this.origin }
    this.timekeeper = new Worker(new URL('./node-timekeeper.ts', import.meta.url), {
      workerData: boot,
      name: 'heddle timekeeper',
    })
    this.timekeeper.unref()
    this.timekeeperGone = new Promise(resolve => this.timekeeper.once('exit', () => resolve()))
  }

  isActive(cpu: number): boolean {
    return isActive(this.arena.i32, this.region, cpu)
  }

  kick(cpu: number): void {
    kickCpu(this.arena.i32, cpuRecord(this.region, cpu))
  }

  onDeath(listener: (death: CpuDeath) => void): void {
    this.listeners.push(listener)
  }

  async start(cpu: number): Promise<void> {
    const i32 = this.arena.i32
    const record = cpuRecord(this.region, cpu)
    const was = Atomics.compareExchange(i32, record + CpuRecord.state, CPU_OFFLINE, CPU_STARTING)
    if (was !== CPU_OFFLINE || this.running[cpu] !== undefined) {
      throw new Error(`start(${cpu}): CPU ${cpu} is running already, or has died and was not recovered`)
    }
    Atomics.store(i32, record + CpuRecord.stopRequested, 0)
    Atomics.store(i32, record + CpuRecord.needResched, 0)
    Atomics.store(i32, record + CpuRecord.mail, 0)
    finishHalt(i32, record)
    // It may have died while it was the one that spins.
    Atomics.compareExchange(i32, this.region.start + MachineRecord.spinner, record, 0)
    const lifeline = new Lifeline()
    const boot: CpuBoot = {
      lifeline: lifeline.far,
      buffer: this.arena.buffer,
      region: this.region,
      id: cpu,
      origin: this.origin,
      program: this.options.program.href,
      data: this.options.data,
    }
    const worker = new Worker(new URL('./node-cpu.ts', import.meta.url), {
      workerData: boot,
      transferList: [lifeline.far],
      name: `heddle cpu ${cpu}`,
      ...(this.options.resourceLimits && { resourceLimits: this.options.resourceLimits }),
      ...(this.options.execArgv && { execArgv: this.options.execArgv }),
    })
    const started: RunningCpu = {
      worker,
      lifeline,
      terminated: false,
      ending: false,
      gone: this.watch(cpu, worker),
    }
    this.running[cpu] = started
    const waiting = Atomics.waitAsync(i32, record + CpuRecord.state, CPU_STARTING)
    if (waiting.async) await Promise.race([waiting.value, started.gone])
    const state = Atomics.load(i32, record + CpuRecord.state)
    if (state === CPU_DEAD) throw new Error(`start(${cpu}): CPU ${cpu} died before its program ran`)
    assert(state === CPU_ONLINE || state === CPU_OFFLINE, 'a CPU that has started is online, or done')
    if (this.options.unref && !started.ending) worker.unref()
  }

  async stop(cpu: number): Promise<void> {
    const running = this.running[cpu]
    if (running === undefined) return
    running.ending = true
    running.worker.ref()
    Atomics.store(this.arena.i32, cpuRecord(this.region, cpu) + CpuRecord.stopRequested, 1)
    // A busy CPU looks at its next safepoint, a halted one at once.
    Atomics.store(this.arena.i32, cpuRecord(this.region, cpu) + CpuRecord.needResched, 1)
    this.kick(cpu)
    await running.gone
  }

  async terminate(cpu: number): Promise<void> {
    const running = this.running[cpu]
    if (running === undefined) return
    if (!running.terminated) {
      running.terminated = true
      running.ending = true
      running.worker.ref()
      void running.worker.terminate()
    }
    await running.gone
  }

  /** Sends a message to the CPU's event loop, and makes a halted CPU turn it. */
  post(cpu: number, message: unknown, transfer?: Parameters<Worker['postMessage']>[1]): void {
    const running = this.running[cpu]
    assert(running !== undefined, 'messages go to CPUs that run')
    Atomics.add(this.arena.i32, cpuRecord(this.region, cpu) + CpuRecord.mail, 1)
    running.worker.postMessage(message, transfer)
    this.kick(cpu)
  }

  /** Whether the CPU's thread runs no more, though its death may not have been told yet. Exact, and without a turn of the event loop. */
  isGone(cpu: number): boolean {
    const running = this.running[cpu]
    return running === undefined || running.lifeline.cut
  }

  /** A CPU that died may be started again once what it left has been repaired. */
  recovered(cpu: number): void {
    const at = cpuRecord(this.region, cpu) + CpuRecord.state
    const was = Atomics.compareExchange(this.arena.i32, at, CPU_DEAD, CPU_OFFLINE)
    assert(was === CPU_DEAD, 'only a dead CPU can be recovered')
  }

  async close(): Promise<void> {
    const i32 = this.arena.i32
    await Promise.all(this.running.map((running, cpu) => (running ? this.stop(cpu) : undefined)))
    Atomics.store(i32, this.region.start + MachineRecord.shutdown, 1)
    wakeTimekeeper(i32, this.region)
    this.timekeeper.ref()
    await this.timekeeperGone
  }

  /** Resolves when the thread is gone, after its death, if it was one, has been told. */
  private watch(cpu: number, worker: Worker): Promise<void> {
    let thrown: { error: unknown } | undefined
    worker.on('error', error => {
      thrown = { error }
    })
    return new Promise(resolve => {
      worker.once('exit', exitCode => {
        const running = this.running[cpu]
        this.running[cpu] = undefined
        running?.lifeline.close()
        const at = cpuRecord(this.region, cpu) + CpuRecord.state
        if (Atomics.load(this.arena.i32, at) !== CPU_OFFLINE) {
          Atomics.store(this.arena.i32, at, CPU_DEAD)
          setActive(this.arena.i32, this.region, cpu, false)
          disarmSlice(this.arena.i32, cpuRecord(this.region, cpu))
          const death: CpuDeath = {
            cpu,
            reason: deathReason(thrown?.error, running?.terminated ?? false),
            exitCode,
            ...thrown,
          }
          for (const listener of this.listeners) listener(death)
        }
        resolve()
      })
    })
  }
}

function deathReason(error: unknown, terminated: boolean): CpuDeath['reason'] {
  if ((error as { code?: string } | undefined)?.code === 'ERR_WORKER_OUT_OF_MEMORY') return 'out of memory'
  if (error !== undefined) return 'uncaught error'
  return terminated ? 'terminated' : 'exited'
}
