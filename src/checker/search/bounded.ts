import type { Ended, Explorer } from './explorer.ts'
import type { Machine } from '../machine/machine.ts'
import type { Setup } from '../machine/program.ts'
import { nthThread } from './random.ts'

/**
 * Explores each schedule with a limited number of preemptions: switches away from a thread that could go on.
 * Most bugs need one or two. There is no partial-order reduction, which does not combine well with such a
 * bound.
 *
 * At each depth the choices are tried in order: first the running thread, then the others by number. `next`
 * holds the position of the next choice.
 */
export class PreemptionBounded implements Explorer {
  private readonly machine: Machine
  private readonly setup: Setup
  private readonly stepsMax: number
  readonly bound: number
  private choice = new Int32Array(256)
  private choices = new Int32Array(256)
  private length = 0
  private started = false
  readonly common: number = 0
  ended: Ended = 'complete'
  /** A schedule with more preemptions was left out, or a schedule was too long. */
  truncated: boolean = false

  constructor(machine: Machine, setup: Setup, stepsMax: number, bound: number) {
    this.machine = machine
    this.setup = setup
    this.stepsMax = stepsMax
    this.bound = bound
    machine.spin.stopsForGood = false
  }

  execute(): void {
    const { machine } = this
    this.started = true
    machine.begin(this.setup)
    this.ended = 'complete'
    let previous = -1
    let preemptions = 0
    let depth = 0
    for (; machine.enabled !== 0; depth++) {
      if (depth >= this.stepsMax) {
        this.ended = 'truncated'
        this.truncated = true
        break
      }
      if (depth === this.choice.length) this.grow()
      const { enabled } = machine
      const goesOn = previous >= 0 && ((enabled >>> previous) & 1) !== 0
      const others = goesOn ? enabled & ~(1 << previous) : enabled
      const mayPreempt = !goesOn || preemptions < this.bound
      let count = goesOn ? 1 : 0
      if (mayPreempt) for (let rest = others; rest !== 0; rest &= rest - 1) count++
      else if (others !== 0) this.truncated = true
      if (depth >= this.length) this.choice[depth] = 0
      this.choices[depth] = count
      const choice = this.choice[depth]
      const thread = goesOn
        ? choice === 0
          ? previous
          : nthThread(others, choice - 1)
        : nthThread(others, choice)
      if (goesOn && thread !== previous) preemptions++
      machine.step(thread)
      previous = thread
    }
    this.length = depth
    while (this.length > 0 && this.choice[this.length - 1] + 1 >= this.choices[this.length - 1]) this.length--
    if (this.length > 0) this.choice[this.length - 1]++
  }

  get hasMore(): boolean {
    return !this.started || this.length > 0
  }

  get fraction(): number {
    let done = 0
    let share = 1
    for (let depth = 0; depth < this.length; depth++) {
      done += (share * this.choice[depth]) / this.choices[depth]
      share /= this.choices[depth]
    }
    return this.hasMore ? done : 1
  }

  private grow(): void {
    for (const name of ['choice', 'choices'] as const) {
      const bigger = new Int32Array(this[name].length * 2)
      bigger.set(this[name])
      if (name === 'choices') this.choices = bigger
      else this.choice = bigger
    }
  }
}
