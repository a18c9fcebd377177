import type { Arena, Region } from '../../arena/memory/arena.ts'
import { assert } from '../../arena/assert.ts'
import {
  CPU_DEAD,
  CPU_OFFLINE,
  CPU_ONLINE,
  CpuRecord,
  cpuCount,
  isActive,
  setActive,
} from '../core/cpurecord.ts'
import { finishHalt, HALTED, KICKED, kickCpu, prepareHalt } from '../core/halt.ts'
import { Cpu, type CpuDeath, type CpuProgram, HALT, type Machine } from '../core/machine.ts'
import { SeededRandom } from './random.ts'
import { disarmSlice, isBefore, momentOf } from '../timekeeper/timekeeper.ts'

/**
 * N virtual CPUs in one thread. Each has its own clock. At every step the seed chooses one of the CPUs that
 * are furthest behind, within `skew`, and that CPU runs its program to the next yield. So CPUs run side by
 * side in virtual time, in a random but repeatable order: the same seed gives the same trace, byte for byte.
 */
export interface SimulatedOptions {
  readonly arena: Arena
  readonly region: Region
  readonly program: CpuProgram
  readonly data?: unknown
  readonly seed: number
  /**
   * How far apart the clocks of CPUs may be, in virtual milliseconds: a larger value gives more varied
   * orders.
   */
  readonly skew?: number
  /** The cost of a step in virtual milliseconds, in addition to the time that it charges. */
  readonly stepCost?: number
  /** Keep the trace as text. Its hash is always kept. */
  readonly trace?: boolean
}

export interface RunLimits {
  /** Stop after this many steps. */
  readonly steps?: number
  /** Stop when every CPU's clock has reached this. */
  readonly until?: number
  /** Stop after a step that makes this true. */
  readonly stopWhen?: () => boolean
}

/** Why a run ended: nothing can happen any more, or a limit was reached. */
export type RunEnd = 'idle' | 'steps' | 'time' | 'stopped'

class SimulatedCpu extends Cpu {
  clock = 0
  /** The clock of the thread that kicked it out of its halt. */
  kickedAt = 0
  running: Generator<number, void, void> | undefined
  private readonly machine: SimulatedMachine

  constructor(machine: SimulatedMachine, id: number) {
    super(machine.arena, machine.region, id, true)
    this.machine = machine
  }

  override now(): number {
    return this.clock
  }

  override charge(ms: number): void {
    assert(ms >= 0, 'time does not go back')
    this.clock += ms
  }

  override kick(cpu: number): void {
    this.machine.kickFrom(this.clock, cpu)
  }
}

export class SimulatedMachine implements Machine {
  readonly arena: Arena
  readonly region: Region
  readonly cpus: number
  /** Steps taken so far. */
  steps = 0
  /** Slices that have ended by a tick. */
  ticks = 0
  private readonly options: SimulatedOptions
  private readonly all: SimulatedCpu[] = []
  private readonly random: SeededRandom
  private readonly skew: number
  private readonly stepCost: number
  private readonly listeners: ((death: CpuDeath) => void)[] = []
  private readonly deaths = new Map<number, number[]>()
  private readonly lines: string[] = []
  private hash = 0x811c_9dc5
  private readonly candidates: SimulatedCpu[] = []

  constructor(options: SimulatedOptions) {
    this.options = options
    this.arena = options.arena
    this.region = options.region
    this.cpus = cpuCount(options.region)
    this.skew = positive('skew', options.skew ?? 0.01)
    this.stepCost = positive('stepCost', options.stepCost ?? 0.001)
    this.random = new SeededRandom(options.seed)
    for (let id = 0; id < this.cpus; id++) this.all.push(new SimulatedCpu(this, id))
  }

  /** The CPU's own side, for tests. */
  cpu(id: number): Cpu {
    return this.all[id]
  }

  /** The clock of the CPU that is furthest ahead. */
  now(): number {
    return Math.max(...this.all.map(cpu => cpu.clock))
  }

  /** Moves the clocks of halted CPUs to `time`, before which nothing can happen. */
  pass(time: number): void {
    for (const cpu of this.all) {
      const halted =
        cpu.running === undefined || Atomics.load(cpu.i32, cpu.record + CpuRecord.park) === HALTED
      if (halted && cpu.haltUntil >= time) cpu.clock = Math.max(cpu.clock, time)
    }
  }

