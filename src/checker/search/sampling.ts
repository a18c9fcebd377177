import type { Ended, Explorer } from './explorer.ts'
import type { Machine } from '../machine/machine.ts'
import type { Setup } from '../machine/program.ts'
import { countThreads, nthThread, Random } from './random.ts'

/** Picks the thread of the next step from the mask of those that can move. */
type Choose = (enabled: number, depth: number) => number

/** Explorers that do not cover all executions: a rule chooses the threads of each execution. */
abstract class Sampling implements Explorer {
  protected readonly machine: Machine
  protected readonly setup: Setup
  private readonly stepsMax: number
  readonly runs: number
  protected run = 0
  readonly common: number = 0
  ended: Ended = 'complete'
  truncated: boolean = false

  constructor(machine: Machine, setup: Setup, stepsMax: number, runs: number) {
    this.machine = machine
    this.setup = setup
    this.stepsMax = stepsMax
    this.runs = runs
    machine.spin.stopsForGood = false
  }

  /** The rule of one execution. Called after the threads have started. */
  protected abstract rule(): Choose

  protected finished(_length: number): void {}

  execute(): void {
    const { machine } = this
    machine.begin(this.setup)
    const choose = this.rule()
    this.ended = 'complete'
    while (machine.enabled !== 0) {
      if (machine.log.length >= this.stepsMax) {
        this.ended = 'truncated'
        this.truncated = true
        break
      }
      machine.step(choose(machine.enabled, machine.log.length))
    }
    this.run++
    this.finished(machine.log.length)
  }

  get hasMore(): boolean {
    return this.run < this.runs
  }

  get fraction(): number {
    return this.run / this.runs
  }
}

/** Chooses at each step any thread that can move, all with the same probability. */
export class RandomWalk extends Sampling {
  private readonly seed: number

  constructor(machine: Machine, setup: Setup, stepsMax: number, runs: number, seed: number) {
    super(machine, setup, stepsMax, runs)
    this.seed = seed
  }

  protected rule(): Choose {
    const random = new Random(this.seed + this.run)
    return enabled => nthThread(enabled, random.below(countThreads(enabled)))
  }
}

/**
 * Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte): threads get random
 * priorities, and the highest that can move runs. At d - 1 random steps the running thread gets the lowest
 * priority. One run finds a bug that needs d ordering constraints with a probability of at least 1 / (n
 * k^(d-1)), for n threads and k steps.
 */
export class Pct extends Sampling {
  readonly depth: number
  private readonly seed: number
  /** The longest execution so far: the k of the bound. */
  private longest = 0

  constructor(machine: Machine, setup: Setup, stepsMax: number, runs: number, seed: number, depth: number) {
    super(machine, setup, stepsMax, runs)
    this.seed = seed
    this.depth = depth
  }

  protected rule(): Choose {
    const { threads } = this.machine
    const random = new Random(this.seed + this.run)
    const priority = Array.from({ length: threads }, (_, t) => this.depth + t)
    for (let t = threads - 1; t > 0; t--) {
      const other = random.below(t + 1)
      ;[priority[t], priority[other]] = [priority[other], priority[t]]
    }
    // Before the first run the length of an execution is unknown: the first run measures it.
    const length = Math.max(this.longest, 1)
    const changes = new Map<number, number>()
    for (let i = 1; i < this.depth; i++) changes.set(random.below(length), this.depth - i)
    return (enabled, depth) => {
      let best = highest(enabled, priority)
      const fall = changes.get(depth)
      if (fall !== undefined) {
        priority[best] = fall
        best = highest(enabled, priority)
      }
      return best
    }
  }

  protected override finished(length: number): void {
    if (length > this.longest) this.longest = length
  }

  /** A lower bound for the probability that one run finds a bug of this depth. */
  get probabilityPerRun(): number {
    return 1 / (this.machine.threads * Math.max(1, this.longest) ** (this.depth - 1))
  }

  /** The same for all runs so far together. */
  get probability(): number {
    return 1 - (1 - this.probabilityPerRun) ** this.run
  }
}

function highest(enabled: number, priority: readonly number[]): number {
  let best = -1
  for (let rest = enabled; rest !== 0; rest &= rest - 1) {
    const thread = 31 - Math.clz32(rest & -rest)
    if (best < 0 || priority[thread] > priority[best]) best = thread
  }
  return best
}

/** One execution: the threads take turns of `quantum` steps each. */
export class RoundRobin extends Sampling {
  private readonly quantum: number

  constructor(machine: Machine, setup: Setup, stepsMax: number, quantum: number) {
    super(machine, setup, stepsMax, 1)
    this.quantum = quantum
  }

  protected rule(): Choose {
    let current = 0
    let used = 0
    const { threads } = this.machine
    return enabled => {
      if (used === this.quantum || ((enabled >>> current) & 1) === 0) {
        used = 0
        do current = (current + 1) % threads
        while (((enabled >>> current) & 1) === 0)
      }
      used++
      return current
    }
  }
}

/**
 * One execution along a given schedule. Skips an entry whose thread cannot move. After the last entry the
 * running thread goes on while it can, then the lowest. `refused` is the first entry that was not used.
 */
export class Follow extends Sampling {
  private readonly schedule: readonly number[]
  /** Stop when the schedule is used up. */
  private readonly stopAtEnd: boolean
  refused: RefusedEntry | undefined = undefined

  constructor(
    machine: Machine,
    setup: Setup,
    stepsMax: number,
    schedule: readonly number[],
    stopAtEnd = false,
  ) {
    super(machine, setup, stepsMax, 1)
    this.schedule = schedule
    this.stopAtEnd = stopAtEnd
  }

  override execute(): void {
    if (!this.stopAtEnd) {
      super.execute()
      return
    }
    this.machine.begin(this.setup)
    this.refused = undefined
    for (const [at, thread] of this.schedule.entries()) {
      if (((this.machine.enabled >>> thread) & 1) === 0) {
        this.refuse(at)
        break
      }
      this.machine.step(thread)
    }
    this.ended = this.machine.enabled === 0 ? 'complete' : 'truncated'
    this.run++
  }

  protected rule(): Choose {
    let at = 0
    let current = 0
    const { schedule } = this
    this.refused = undefined
    return enabled => {
      for (; at < schedule.length; at++) {
        const thread = schedule[at]
        if (((enabled >>> thread) & 1) !== 0) {
          at++
          current = thread
          return thread
        }
        this.refuse(at)
      }
      if (((enabled >>> current) & 1) === 0) current = nthThread(enabled, 0)
      return current
    }
  }

  private refuse(at: number): void {
    const thread = this.schedule[at]
    this.refused ??= { at, thread, status: this.machine.status[thread] }
  }
}

/** An entry of a schedule whose thread could not move, and the state of the thread then. */
export interface RefusedEntry {
  readonly at: number
  readonly thread: number
  readonly status: number
}

/** Follows a schedule, then runs all threads in turns: a thread that does not end then never ends. */
export class FairTail extends Sampling {
  private readonly schedule: readonly number[]

  constructor(machine: Machine, setup: Setup, stepsMax: number, schedule: readonly number[]) {
    super(machine, setup, stepsMax, 1)
    this.schedule = schedule
  }

  protected rule(): Choose {
    let last = 0
    return (enabled, depth) => {
      const wanted = this.schedule[depth]
      if (wanted !== undefined && ((enabled >>> wanted) & 1) !== 0) return wanted
      const above = enabled & (-2 << last)
      last = nthThread(above === 0 ? enabled : above, 0)
      return last
    }
  }
}
