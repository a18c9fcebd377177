import { Awaits } from './awaits.ts'
import { PreemptionBounded } from './bounded.ts'
import { DataRaces } from './datarace.ts'
import { asCheckError, CheckError } from '../errors.ts'
import { Explored, type ExploredShape } from './explored.ts'
import type { Explorer } from './explorer.ts'
import { type Failure, judge } from '../report/failure.ts'
import { Guards } from '../machine/guards.ts'
import { Machine, TURNS_MAX } from '../machine/machine.ts'
import { CRASHED } from '../machine/threadstates.ts'
import { requireJudged, type Setup } from '../machine/program.ts'
import { BeginAgain, Memory } from '../machine/memory.ts'
import { Optimal, type Root } from './optimal.ts'
import { type CheckOptions, validateOptions } from '../run/options.ts'
import { type CrashPlans, crashPlans } from './plans.ts'
import { formatOutcome, isExpected, notExpected, type OutcomeCount, Outcomes } from '../spec/outcomes.ts'
import { pending, siteName } from '../machine/pending.ts'
import { FairTail, Follow, Pct, RandomWalk, RoundRobin } from './sampling.ts'
import { type Crash, parseSchedule } from '../machine/schedule.ts'
import { reordered, runReordered } from './reordered.ts'
import { runSetup } from '../machine/setup.ts'
import { verdict } from './verdict.ts'

/** The result of a search. */
export interface CheckResult {
  readonly name: string
  readonly ok: boolean
  /** Every interleaving was covered (within the crash points). If false, `why` says what was left out. */
  readonly complete: boolean
  readonly why: string
  /** `incomplete`: there was no failure, and not everything was covered. */
  readonly outcome: 'passed' | 'failed' | 'incomplete'
  readonly explorer: string
  /** Executions that ran to their end, each a different trace in an exhaustive search. */
  readonly executions: number
  /** Executions that were abandoned because others cover them. */
  readonly redundant: number
  /** Operations performed, replays included. */
  readonly steps: number
  /** The longest execution. */
  readonly depth: number
  readonly seconds: number
  /** The fraction that is done, from 0 to 1: an estimate until the search is over. */
  readonly fraction: number
  /** pct: a lower bound for the probability that the search finds a bug of the requested depth. */
  readonly probability: number | undefined
  readonly failure: Failure | undefined
  readonly threads: readonly string[]
  /** The results of the final assertion, over all executions. */
  readonly outcomes?: readonly OutcomeCount[]
  /** The result comes from an earlier run with the same inputs. */
  readonly remembered?: boolean
}

/** A part of a split search: the numbering of cells, the deaths, and the start of its executions. */
export interface SearchPart {
  readonly shift: number
  readonly mixed: readonly number[]
  readonly crashes: readonly Crash[]
  readonly root: Root | undefined
  /** Cells that do not fit awaits.ts, and cells for which the split relies on awaits.ts. */
  readonly unfit?: readonly number[]
  readonly waits?: readonly number[]
  /** The number of executions that all parts together may still run: one word, counted down. */
  readonly budget?: Int32Array<SharedArrayBuffer> | undefined
}

const now: () => number = performance.now.bind(performance)

/** A search over one check, in slices: `run` goes on until it is over or the time is up. */
export class Search {
  readonly name: string
  readonly options: CheckOptions
  readonly setup: Setup
  private memory: Memory
  private guards: Guards
  private machine: Machine
  private explorer: Explorer | undefined
  private races: DataRaces | undefined
  /** Whether the previous execution was searched for data races to its end. */
  private racesSeen = false
  private readonly awaits: Awaits
  /** The counts at the start of the current plan of deaths. */
  private before = { executions: 0, redundant: 0 }
  private plans: CrashPlans | undefined
  private crashes: readonly Crash[] = []
  private crashHappened = false
  private executions = 0
  private redundant = 0
  private runs = 0
  private depth = 0
  private steps = 0
  private elapsed = 0
  private truncated = ''
  /** Executions that were cut at the step limit. */
  private cut = 0
  private rested = false
  /** The first code that ran in a thread and that the checker does not know. */
  private unseen = ''
  private bounded = ''
  private failure: Failure | undefined
  private over = false
  private rehearsed = false
  private reuse = true
  /** Runs executions in another order. */
  private second: Machine | undefined

