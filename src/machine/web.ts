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
import type { ThreadTimekeeperBoot } from './threadtimekeeper.ts'
import { disarmSlice, wakeTimekeeper } from './timekeeper.ts'

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

interface RunningCpu {
  readonly worker: Worker
  readonly gone: Promise<void>
  terminated: boolean
}

/** Milliseconds since `origin`, on whichever thread. */
export function webClock(origin: number): () => number {
  return () => performance.timeOrigin + performance.now() - origin
}

export class WebMachine implements Machine {
  readonly arena: Arena
  readonly region: Region
  readonly cpus: number
  readonly now: () => number
  private readonly options: WebMachineOptions
  private readonly origin: number
  private readonly running: (RunningCpu | undefined)[] = []
  private readonly listeners: ((death: CpuDeath) => void)[] = []
  private readonly timekeeper: Worker
  private starts = 0

  constructor(options: WebMachineOptions) {
    this.options = options
    this.arena = options.arena
    this.region = options.region
    this.cpus = cpuCount(options.region)
    this.origin = performance.timeOrigin + performance.now()
    this.now = webClock(this.origin)
    const boot: ThreadTimekeeperBoot = { buffer: this.arena.buffer, region: this.region, origin: this.origin }
    this.timekeeper = new Worker(new URL('./web-timekeeper.ts', import.meta.url), {
      type: 'module',
      name: 'heddle timekeeper',
    })
    this.timekeeper.postMessage(boot)
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
    const { i32 } = this.arena
    const record = cpuRecord(this.region, cpu)
    const was = Atomics.compareExchange(i32, record + CpuRecord.state, CPU_OFFLINE, CPU_STARTING)
    if (was !== CPU_OFFLINE || this.running[cpu] !== undefined) {
      throw new Error(`start(${cpu}): CPU ${cpu} is running already, or has died and was not recovered`)
    }
    Atomics.store(i32, record + CpuRecord.stopRequested, 0)
    Atomics.store(i32, record + CpuRecord.needResched, 0)
    Atomics.store(i32, record + CpuRecord.mail, 0)
    finishHalt(i32, record)
    Atomics.compareExchange(i32, this.region.start + MachineRecord.spinner, record, 0)
    const worker = this.options.worker(`heddle cpu ${cpu}`)
    const lock = `heddle cpu ${cpu} of ${this.origin} start ${++this.starts}`
    const started: RunningCpu = { worker, terminated: false, gone: this.watch(cpu, worker, lock) }
    this.running[cpu] = started
    const boot: WebCpuBoot = {
      buffer: this.arena.buffer,
      region: this.region,
      id: cpu,
      origin: this.origin,
      lock,
      data: this.options.data,
    }
    worker.postMessage(boot)
    const waiting = Atomics.waitAsync(i32, record + CpuRecord.state, CPU_STARTING)
    if (waiting.async) await Promise.race([waiting.value, started.gone])
    const state = Atomics.load(i32, record + CpuRecord.state)
    if (state === CPU_DEAD) throw new Error(`start(${cpu}): CPU ${cpu} died before its program ran`)
    assert(state === CPU_ONLINE || state === CPU_OFFLINE, 'a CPU that has started is online, or done')
  }

  async stop(cpu: number): Promise<void> {
    const running = this.running[cpu]
    if (running === undefined) return
    const record = cpuRecord(this.region, cpu)
    Atomics.store(this.arena.i32, record + CpuRecord.stopRequested, 1)
    Atomics.store(this.arena.i32, record + CpuRecord.needResched, 1)
    this.kick(cpu)
    await running.gone
  }

  async terminate(cpu: number): Promise<void> {
    const running = this.running[cpu]
    if (running === undefined) return
    running.terminated = true
    running.worker.terminate()
    await running.gone
  }

  recovered(cpu: number): void {
    const at = cpuRecord(this.region, cpu) + CpuRecord.state
    const was = Atomics.compareExchange(this.arena.i32, at, CPU_DEAD, CPU_OFFLINE)
    assert(was === CPU_DEAD, 'only a dead CPU can be recovered')
  }

  async close(): Promise<void> {
    const { i32 } = this.arena
    await Promise.all(this.running.map((running, cpu) => (running ? this.stop(cpu) : undefined)))
    Atomics.store(i32, this.region.start + MachineRecord.shutdown, 1)
    wakeTimekeeper(i32, this.region)
    this.timekeeper.terminate()
  }

  /** Resolves when the worker is gone, after its death, if it was one, has been told. */
  private async watch(cpu: number, worker: Worker, lock: string): Promise<void> {
    let thrown: { error: unknown } | undefined
    let isAlive = false
    const told = new Promise<void>(resolve => {
      worker.addEventListener('message', ({ data }) => {
        if (data !== WEB_CPU_ALIVE) return
        isAlive = true
        resolve()
      })
      worker.addEventListener('error', event => {
        thrown = { error: event.error ?? new Error(event.message || 'its module could not be loaded') }
        worker.terminate()
        resolve()
      })
    })
    await told
    if (isAlive) await navigator.locks.request(lock, () => undefined)
    const running = this.running[cpu]
    this.running[cpu] = undefined
    const record = cpuRecord(this.region, cpu)
    if (Atomics.load(this.arena.i32, record + CpuRecord.state) === CPU_OFFLINE) return
    Atomics.store(this.arena.i32, record + CpuRecord.state, CPU_DEAD)
    setActive(this.arena.i32, this.region, cpu, false)
    disarmSlice(this.arena.i32, record)
    const reason = thrown ? 'uncaught error' : running?.terminated ? 'terminated' : 'exited'
    for (const listener of this.listeners) listener({ cpu, reason, exitCode: 1, ...thrown })
  }
}
