import { endsWithin } from '../../machine/timekeeper/alarm.ts'
import { activeJobs } from './counters.ts'
import { startCpu, stopCpu } from './boot.ts'
import type { KernelMachine } from './machines.ts'
import { cpuAccount } from '../../sched/core/account.ts'
import { RunQueue } from '../../sched/core/runqueue.ts'
import { isIdle } from '../../sched/core/selectcpu.ts'
import type { KernelView } from './view.ts'

/**
 * The CPUs of the machine. A kernel's arena has room for its maximum; this class starts and ends them.
 * Booting thread only. The state of each CPU:
 *
 *   [0] OFF       no thread, or one that died and was not replaced       grow, start -> [1]
 *   [1] COMING    its thread was created, and takes no tasks yet         online -> [2]; died -> [0] or [1]
 *   [2] HERE      takes tasks                                            retire -> [3]; died -> [0] or [1]
 *   [3] LEAVING   takes no more tasks, and ends with the last task       its thread is gone -> [0]
 *                 bound to it
 *   [4] GIVEN UP  died too often, and is never started again             none
 *
 * For tasks a leaving CPU is like any CPU that goes offline: src/sched/balance/hotplug.ts.
 */
const OFF = 0
const COMING = 1
const HERE = 2
const LEAVING = 3
const GIVEN_UP = 4

export interface CpuSetListener {
  online(cpu: number): void
  offline(cpu: number): void
}

/** Milliseconds between two polls of idle CPUs, at most; several polls fall into the idle time of a CPU. */
const POLL_MS_MAX = 250
const POLL_MS_MIN = 5

export class CpuSet {
  private readonly view: KernelView
  private readonly machine: KernelMachine
  private readonly listener: CpuSetListener
  private min: number
  private max: number
  private readonly idle: number
  private readonly states: number[]
  /** When a CPU was first seen idle, and its count of switches then. */
  private readonly idleSince: ({ readonly at: number; readonly switches: number } | undefined)[] = []
  private timer: ReturnType<typeof setInterval> | undefined
  private isClosed = false
  private isManual = false
  /** The last `resize`, and the starts and ends that are under way. */
  private resizing: Promise<void> = Promise.resolve()
  private readonly starting: (Promise<boolean> | undefined)[] = []

  constructor(
    view: KernelView,
    machine: KernelMachine,
    { min, max, idle }: { min: number; max: number; idle: number },
    listener: CpuSetListener,
  ) {
    this.view = view
    this.machine = machine
    this.listener = listener
    this.min = min
    this.max = max
    this.idle = idle
    this.states = Array.from({ length: machine.cpus }, () => OFF)
  }

  /** Records the CPUs that the boot has started. */
  started(count: number): void {
    this.states.fill(HERE, 0, count)
  }

  /** CPUs that take tasks, or are about to. */
  get count(): number {
    let count = 0
    for (const state of this.states) if (state === COMING || state === HERE) count++
    return count
  }

  /** Whether the number of CPUs changes with the work. */
  get isElastic(): boolean {
    return this.min !== this.max && !this.isManual
  }

  /** From now on the caller starts and ends CPUs: this class starts, ends and replaces none. */
  takeOver(): void {
    this.isManual = true
  }

  isHere(cpu: number): boolean {
    return this.states[cpu] === HERE
  }

  /** Its thread was created, and takes no tasks yet. */
  isComing(cpu: number): boolean {
    return this.states[cpu] === COMING
  }

  get isAnyComing(): boolean {
    return this.states.includes(COMING)
  }

  /** The CPUs whose threads were created, and take no tasks yet. */
  coming(): number[] {
    const coming: number[] = []
    for (let cpu = 0; cpu < this.states.length; cpu++) if (this.states[cpu] === COMING) coming.push(cpu)
    return coming
  }

  /**
   * Starts one more CPU, if the maximum allows it. Returns its number; -1: the maximum is reached, or the
   * last CPU is still leaving.
   */
  grow(): number {
    if (this.isClosed || this.count >= this.max) return -1
    const cpu = this.states.indexOf(OFF)
    if (cpu >= 0) void this.start(cpu)
    return cpu
  }

  /**
   * Creates the thread of a CPU that is OFF, before it returns. Resolves when the CPU takes tasks. A CPU that
   * dies before that goes to `died`.
   */
  start(cpu: number): Promise<boolean> {
    this.states[cpu] = COMING
    this.idleSince[cpu] = undefined
    const started = this.bringUp(cpu)
    this.starting[cpu] = started
    return started
  }

  private async bringUp(cpu: number): Promise<boolean> {
    try {
      await startCpu(this.machine, this.view.s, cpu)
    } catch {
      // The machine's listeners learn of its death, and start it again.
      return false
    }
    if (this.states[cpu] === COMING) {
      this.states[cpu] = HERE
      this.listener.online(cpu)
    }
    this.watch()
    return true
  }