  /** A number from 0 to `limit - 1` from the seed, for the choices of a test. */
  choose(limit: number): number {
    return this.random.below(limit)
  }

  isActive(cpu: number): boolean {
    return isActive(this.arena.i32, this.region, cpu)
  }

  kick(cpu: number): void {
    this.kickFrom(this.now(), cpu)
  }

  /** @internal A kick from a thread whose clock is at `when`. */
  kickFrom(when: number, id: number): void {
    const cpu = this.all[id]
    if (kickCpu(this.arena.i32, cpu.record)) {
      cpu.kickedAt = when
      this.record('kick', id, when)
    }
  }

  start(id: number): Promise<void> {
    const cpu = this.all[id]
    const at = cpu.record + CpuRecord.state
    const was = Atomics.compareExchange(this.arena.i32, at, CPU_OFFLINE, CPU_ONLINE)
    if (was !== CPU_OFFLINE) {
      throw new Error(
        `start(${id}): CPU ${id} is running already, or has died and was not recovered; stop or recover it first`,
      )
    }
    Atomics.store(this.arena.i32, cpu.record + CpuRecord.stopRequested, 0)
    Atomics.store(this.arena.i32, cpu.record + CpuRecord.needResched, 0)
    finishHalt(this.arena.i32, cpu.record)
    cpu.haltUntil = Infinity
    cpu.outstanding = 0
    cpu.lives++
    cpu.clock = Math.max(cpu.clock, this.earliestClock())
    cpu.running = this.options.program(cpu, this.options.data)
    setActive(this.arena.i32, this.region, id, true)
    this.record('start', id, cpu.clock)
    return Promise.resolve()
  }

  /** Starts every CPU. */
  startAll(): void {
    for (let id = 0; id < this.cpus; id++) void this.start(id)
  }

  /** Asks the program to end, which it does in one of the next steps. */
  stop(id: number): Promise<void> {
    const cpu = this.all[id]
    Atomics.store(this.arena.i32, cpu.record + CpuRecord.stopRequested, 1)
    Atomics.store(this.arena.i32, cpu.record + CpuRecord.needResched, 1)
    this.kick(id)
    return Promise.resolve()
  }

  /** Kills the CPU immediately: its program runs no further. */
  terminate(id: number): Promise<void> {
    this.kill(id)
    return Promise.resolve()
  }

  kill(id: number): void {
    const cpu = this.all[id]
    if (cpu.running === undefined) return
    cpu.running = undefined
    cpu.outstanding = 0
    cpu.lives++
    Atomics.store(this.arena.i32, cpu.record + CpuRecord.state, CPU_DEAD)
    setActive(this.arena.i32, this.region, id, false)
    disarmSlice(this.arena.i32, cpu.record)
    this.record('dead', id, cpu.clock)
    for (const listener of this.listeners) listener({ cpu: id, reason: 'terminated', exitCode: 1 })
  }

  /** Kills the CPU just before step number `step`. */
  killAt(step: number, id: number): void {
    const there = this.deaths.get(step)
    if (there) there.push(id)
    else this.deaths.set(step, [id])
  }

  recovered(id: number): void {
    const at = this.all[id].record + CpuRecord.state
    const was = Atomics.compareExchange(this.arena.i32, at, CPU_DEAD, CPU_OFFLINE)
    assert(was === CPU_DEAD, 'only a dead CPU can be recovered')
  }

  onDeath(listener: (death: CpuDeath) => void): void {
    this.listeners.push(listener)
  }

  close(): Promise<void> {
    for (const cpu of this.all) cpu.running = undefined
    return Promise.resolve()
  }

  /** Runs until nothing can happen any more, or a limit is reached. */
  run(limits: RunLimits = {}): RunEnd {
    const { steps = Infinity, until = Infinity, stopWhen } = limits
    for (let taken = 0; taken < steps; taken++) {
      const dying = this.deaths.get(this.steps)
      if (dying) {
        this.deaths.delete(this.steps)
        for (const id of dying) this.kill(id)
      }
      const cpu = this.pick()
      if (cpu === undefined) return 'idle'
      const ready = readyAt(cpu)
      if (ready >= until) return 'time'
      this.step(cpu, ready)
      if (stopWhen?.()) return 'stopped'
    }
    return 'steps'
  }