  private readonly outcomes = new Outcomes()
  private readonly explored = new Explored()
  private readonly part: SearchPart | undefined

  constructor(name: string, options: CheckOptions, setup: Setup, part?: SearchPart) {
    validateOptions(options)
    this.part = part
    this.name = name
    this.options = options
    this.setup = () => runSetup(this.guards, setup)
    this.memory = part === undefined ? new Memory(3) : new Memory(part.shift, new Set(part.mixed))
    this.awaits = new Awaits(part?.unfit, part?.waits)
    this.guards = new Guards(this.memory)
    this.machine = new Machine(this.memory)
    this.machine.turns = this.turns
  }

  /** Explores for about `budget` milliseconds. True when the search is over. */
  run(budget: number = Number.POSITIVE_INFINITY): boolean {
    const started = now()
    this.guards.install()
    pending.unseen = undefined
    try {
      for (;;) {
        try {
          this.explore(started, budget)
          break
        } catch (error) {
          if (!(error instanceof BeginAgain) || (this.part !== undefined && this.isNew(error))) throw error
          this.restart(error)
        }
      }
    } finally {
      this.guards.remove()
      if (this.unseen === '') this.unseen = pending.unseen ?? ''
      this.elapsed += now() - started
    }
    return this.over
  }

  get result(): CheckResult {
    const { explorer } = this
    const whole = this.options.explorer === undefined || this.options.explorer === 'exhaustive'
    const sampled = explorer instanceof PreemptionBounded && !explorer.truncated ? '' : this.limitOf(explorer)
    const why = [
      this.failure !== undefined && !this.options.keepGoing ? 'it stopped at the failure' : '',
      this.over || this.bounded !== '' ? this.bounded : 'it was interrupted',
      this.truncated,
      this.unseen,
      this.rested
        ? `a thread that turned more than ${this.turns} times in a row in a loop that only reads shared memory and changes private state had to wait for the others: raise \`turns\` if the loop ends by itself, or let a turn change nothing`
        : '',
      whole ? '' : sampled,
    ].filter(text => text !== '')
    return {
      name: this.name,
      ...verdict(this.failure !== undefined, why),
      explorer: this.options.explorer ?? 'exhaustive',
      executions: this.executions,
      redundant: this.redundant,
      steps: this.steps + this.machine.steps,
      depth: this.depth,
      seconds: this.elapsed / 1000,
      fraction: this.over ? 1 : (explorer?.fraction ?? 0),
      probability: explorer instanceof Pct ? explorer.probability : undefined,
      failure: this.failure,
      threads: this.machine.names,
      ...(this.options.expectOutcomes === undefined ? {} : { outcomes: this.outcomes.list }),
    }
  }

  /** The lengths of the executions so far, and where they branched off. */
  get shape(): ExploredShape {
    return this.explored.shape
  }

  private get turns(): number {
    return this.options.turns ?? TURNS_MAX
  }

  /** Whether the deaths of the plan happened in an execution. */
  get happened(): boolean {
    return this.crashHappened
  }

  /** A machine for recordings and shrinking. Its executions need `withGuards` around them. */
  extraMachine(): Machine {
    const machine = new Machine(this.memory)
    machine.names = this.machine.names
    machine.turns = this.turns
    machine.reuse = false
    // The other machine changes memory, so the search's own machine must run the set-up again.
    this.machine.forget()
    return machine
  }

  withGuards<T>(body: () => T): T {
    this.guards.install()
    try {
      return body()
    } finally {
      this.guards.remove()
    }
  }