  /** Ends a CPU: it takes no more tasks, and ends after the tasks that it has started. */
  async retire(cpu: number): Promise<void> {
    if (this.states[cpu] !== HERE) return
    this.states[cpu] = LEAVING
    this.listener.offline(cpu)
    await stopCpu(this.machine, cpu)
    if (this.states[cpu] === LEAVING) this.states[cpu] = OFF
    // Tasks that came while it was leaving found no free CPU number.
    this.demand()
  }

  /**
   * From now on the kernel has so many CPUs: no more, no fewer, whatever the work. Resolves when the new ones
   * take tasks and the old ones are gone. `grace`: milliseconds after which an old CPU is terminated.
   */
  resize(count: number, grace: number): Promise<void> {
    this.min = count
    this.max = count
    // One after the other: a CPU that is leaving can be started again only when it is gone.
    this.resizing = this.resizing.then(() => this.reach(count, grace))
    return this.resizing
  }

  private async reach(count: number, grace: number): Promise<void> {
    await Promise.all(this.starting)
    const changes: Promise<unknown>[] = []
    while (!this.isClosed && this.count < count) {
      const cpu = this.states.indexOf(OFF)
      if (cpu < 0) break
      changes.push(this.start(cpu))
    }
    for (let cpu = this.states.length - 1; cpu >= 0 && this.count > count; cpu--) {
      if (this.states[cpu] === HERE) changes.push(this.drain(cpu, grace))
    }
    await Promise.all(changes)
  }

  /** Ends a CPU, after `grace` milliseconds at the latest. */
  private async drain(cpu: number, grace: number): Promise<void> {
    const gone = this.retire(cpu)
    if (grace !== Infinity && !(await endsWithin(gone, grace))) await this.machine.terminate(cpu)
    await gone
  }

  /** A CPU has died, and may be started again. True: start it. */
  died(cpu: number): boolean {
    const wasLeaving = this.states[cpu] === LEAVING
    this.states[cpu] = OFF
    if (this.isClosed || wasLeaving || this.isManual) return false
    return this.count < this.min || this.isWanted()
  }

  /** Never starts a dead CPU again. */
  giveUp(cpu: number): void {
    this.states[cpu] = GIVEN_UP
  }

  /** Tasks have come: starts a CPU if no CPU is idle. */
  demand(): void {
    if (!this.isElastic || this.isClosed) return
    if (this.count < this.max && this.isWanted()) this.grow()
    this.watch()
  }

  close(): void {
    this.isClosed = true
    clearInterval(this.timer)
    this.timer = undefined
  }

  /** True: more tasks than CPUs, and no idle CPU. */
  private isWanted(): boolean {
    const { s } = this.view
    if (activeJobs(this.view) <= this.count) return false
    for (let cpu = 0; cpu < this.states.length; cpu++) {
      if (this.states[cpu] === HERE && isIdle(s, cpu) && !s.arrivals.has(cpu)) return false
    }
    return true
  }

  /** Polls while there are more CPUs than the minimum, or tasks that spawn others. */
  private watch(): void {
    if (!this.isElastic || this.timer !== undefined || this.isClosed) return
    const period = Math.max(POLL_MS_MIN, Math.min(POLL_MS_MAX, this.idle / 4))
    this.timer = setInterval(() => this.poll(), period)
    ;(this.timer as { unref?(): void }).unref?.()
  }

  private poll(): void {
    if (this.count < this.max && this.isWanted()) this.grow()
    if (this.idle !== Infinity) this.retireIdle()
    if (this.count > this.min || activeJobs(this.view) > 0) return
    clearInterval(this.timer)
    this.timer = undefined
  }

  private retireIdle(): void {
    const now = performance.now()
    for (let cpu = this.states.length - 1; cpu >= 0 && this.count > this.min; cpu--) {
      if (this.states[cpu] !== HERE) continue
      const switches = this.idleSwitches(cpu)
      const since = this.idleSince[cpu]
      if (switches < 0) this.idleSince[cpu] = undefined
      else if (since === undefined || since.switches !== switches) this.idleSince[cpu] = { at: now, switches }
      else if (now - since.at >= this.idle) void this.retire(cpu)
    }
  }

  /** The count of switches of a CPU without tasks: none runs, waits or sleeps there. -1: it has a task. */
  private idleSwitches(cpu: number): number {
    const { s, i32 } = this.view
    const queue = s.queueOf(cpu)
    if (!isIdle(s, cpu) || s.arrivals.has(cpu) || Atomics.load(i32, queue + RunQueue.bound) !== 0) return -1
    return cpuAccount(i32, queue).switches
  }
}
