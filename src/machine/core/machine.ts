import type { Arena, Region } from '../../arena/memory/arena.ts'
import { KernelThread } from '../../arena/sync/thread.ts'
import { CpuRecord, cpuRecord, isActive, setActive } from './cpurecord.ts'
import { kickCpu } from './halt.ts'
import { isMail } from './mail.ts'
import { armSlice, disarmSlice } from '../timekeeper/timekeeper.ts'

/**
 * A machine is what the kernel needs of hardware: CPUs that start, stop and die; a clock; kick (the interrupt
 * from one CPU to another); halt; the tick. Kernel code is the same on all of them.
 *
 *   real       nodemachine.ts, webmachine.ts: CPUs are worker threads or Web Workers, time is real
 *   simulated  simulated.ts: CPUs take turns in one thread, time is virtual, every choice comes from a seed
 *
 * A `Machine` is the controller's side: one object, where the machine was made. A `Cpu` is the CPU's own
 * side.
 */
export interface Machine {
  readonly arena: Arena
  readonly region: Region
  readonly cpus: number
  /** Milliseconds since the machine was made; never goes back. */
  now(): number
  isActive(cpu: number): boolean
  /** Makes the CPU look for work, from any thread. No system call unless it is halted. */
  kick(cpu: number): void
  /** Starts a CPU that is offline. Resolves when it runs its program. */
  start(cpu: number): Promise<void>
  /** Asks the CPU's program to end. Resolves when its thread is gone. */
  stop(cpu: number): Promise<void>
  /** Ends the CPU wherever it is, in the middle of any instruction. Its death is noticed as any other. */
  terminate(cpu: number): Promise<void>
  /**
   * Whether the CPU runs no more, for a thread that waits for it and cannot let its event loop turn. Not
   * every machine can say.
   */
  isGone?(cpu: number): boolean
  /** Sends a message to the CPU, which runs or is being started. */
  post?(cpu: number, message: unknown, transfer?: readonly object[]): void
  /** Called for each message that a CPU sends: mail, or one of the program's own (mail.ts). */
  onMessage?(listener: (cpu: number, message: unknown) => void): void
  /**
   * The stack of what a CPU runs, its lines innermost first, though it does not answer; null: it cannot be
   * had.
   */
  stackOf?(cpu: number): Promise<readonly string[] | null>
  /** Called for each CPU that ends without its program having returned. */
  onDeath(listener: (death: CpuDeath) => void): void
  /** Ends every CPU and the timekeeper. */
  close(): Promise<void>
}

export interface CpuDeath {
  readonly cpu: number
  readonly reason: 'terminated' | 'exited' | 'out of memory' | 'uncaught error'
  readonly exitCode: number
  /** For 'out of memory' and 'uncaught error': what was thrown. */
  readonly error?: unknown
}

/** What a program asks of its machine when it yields. */
export const STEP = 0
export const HALT = 1
export const TURN = 2
export const MICROTASKS = 3
export type CpuRequest = typeof STEP | typeof HALT | typeof TURN | typeof MICROTASKS

/**
 * What a CPU runs: the scheduler loop, or a test's. It yields
 *   STEP   after each unit of work where `cpu.stepwise` says so: other CPUs take their turns (simulated)
 *   HALT   when there is nothing to do: sleeps until a kick or `cpu.haltUntil`
 *   TURN   to let the event loop run once: messages, timers, I/O
 *   MICROTASKS  to let promises that have settled run what waits for them, and nothing else of the event loop
 * and returns when `cpu.stopRequested` and it is done. The same generator runs on every machine.
 */
export type CpuProgram = (cpu: Cpu, data: unknown) => Generator<CpuRequest, void, void>

export abstract class Cpu {
  readonly id: number
  readonly arena: Arena
  readonly i32: Int32Array<SharedArrayBuffer>
  readonly region: Region
  /** Pointer of this CPU's record. */
  readonly record: number
  readonly thread: KernelThread
  /** The program yields STEP after each unit of work. */
  readonly stepwise: boolean
  /** When the next HALT ends by itself, in the machine's time. */
  haltUntil: number = Infinity
  /**
   * Counts its starts and deaths: on a simulated machine the heap of a dead CPU lives on, and what it left
   * there must know.
   */
  lives = 0
  /** I/O that this CPU's tasks wait for: while it is above 0, a halt lets the event loop turn. */
  outstanding = 0

  constructor(arena: Arena, region: Region, id: number, stepwise: boolean) {
    this.arena = arena
    this.i32 = arena.i32
    this.region = region
    this.id = id
    this.record = cpuRecord(region, id)
    this.thread = new KernelThread(arena, id)
    this.stepwise = stepwise
  }

  /** Milliseconds since the machine was made. */
  abstract now(): number

  /** Accounts for work that takes time only on a simulated CPU. */
  abstract charge(ms: number): void

  kick(cpu: number): void {
    kickCpu(this.i32, cpuRecord(this.region, cpu))
  }

  /** Raises `needResched` on a CPU and makes sure that it looks. */
  preempt(cpu: number): void {
    Atomics.store(this.i32, cpuRecord(this.region, cpu) + CpuRecord.needResched, 1)
    if (cpu !== this.id) this.kick(cpu)
  }

  get needResched(): boolean {
    return Atomics.load(this.i32, this.record + CpuRecord.needResched) !== 0
  }

  clearNeedResched(): void {
    Atomics.store(this.i32, this.record + CpuRecord.needResched, 0)
  }

  /** Arms the tick: `needResched` is raised when the machine's clock reaches `ms`. Replaces an armed one. */
  armTick(ms: number): void {
    armSlice(this.i32, this.region, this.record, ms)
  }

  disarmTick(): void {
    disarmSlice(this.i32, this.record)
  }

  get stopRequested(): boolean {
    return Atomics.load(this.i32, this.record + CpuRecord.stopRequested) !== 0
  }

  /** Sends a message to the thread that made the machine (mail.ts). */
  post(_message: unknown, _transfer?: readonly object[]): void {
    throw new Error('this machine carries no messages')
  }

  /** Takes in what has been sent here, without a turn of the event loop, where the platform can. */
  poll(): void {}

  /** Hears what the thread that made the machine sends. */
  onMail: (message: unknown) => void = () => undefined

  /** A message has come to this CPU's thread: mail, or one of the program's own. */
  receive(message: unknown): void {
    if (!isMail(message)) return
    Atomics.sub(this.i32, this.record + CpuRecord.mail, 1)
    this.onMail(message.heddleMail)
  }

  /** Messages wait in the event loop's queue: the program should yield TURN. */
  get mailPending(): boolean {
    return Atomics.load(this.i32, this.record + CpuRecord.mail) !== 0
  }

  /** Tasks may be placed here from now on; or no more. */
  setActive(active: boolean): void {
    setActive(this.i32, this.region, this.id, active)
  }

  isActive(cpu: number): boolean {
    return isActive(this.i32, this.region, cpu)
  }
}