  /** Runs a schedule on another machine and judges it. */
  tryOut(machine: Machine, explorer: Explorer, crashes: readonly Crash[]): Failure | undefined {
    machine.crashAt.fill(-1)
    for (const { thread, step } of crashes) machine.crashAt[thread] = step
    explorer.execute()
    const races = this.options.races === false ? undefined : new DataRaces(machine.log, machine.threads)
    const { ended } = explorer
    const failure = judge(machine, ended, races, 0, crashes)
    return failure ?? (ended === 'complete' ? this.unexpected(machine, crashes) : undefined)
  }

  private limitOf(explorer: Explorer | undefined): string {
    if (explorer instanceof PreemptionBounded)
      return `only schedules with at most ${explorer.bound} preemptions were tried`
    if (explorer instanceof Pct) return `${explorer.runs} random schedules were tried`
    if (explorer instanceof RandomWalk) return `${explorer.runs} random schedules were tried`
    if (explorer instanceof RoundRobin) return 'one schedule was tried, round robin'
    return 'one schedule was replayed'
  }

  /** Whether all parts of the search must begin again with this knowledge. */
  private isNew({ shift, mixed }: BeginAgain): boolean {
    return shift !== this.memory.shift || mixed !== undefined
  }

  /** Starts the search again. Only the count of steps is kept. */
  private restart(again: BeginAgain): void {
    if (!this.isNew(again)) this.reuse = false
    this.renumber(again)
    this.explorer = undefined
    this.races = undefined
    this.plans = undefined
    this.executions = 0
    this.redundant = 0
    this.runs = 0
    this.truncated = ''
    this.cut = 0
    this.rested = false
    this.outcomes.clear()
    this.explored.clear()
  }

  /**
   * Numbers the cells again, as `again` says. Call it inside `run` or `withGuards`. Machines that were made
   * before must not be used any more.
   */
  renumber({ shift, mixed }: BeginAgain): void {
    const { names, steps } = this.machine
    this.steps += steps
    if (shift !== this.memory.shift || mixed !== undefined) this.awaits.renumbered()
    // Reset memory that the check did not make, for the next `Memory`.
    this.memory.begin()
    this.guards.remove()
    this.memory = new Memory(shift, mixed)
    this.guards = new Guards(this.memory)
    this.guards.install()
    this.machine = new Machine(this.memory)
    this.machine.names = names
    this.machine.turns = this.turns
    this.machine.reuse = this.reuse
    this.second = undefined
  }

