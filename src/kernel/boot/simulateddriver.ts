import type { SimulatedMachine } from '../../machine/simulated/simulatedmachine.ts'
import { runDefaults, type Stepper } from './rundefaults.ts'
import { turn } from '../cpu/eventloopturn.ts'
import type { VirtualTimers } from './virtualtimers.ts'

/** Steps between two turns of the event loop, in which the program's code outside of tasks runs. */
const STEPS_PER_TURN = 4096

/** Turns without work before the driver waits for real time to pass. */
const QUIET_TURNS = 64

/**
 * Runs a simulated machine whenever it has work. The program's own code runs between two stretches of
 * STEPS_PER_TURN steps each, so its view depends only on the seed.
 */
export class SimulatedDriver {
  private readonly machine: SimulatedMachine
  private readonly afterSteps: () => void
  private readonly hasNews: () => boolean
  private readonly timers: VirtualTimers | undefined
  private readonly stepper: Stepper | undefined
  private isRunning = false
  private isKicked = false
  private isClosed = false
  private wakeUp: (() => void) | null = null

  /** `hasNews`: a task has ended, and its joiner must learn that now, not later in virtual time. */
  constructor(machine: SimulatedMachine, afterSteps: () => void, hasNews: () => boolean) {
    this.machine = machine
    this.afterSteps = afterSteps
    this.hasNews = hasNews
    this.timers = runDefaults()?.timers
    this.stepper = runDefaults()?.stepper
    this.timers?.follow(machine)
  }

  /** The machine may have work. */
  kick(): void {
    this.isKicked = true
    this.wakeUp?.()
    if (!this.isRunning && !this.isClosed) void this.drive()
  }

  close(): void {
    this.isClosed = true
    this.timers?.follow(null)
  }

  private async drive(): Promise<void> {
    this.isRunning = true
    let quiet = 0
    await turn()
    while (!this.isClosed) {
      if (this.stepper !== undefined) await this.stepper.next(this.machine)
      this.isKicked = false
      const before = this.machine.steps
      const until = this.timers?.next ?? Infinity
      const end = this.machine.run({ steps: STEPS_PER_TURN, until, stopWhen: this.mustStop })
      const after = this.machine.steps
      this.afterSteps()
      if (this.timers !== undefined) {
        const quiet = end === 'idle' || end === 'time'
        if (quiet && !this.isKicked && until !== Infinity) this.machine.pass(until)
        this.timers.fire(false)
      }
      if (quiet > QUIET_TURNS) await this.rest()
      await turn()
      quiet = this.machine.steps === before ? quiet + 1 : 0
      // A kick that starts a CPU takes its first steps: a machine that made steps since is not idle.
      const isIdle = end === 'idle' && this.machine.steps === after
      if (isIdle && !this.isKicked && !this.waitsForOutside() && this.timers?.pending !== true) break
    }
    this.isRunning = false
    if (this.isKicked) this.kick()
  }

  private readonly mustStop = (): boolean => {
    const isOver = this.stepper?.isOver(this.machine) === true
    return this.hasNews() || isOver
  }

  /** Lets some real time pass, unless there is work: that happens in the next turn. */
  private async rest(): Promise<void> {
    if (this.isKicked) return
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, 1)
      this.wakeUp = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.wakeUp = null
  }

  private waitsForOutside(): boolean {
    for (let cpu = 0; cpu < this.machine.cpus; cpu++) if (this.machine.cpu(cpu).outstanding > 0) return true
    return false
  }
}