  /** Adds a line of the test to the trace. */
  note(text: string): void {
    if (this.options.trace) this.lines.push(`      ${text}`)
    for (let i = 0; i < text.length; i++) this.mix(text.charCodeAt(i))
  }

  /** The trace as text: one line for each step, kick, start and death. Only with `trace: true`. */
  get trace(): string {
    return this.lines.join('\n')
  }

  /** A hash of the whole trace. */
  get traceHash(): string {
    return (this.hash >>> 0).toString(16).padStart(8, '0')
  }

  /** Chooses one of the CPUs that are furthest behind, by the seed. */
  private pick(): SimulatedCpu | undefined {
    let earliest = Infinity
    for (const cpu of this.all) earliest = Math.min(earliest, readyAt(cpu))
    if (earliest === Infinity) return undefined
    this.candidates.length = 0
    for (const cpu of this.all) if (readyAt(cpu) <= earliest + this.skew) this.candidates.push(cpu)
    return this.candidates[this.random.below(this.candidates.length)]
  }

  private step(cpu: SimulatedCpu, ready: number): void {
    const { i32 } = this.arena
    assert(cpu.running !== undefined, 'only a CPU with a program takes a step')
    cpu.clock = ready
    if (Atomics.load(i32, cpu.record + CpuRecord.park) !== 0) finishHalt(i32, cpu.record)
    cpu.haltUntil = Infinity
    this.raiseTick(cpu)
    this.steps++
    const { done, value } = cpu.running.next()
    cpu.clock += this.stepCost
    if (done) {
      cpu.running = undefined
      setActive(i32, this.region, cpu.id, false)
      disarmSlice(i32, cpu.record)
      Atomics.store(i32, cpu.record + CpuRecord.state, CPU_OFFLINE)
      this.record('done', cpu.id, cpu.clock)
      return
    }
    if (value === HALT && prepareHalt(i32, cpu.record)) this.record('halt', cpu.id, cpu.clock)
    else this.record('step', cpu.id, cpu.clock)
  }

  /**
   * The timekeeper of this machine: raises the tick when the CPU's own clock has passed the end of its slice.
   */
  private raiseTick(cpu: SimulatedCpu): void {
    const { i32 } = this.arena
    const end = Atomics.load(i32, cpu.record + CpuRecord.sliceEnd)
    if (end === 0 || isBefore(momentOf(cpu.clock), end)) return
    disarmSlice(i32, cpu.record)
    Atomics.store(i32, cpu.record + CpuRecord.needResched, 1)
    this.ticks++
    this.record('tick', cpu.id, cpu.clock)
  }

  private earliestClock(): number {
    let earliest = Infinity
    for (const cpu of this.all) if (cpu.running !== undefined) earliest = Math.min(earliest, cpu.clock)
    return earliest === Infinity ? 0 : earliest
  }

  private record(event: string, cpu: number, when: number): void {
    this.mix(event.charCodeAt(0) | (event.charCodeAt(1) << 8) | (cpu << 16))
    this.mix(Math.round(when * 1e6) | 0)
    if (this.options.trace) this.lines.push(`${this.steps} ${when.toFixed(6)} cpu${cpu} ${event}`)
  }

  private mix(value: number): void {
    this.hash = Math.imul(this.hash ^ value, 0x0100_0193)
    this.hash ^= this.hash >>> 15
  }
}

/** When the CPU can take its next step, on its own clock; Infinity: not until it is kicked. */
function readyAt(cpu: SimulatedCpu): number {
  if (cpu.running === undefined) return Infinity
  const park = Atomics.load(cpu.i32, cpu.record + CpuRecord.park)
  if (park === HALTED) return Math.max(cpu.clock, cpu.haltUntil)
  if (park === KICKED) return Math.max(cpu.clock, cpu.kickedAt)
  return cpu.clock
}

function positive(option: string, value: number): number {
  if (typeof value !== 'number' || !(value > 0) || value === Infinity) {
    throw new RangeError(`${option}: ${String(value)} is not a time; give a positive number of milliseconds`)
  }
  return value
}
