import type { Arena, Region } from '../../arena/memory/arena.ts'
import { assert } from '../../arena/assert.ts'
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
import { sealed } from './mail.ts'
import { disarmSlice, wakeTimekeeper } from '../timekeeper/timekeeper.ts'

/** A CPU whose worker was created and has not ended. */
export interface RunningCpu {
  readonly worker: { terminate(): unknown; postMessage(message: unknown, transfer: any): void }
  /** Resolves when its thread is gone, after its death (if it is one) was reported. */
  readonly gone: Promise<void>
  terminated: boolean
}

/**
 * CPUs on worker threads: the part that Node and browsers share, which is the protocol of the CPU records in
 * the arena. The subclasses (nodemachine.ts, webmachine.ts) create workers and detect their end.
 */
export abstract class WorkerMachine<R extends RunningCpu> implements Machine {
  readonly arena: Arena
  readonly region: Region
  readonly cpus: number
  abstract readonly now: () => number
  protected readonly running: (R | undefined)[] = []
  /** The number of starts so far. */
  private starts = 0
  private readonly listeners: ((death: CpuDeath) => void)[] = []
  private readonly messageListeners: ((cpu: number, message: unknown) => void)[] = []

  constructor(arena: Arena, region: Region) {
    this.arena = arena
    this.region = region
    this.cpus = cpuCount(region)
  }

  /** Creates the worker of a CPU, whose record says STARTING. `start`: the number of this start. */
  protected abstract createWorker(cpu: number, start: number): R

  /** Resolves when the timekeeper, which was asked to end, has ended. */
  protected abstract timekeeperEnd(): Promise<void>

  /** The CPU runs. */
  protected hasStarted(_running: R): void {}

  /** Ends the CPU's thread immediately. */
  protected endThread(running: R): unknown {
    return running.worker.terminate()
  }

  /** The CPU is being stopped or terminated. */
  protected isEnding(_running: R): void {}

  isActive(cpu: number): boolean {
    return isActive(this.arena.i32, this.region, cpu)
  }

  kick(cpu: number): void {
    kickCpu(this.arena.i32, cpuRecord(this.region, cpu))
  }

  post(cpu: number, message: unknown, transfer: readonly object[] = []): void {
    const running = this.running[cpu]
    if (running === undefined) throw new Error(`post(${cpu}): CPU ${cpu} is not running; start it first`)
    const mail = cpuRecord(this.region, cpu) + CpuRecord.mail
    Atomics.add(this.arena.i32, mail, 1) // (A) of mail.ts
    try {
      running.worker.postMessage(sealed(message), transfer) // (B)
    } catch (error) {
      Atomics.sub(this.arena.i32, mail, 1)
      throw error
    }
    this.kick(cpu)
  }

  onMessage(listener: (cpu: number, message: unknown) => void): void {
    this.messageListeners.push(listener)
  }

  protected heard(cpu: number, message: unknown): void {
    for (const listener of this.messageListeners) listener(cpu, message)
  }

  onDeath(listener: (death: CpuDeath) => void): void {
    this.listeners.push(listener)
  }

