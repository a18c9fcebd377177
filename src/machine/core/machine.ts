import type { Arena, Region } from '../../arena/memory/arena.ts'
import { KernelThread } from '../../arena/sync/thread.ts'
import { CpuRecord, cpuRecord, isActive, setActive } from './cpurecord.ts'
import { kickCpu } from './halt.ts'
import { isMail } from './mail.ts'
import { armSlice, disarmSlice } from '../timekeeper/timekeeper.ts'

/**
 * A machine is the hardware of the kernel: CPUs that start, stop and die; a clock; kick (the interrupt from
 * one CPU to another); halt; the tick. Kernel code is the same on all of them.
 *
 *   real       nodemachine.ts, webmachine.ts: CPUs are worker threads or Web Workers, time is real
 *   simulated  simulatedmachine.ts: CPUs take turns in one thread, time is virtual, a seed makes every choice
 *
 * A `Machine` is the controller's side: one object, on the thread that created the machine. A `Cpu` is the
 * CPU's own side.
 */
export interface Machine {
  readonly arena: Arena
  readonly region: Region
  readonly cpus: number
  /** Milliseconds since the machine was created; never goes back. */
  now(): number
  isActive(cpu: number): boolean
  /** Makes the CPU search for work, from any thread. Makes a system call only if the CPU is halted. */
  kick(cpu: number): void
  /** Starts a CPU that is offline. Resolves when it runs its program. */
  start(cpu: number): Promise<void>
  /** Asks the CPU's program to end. Resolves when its thread is gone. */
  stop(cpu: number): Promise<void>
  /** Ends the CPU in the middle of any instruction. Its death is reported like any other. */
  terminate(cpu: number): Promise<void>
  /**
   * Whether the CPU's thread is gone, for a caller that waits for it and cannot return to its event loop. Not
   * every machine can tell.
   */
  isGone?(cpu: number): boolean
  /** Sends a message to a CPU that runs or is being started. */
  post?(cpu: number, message: unknown, transfer?: readonly object[]): void
  /** Called for each message that a CPU sends: mail, or a message of the program (mail.ts). */
  onMessage?(listener: (cpu: number, message: unknown) => void): void
  /**
   * The stack of the CPU's thread, innermost line first, even if the CPU does not answer; null: not
   * available.
   */
  stackOf?(cpu: number): Promise<readonly string[] | null>
  /** Called for each CPU whose thread ends before its program returns. */
  onDeath(listener: (death: CpuDeath) => void): void
  /** Ends every CPU and the timekeeper. */
  close(): Promise<void>
}

export interface CpuDeath {
  readonly cpu: number
  readonly reason: 'terminated' | 'exited' | 'out of memory' | 'uncaught error'
  readonly exitCode: number
  /** For 'out of memory' and 'uncaught error': the thrown value. */
  readonly error?: unknown
}

/** The requests that a program yields to its machine. */
export const STEP = 0
export const HALT = 1
export const TURN = 2
export const MICROTASKS = 3
export type CpuRequest = typeof STEP | typeof HALT | typeof TURN | typeof MICROTASKS

/**
 * The program of a CPU: the scheduler loop, or that of a test. It yields
 *   STEP        after each unit of work if `cpu.stepwise`: other CPUs take their turns (simulated)
 *   HALT        when it has no work: sleeps until a kick or `cpu.haltUntil`
 *   TURN        to run the event loop once: messages, timers, I/O
 *   MICROTASKS  to run the reactions of settled promises, and nothing else of the event loop
 * and returns when `cpu.stopRequested` is set and it is done. The same generator runs on every machine.
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
  /** When the next HALT ends without a kick, in the machine's time. */
  haltUntil: number = Infinity
  /**
   * Counts the starts and deaths of this CPU. On a simulated machine the heap of a dead CPU lives on: objects
   * there compare this count.
   */
  lives = 0
  /**
   * The number of I/O operations that this CPU's tasks wait for: while it is above 0, a halt runs the event
   * loop.
   */
  outstanding = 0
  /**
   * The event loop turns once before the CPU next sleeps or ends: the engine finds promises that were left
   * rejected only there.
   */
  turnsFirst = false

  constructor(arena: Arena, region: Region, id: number, stepwise: boolean) {
    this.arena = arena
    this.i32 = arena.i32
    this.region = region
    this.id = id
    this.record = cpuRecord(region, id)
    this.thread = new KernelThread(arena, id)
    this.stepwise = stepwise
  }

  /** Milliseconds since the machine was created. */
  abstract now(): number

  /** Accounts for work that takes time only on a simulated CPU. */
  abstract charge(ms: number): void

  kick(cpu: number): void {
    kickCpu(this.i32, cpuRecord(this.region, cpu))
  }

  /** Raises `needResched` on a CPU and makes sure that the CPU reads it. */
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

  /** Sends a message to the thread that created the machine (mail.ts). */
  post(_message: unknown, _transfer?: readonly object[]): void {
    throw new Error('this machine cannot send messages; use NodeMachine or WebMachine')
  }

  /** Receives pending messages without a turn of the event loop, if the platform can. */
  poll(): void {}

  /** Called for each message from the thread that created the machine. */
  onMail: (message: unknown) => void = () => undefined

  /** Handles a message to this CPU's thread: mail, or a message of the program. */
  receive(message: unknown): void {
    if (!isMail(message)) return
    Atomics.sub(this.i32, this.record + CpuRecord.mail, 1)
    this.onMail(message.heddleMail)
  }

  /** Whether messages wait in the event loop's queue: the program should yield TURN. */
  get mailPending(): boolean {
    return Atomics.load(this.i32, this.record + CpuRecord.mail) !== 0
  }

  /** Whether tasks may be placed on this CPU from now on. */
  setActive(active: boolean): void {
    setActive(this.i32, this.region, this.id, active)
  }

  isActive(cpu: number): boolean {
    return isActive(this.i32, this.region, cpu)
  }
}