  private explore(started: number, budget: number): void {
    const { options } = this
    const together = this.part?.budget
    const limit =
      together === undefined ? (options.executions ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY
    const time = options.time ?? Number.POSITIVE_INFINITY
    let check = 0
    while (!this.over) {
      if (this.explorer === undefined || !this.explorer.hasMore) {
        if (!this.nextPlan()) {
          this.over = true
          this.requireSomething()
          break
        }
      }
      if (together !== undefined && Atomics.sub(together, 0, 1) <= 0) {
        this.bounded = `it was to stop after ${options.executions} executions`
        this.over = true
        break
      }
      this.runOnce(this.explorer as Explorer)
      if (this.failure !== undefined && !options.keepGoing) this.over = true
      if (this.runs >= limit && !this.over && this.hasMore) {
        this.bounded = `it was to stop after ${options.executions} executions`
        this.over = true
      }
      if ((++check & 15) !== 0) continue
      const spent = now() - started
      if (this.elapsed + spent > time && this.hasMore) {
        this.bounded = `it was to stop after ${time} ms`
        this.over = true
      }
      if (spent > budget) break
    }
  }

  /** Throws when a finished search has explored nothing. */
  private requireSomething(): void {
    if (this.part !== undefined || this.failure !== undefined) return
    throwUnlessSomething(this.executions, this.steps + this.machine.steps, this.options.steps ?? STEPS_MAX)
  }

  private get hasMore(): boolean {
    return this.explorer?.hasMore === true || (this.options.crashes !== undefined && this.crashHappened)
  }

  /** Runs one execution, judges it, and runs it a second time to see that it does the same. */
  private runOnce(explorer: Explorer): void {
    const { machine, options } = this
    explorer.execute()
    const { ended } = explorer
    this.runs++
    if (pending.refusal !== undefined) throw asCheckError(pending.refusal)!
    if (machine.diverged >= 0) throw this.nondeterminism()
    if (ended === 'again') {
      this.executions = this.before.executions
      this.redundant = this.before.redundant
      this.racesSeen = false
      return
    }
    const { length } = machine.log
    if (length > this.depth) this.depth = length
    this.explored.note(
      length,
      explorer.common,
      explorer.common < length ? machine.log.site[explorer.common] : -1,
    )
    const mayRace = machine.plainSeen || machine.memory.mixed.size > 0
    if (mayRace && this.races === undefined && options.races !== false) {
      this.races = new DataRaces(machine.log, machine.threads)
    }
    const died = this.crashes.every(({ thread }) => machine.status[thread] === CRASHED)
    if (died) this.crashHappened = true
    if (ended === 'redundant' || ended === 'asleep') this.redundant++
    else if (died && ended === 'complete') this.executions++
    const failure = judge(machine, ended, this.races, this.racesSeen ? explorer.common : 0, this.crashes)
    this.racesSeen = this.races !== undefined && failure === undefined
    if (ended === 'complete' && machine.final !== undefined && failure === undefined)
      requireJudged(machine.outcome, options.expectOutcomes !== undefined)
    if (failure !== undefined) {
      this.failure ??= failure
      return
    }
    if (ended === 'complete' && died && options.expectOutcomes !== undefined) {
      const { outcome } = machine
      if (outcome !== undefined || options.onlyOutcomes === true) this.outcomes.add(outcomeOf(machine))
      this.failure ??= this.unexpected(machine, this.crashes)
    }
    if (options.rerun !== false) this.failure ??= this.runAgain(explorer, died)
    if (machine.spin.rested) this.rested = true
    if (ended === 'truncated') this.lookForLivelock()
  }

  /** The failure of an execution that ended with an unexpected outcome. */
  private unexpected(machine: Machine, crashes: readonly Crash[]): Failure | undefined {
    const { expectOutcomes, onlyOutcomes } = this.options
    if (onlyOutcomes !== true || expectOutcomes === undefined) return undefined
    const { log } = machine
    const text = formatOutcome(outcomeOf(machine))
    if (isExpected(expectOutcomes, text)) return undefined
    return {
      kind: 'unexpected-outcome',
      title: notExpected(text),
      detail: [],
      schedule: { threads: Array.from(log.thread.subarray(0, log.length)), crashes },
      marked: [],
      error: undefined,
    }
  }

  /**
   * Runs the execution a second time, from the set-up on: in the same order, or, where its threads may share
   * more than memory, in another order of the same trace. Returns the failure of that other order.
   */
  private runAgain(explorer: Explorer, died: boolean): Failure | undefined {
    const { machine } = this
    const { spin } = machine
    const usual = explorer.ended === 'complete' && died && !spin.any && !spin.rested
    if (!(explorer instanceof Optimal) || !usual || !machine.mayShareMore) {
      this.rerun()
      return undefined
    }
    const few = this.executions <= BOTH_ORDERS_MAX
    for (const backwards of few ? [true, false] : [this.executions % 2 === 0]) {
      const failure = this.runInOrder(reordered(machine, explorer.order, backwards), backwards)
      if (failure !== undefined) return failure
    }
    return undefined
  }

  /** Runs the events of the last execution in this order. */
  private runInOrder(order: Int32Array, backwards: boolean): Failure | undefined {
    const { machine } = this
    const second = (this.second ??= this.extraMachine())
    machine.forget()
    second.backwards = backwards
    second.spin.stopsForGood = true
    second.crashAt.set(machine.crashAt)
    const different = runReordered(machine, second, order, this.setup)
    this.steps += order.length
    if (different < 0) {
      const failure = judge(second, 'complete', undefined, 0, this.crashes)
      if (failure !== undefined && this.isRepeated(failure)) return failure
      const alike =
        this.options.expectOutcomes === undefined ||
        formatOutcome(second.outcome) === formatOutcome(machine.outcome)
      if (failure === undefined && alike) return undefined
    }
    // Code that differs in the same order too is the simpler mistake.
    this.rerun()
    throw this.sharesMore(different)
  }

  /** Whether the schedule of this failure fails again. It lacks the order of the threads' starts. */
  private isRepeated({ kind, schedule }: Failure): boolean {
    const machine = this.extraMachine()
    const follow = new Follow(machine, this.setup, this.options.steps ?? STEPS_MAX, schedule.threads)
    return this.tryOut(machine, follow, schedule.crashes)?.kind === kind
  }

  private sharesMore(at: number): Error {
    const { log, names, reuse } = this.machine
    if (reuse) return new BeginAgain(this.memory.shift)
    const what =
      at < 0
        ? 'it ended differently'
        : at === log.length
          ? 'its threads ended differently'
          : `${names[log.thread[at]]} did something else at ${siteName(log.site[at])}`
    return new CheckError(
      'ERR_CHECK_NONDETERMINISTIC',
      `threads share a variable or an object: in another order of steps that do not depend on one another, ${what}. ` +
        'The checker explores only the orders of accesses to shared memory. Let threads share nothing else, and return what a thread has seen as its result',
    )
  }

  /** Runs the same schedule again, from the set-up on. */
  private rerun(): void {
    const { machine } = this
    const { length } = machine.log
    const { enabled } = machine
    // The first executions run from a set-up of their own.
    if (this.runs <= FRESH_RUNS) machine.forget()
    machine.begin(this.setup)
    machine.replay(length)
    if (machine.diverged < 0 && machine.enabled !== enabled) machine.diverged = length - 1
    if (machine.diverged >= 0) throw this.nondeterminism()
  }

  /** Runs the set-up and each thread up to its first operation, twice: both must do the same. */
  private rehearse(): void {
    this.rehearsed = true
    const { machine, memory } = this
    const first = machine.rehearse(this.setup)
    const contents = memory.contents()
    const second = machine.rehearse(this.setup)
    const again = memory.contents()
    const isSame =
      first === second &&
      contents.length === again.length &&
      contents.every((bytes, n) => bytes.every((byte, at) => byte === again[n]![at]))
    if (isSame) return
    throw new CheckError(
      'ERR_CHECK_NONDETERMINISTIC',
      'the set-up did something else the second time: it must make the same memory with the same contents, and the same threads. Keep no state of an earlier execution, and use no clock and no randomness',
    )
  }

  private nondeterminism(): Error {
    // A final assertion may have changed state that the bodies use: begin again, with a set-up before each
    // execution.
    if (this.machine.reuse) return new BeginAgain(this.memory.shift)
    const { log, diverged, names } = this.machine
    const at = Math.max(0, diverged)
    return new CheckError(
      'ERR_CHECK_NONDETERMINISTIC',
      `the same schedule ran differently the second time, at step ${at + 1}: ${names[log.thread[at]]} was to be at ${siteName(log.site[at])}. ` +
        'A check must depend on nothing but its schedule: create all changing state in the set-up, and use no clock, no randomness and no state of an earlier execution',
    )
  }

  private lookForLivelock(): void {
    const limit = this.options.steps ?? STEPS_MAX
    this.truncated = `executions of more than ${limit} steps were cut off`
    // Each test for a livelock is as long as two executions. If the first ones find none, the search goes on
    // without.
    if (++this.cut > LIVELOCK_TESTS_MAX) return
    const machine = this.extraMachine()
    const { log } = this.machine
    const tail = new FairTail(machine, this.setup, 2 * limit, Array.from(log.thread.subarray(0, log.length)))
    const failure = this.tryOut(machine, tail, this.crashes)
    if (failure !== undefined) {
      this.failure ??= failure
      return
    }
    if (tail.ended !== 'truncated') return
    const { length } = machine.log
    const threads = Array.from(machine.log.thread.subarray(0, length))
    const busy = new Set(threads.slice(limit))
    this.failure ??= {
      kind: 'livelock',
      title: `livelock: after ${length} steps, the last ${length - limit} of them in turns, ${[...busy].map(t => machine.names[t]).join(', ')} still run`,
      detail: [
        'Every thread got its turns, and none ended. If the check is only long, raise `steps`; if a loop has no end, bound it.',
      ],
      schedule: { threads, crashes: this.crashes },
      marked: [],
      error: undefined,
    }
  }

  private nextPlan(): boolean {
    const { machine, options } = this
    if (this.plans === undefined) {
      // The number of threads is known only after the set-up.
      if (options.rerun !== false && this.part === undefined && !this.rehearsed) this.rehearse()
      machine.begin(this.setup)
      this.plans = crashPlans(machine, options)
      this.crashHappened = true
    }
    if (this.part !== undefined && this.explorer !== undefined) return false
    const plan = this.plans.next(this.crashHappened)
    if (plan === undefined) return false
    this.crashes = this.part?.crashes ?? plan
    this.crashHappened = false
    if (options.explorer === 'replay') this.crashes = parseSchedule(options.schedule as string).crashes
    machine.crashAt.fill(-1)
    for (const { thread, step } of this.crashes) machine.crashAt[thread] = step
    this.explorer = this.makeExplorer()
    this.before = { executions: this.executions, redundant: this.redundant }
    this.racesSeen = false
    return true
  }

  private makeExplorer(): Explorer {
    const { machine, setup, options } = this
    const steps = options.steps ?? STEPS_MAX
    const runs = options.runs ?? 1000
    const seed = options.seed ?? 1
    switch (options.explorer ?? 'exhaustive') {
      case 'exhaustive':
        return new Optimal(machine, setup, steps, this.part?.root, this.awaits)
      case 'preemption-bounded':
        return new PreemptionBounded(machine, setup, steps, options.preemptions ?? 2)
      case 'pct':
        return new Pct(machine, setup, steps, runs, seed, options.depth ?? 3)
      case 'random':
        return new RandomWalk(machine, setup, steps, runs, seed)
      case 'round-robin':
        return new RoundRobin(machine, setup, steps, options.quantum ?? 1)
      case 'replay':
        return new Follow(machine, setup, steps, parseSchedule(options.schedule as string).threads)
    }
  }
}

/** The outcome where each one counts: also that `final`, or all threads, returned undefined. */
function outcomeOf({ outcome, final, results }: Machine): unknown {
  return outcome === undefined && final === undefined ? results : outcome
}

export const STEPS_MAX = 5000
const LIVELOCK_TESTS_MAX = 16
const FRESH_RUNS = 2
/** So many executions run again in both orders of reordered.ts, later ones in one of them. */
const BOTH_ORDERS_MAX = 100

/** Throws when a search has run no execution to its end, or none that touches shared memory. */
export function throwUnlessSomething(executions: number, steps: number, limit: number): void {
  if (steps === 0) {
    throw new CheckError(
      'ERR_CHECK_NOTHING',
      'no thread of the check touches shared memory, so there is nothing to explore; let the threads use memory that the set-up makes',
    )
  }
  if (executions > 0) return
  throw new CheckError(
    'ERR_CHECK_NOTHING',
    `no execution of the check ended: all were longer than ${limit} steps; make the check smaller, bound its loops, or raise \`steps\``,
  )
}