  async start(cpu: number): Promise<void> {
    const { i32 } = this.arena
    const record = cpuRecord(this.region, cpu)
    // Check the thread first: the CPU of an ended program is OFFLINE, and in another state the end of its old
    // thread would count as a death.
    const mayStart =
      this.running[cpu] === undefined &&
      Atomics.compareExchange(i32, record + CpuRecord.state, CPU_OFFLINE, CPU_STARTING) === CPU_OFFLINE
    if (!mayStart) {
      throw new Error(
        `start(${cpu}): CPU ${cpu} is running already, or has died and was not recovered; stop or recover it first`,
      )
    }
    Atomics.store(i32, record + CpuRecord.stopRequested, 0)
    Atomics.store(i32, record + CpuRecord.needResched, 0)
    Atomics.store(i32, record + CpuRecord.mail, 0)
    Atomics.store(i32, record + CpuRecord.rescues, 0)
    finishHalt(i32, record)
    const start = ++this.starts
    Atomics.store(i32, record + CpuRecord.life, start)
    const started = this.createWorker(cpu, start)
    this.running[cpu] = started
    const waiting = Atomics.waitAsync(i32, record + CpuRecord.state, CPU_STARTING)
    if (waiting.async) await Promise.race([waiting.value, started.gone])
    const state = Atomics.load(i32, record + CpuRecord.state)
    if (state === CPU_DEAD)
      throw new Error(
        `start(${cpu}): CPU ${cpu} died before its program ran; its death was reported to onDeath`,
      )
    assert(state === CPU_ONLINE || state === CPU_OFFLINE, 'a started CPU is online, or has ended its program')
    this.hasStarted(started)
  }

  async stop(cpu: number): Promise<void> {
    const running = this.running[cpu]
    if (running === undefined) return
    this.isEnding(running)
    const record = cpuRecord(this.region, cpu)
    Atomics.store(this.arena.i32, record + CpuRecord.stopRequested, 1)
    // A busy CPU reads the request at its next safepoint, a halted one immediately.
    Atomics.store(this.arena.i32, record + CpuRecord.needResched, 1)
    this.kick(cpu)
    await running.gone
  }

  async terminate(cpu: number): Promise<void> {
    const running = this.running[cpu]
    if (running === undefined) return
    if (!running.terminated) {
      running.terminated = true
      this.isEnding(running)
      void this.endThread(running)
    }
    await running.gone
  }

  /** A CPU that died may start again after its shared data were repaired. */
  recovered(cpu: number): void {
    const at = cpuRecord(this.region, cpu) + CpuRecord.state
    const was = Atomics.compareExchange(this.arena.i32, at, CPU_DEAD, CPU_OFFLINE)
    assert(was === CPU_DEAD, 'only a dead CPU can be recovered')
    Atomics.store(this.arena.i32, cpuRecord(this.region, cpu) + CpuRecord.life, 0) // (C) of deaths.ts
  }

  async close(): Promise<void> {
    const { i32 } = this.arena
    await Promise.all(this.running.map((running, cpu) => (running ? this.stop(cpu) : undefined)))
    Atomics.store(i32, this.region.start + MachineRecord.shutdown, 1)
    wakeTimekeeper(i32, this.region)
    await this.timekeeperEnd()
  }

  /**
   * The CPU's thread is gone. Unless it was stopped, this is a death, and it is reported. `thrown`: the
   * uncaught error.
   */
  protected ended(cpu: number, exitCode: number, thrown?: { readonly error: unknown }): void {
    const { i32 } = this.arena
    const terminated = this.running[cpu]?.terminated ?? false
    this.running[cpu] = undefined
    const record = cpuRecord(this.region, cpu)
    if (Atomics.load(i32, record + CpuRecord.state) === CPU_OFFLINE) {
      Atomics.store(i32, record + CpuRecord.life, 0)
      return
    }
    Atomics.store(i32, record + CpuRecord.state, CPU_DEAD)
    setActive(i32, this.region, cpu, false)
    disarmSlice(i32, record)
    // The CPU may have died while it was the spinning one (halt.ts).
    Atomics.compareExchange(i32, this.region.start + MachineRecord.spinner, record, 0)
    const death: CpuDeath = { cpu, reason: deathReason(thrown, terminated), exitCode, ...thrown }
    for (const listener of this.listeners) listener(death)
  }
}

function deathReason(
  thrown: { readonly error: unknown } | undefined,
  terminated: boolean,
): CpuDeath['reason'] {
  if (thrown === undefined) return terminated ? 'terminated' : 'exited'
  const { code } = (thrown.error ?? {}) as { code?: unknown }
  return code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'out of memory' : 'uncaught error'
}
