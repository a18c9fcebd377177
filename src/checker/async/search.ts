import { CheckError } from '../errors.ts'
import type { Failure } from '../report/failure.ts'
import type { RecordedStep } from '../report/recording.ts'
import { parseSchedule } from '../machine/schedule.ts'
import type { CheckResult } from '../search/search.ts'
import { AllOrders, type AsyncExplorer, differs, GivenOrder, SomeOrders } from './choosers.ts'
import { Environment } from './environment.ts'
import { Execution, type Fault, type Limits, type Witness } from './execution.ts'
import { Endless, nodeHost, type NodeHost } from './host.ts'
import { type AsyncCheckOptions, validateAsyncOptions } from './options.ts'
import { outsideOf } from './outside.ts'
import type { AsyncSetup } from './program.ts'
import { Recording } from './recording.ts'
import { verdict } from '../search/verdict.ts'

const STEPS_MAX = 1000
const TURNS_MAX = 16
const PATIENCE_MS = 10_000
const SHRINK_MAX = 2000

const now: () => number = performance.now.bind(performance)

/**
 * A search over one asynchronous check, in slices of the event loop: `run` explores until the search or its
 * time is over.
 */
export class AsyncSearch {
  readonly name: string
  readonly options: AsyncCheckOptions
  private readonly setup: AsyncSetup
  private readonly file: string | undefined
  private readonly host: NodeHost
  private readonly environment: Environment
  private readonly explorer: AsyncExplorer
  private readonly limits: Limits
  private readonly notes = new Set<string>()
  private names: readonly string[] = []
  private failure: Failure | undefined
  private executions = 0
  private runs = 0
  private steps = 0
  private depth = 0
  private elapsed = 0
  private bounded = ''
  private over = false

  /** `file`: the file that declares the check. */
  constructor(name: string, options: AsyncCheckOptions, setup: AsyncSetup, file?: string) {
    validateAsyncOptions(options)
    this.file = file
    this.name = name
    this.options = options
    this.setup = setup
    this.host = nodeHost()
    this.environment = new Environment(this.host, options.random)
    this.limits = {
      steps: options.steps ?? STEPS_MAX,
      turns: options.turns ?? TURNS_MAX,
      starts: options.starts,
    }
    this.explorer = explorerOf(options)
  }

  /** Explores for about `budget` milliseconds. True when the search is over. */
  async run(budget: number): Promise<boolean> {
    const started = now()
    try {
      await this.environment.within(this.patience, () => {
        this.requireHost()
        do this.once()
        while (!this.over && now() - started < budget)
      })
    } catch (error) {
      if (!(error instanceof Endless)) throw error
      this.fail({ kind: 'livelock', ...endless(this.patience), error: undefined })
    } finally {
      this.elapsed += now() - started
    }
    const { time = Number.POSITIVE_INFINITY } = this.options
    if (!this.over && this.elapsed > time) {
      this.bounded = `it was to stop after ${time} ms`
      this.over = true
    }
    return this.over
  }

  get result(): CheckResult {
    const { failure, options } = this
    const why = [
      failure !== undefined && options.keepGoing !== true ? 'it stopped at the failure' : '',
      this.over || this.bounded !== '' ? this.bounded : 'it was interrupted',
      ...this.notes,
      limitOf(options),
    ].filter(text => text !== '')
    return {
      name: this.name,
      ...verdict(failure !== undefined, why),
      explorer: options.explorer ?? 'exhaustive',
      executions: this.executions,
      redundant: 0,
      steps: this.steps,
      depth: this.depth,
      seconds: this.elapsed / 1000,
      fraction: this.over ? 1 : this.explorer.fraction,
      probability: undefined,
      failure,
      threads: this.names,
    }
  }

  /**
   * The result of a finished search: its failure in the shortest order that was found, and the steps of that.
   */
  async conclude(): Promise<{ result: CheckResult; steps: RecordedStep[] }> {
    const { failure } = this
    if (failure === undefined) return { result: this.result, steps: [] }
    const found = failure.schedule.threads
    const shorter = this.options.explorer === 'replay' ? found : await this.shrink(failure)
    const recording = new Recording(this.host, this.names, failure.kind === 'deadlock', this.file)
    let fault: Fault | undefined
    try {
      fault = await this.environment.within(this.patience, () => {
        const { fault } = this.execute(new GivenOrder(shorter), recording)
        recording.end()
        return fault
      })
    } catch (error) {
      if (!(error instanceof Endless)) throw error
      recording.end()
      fault = { kind: 'livelock', ...endless(this.patience), error: undefined }
    }
    if (fault?.kind !== failure.kind) throw differs(failure.title, fault?.title ?? 'no failure')
    const detail = [...recording.waits(fault.kind), ...fault.detail]
    const threads = recording.columns(this.names)
    const schedule = { threads: shorter.length === 0 ? [0] : shorter, crashes: [] }
    return {
      result: { ...this.result, failure: { ...failure, ...fault, detail, schedule }, threads },
      steps: recording.steps(this.names.length),
    }
  }

  private get patience(): number {
    return this.options.patience ?? PATIENCE_MS
  }

  private execute(explorer: AsyncExplorer, witness?: Witness): Execution {
    explorer.begin()
    const execution = new Execution(this.host, explorer, this.limits, witness)
    this.environment.enter(execution)
    this.names = execution.names
    execution.run(this.setup, outsideOf(execution))
    this.steps += execution.steps
    if (execution.refusal !== undefined) throw execution.refusal
    return execution
  }

  /** Runs and judges one execution, and runs it again to check that it is deterministic. */
  private once(): void {
    const { explorer, options } = this
    const execution = this.execute(explorer)
    this.runs++
    this.depth = Math.max(this.depth, execution.steps)
    if (!execution.cut) this.executions++
    if (execution.fault !== undefined) this.fail(execution.fault)
    else if (options.rerun !== false) this.rerun(execution)
    for (const note of execution.notes) this.notes.add(note)
    if (execution.cut) this.notes.add(`executions of more than ${this.limits.steps} events were cut off`)
    if (execution.agenda.held) {
      this.notes.add(
        `an event that ${this.limits.turns} others of one name and task had overtaken was forced: raise \`turns\`, or say how long operations take (\`takes\`)`,
      )
    }
    if (this.over) return
    if (!explorer.advance()) {
      this.over = true
      this.requireSomething()
    } else if (this.runs >= (options.executions ?? Number.POSITIVE_INFINITY)) {
      this.bounded = `it was to stop after ${options.executions} executions`
      this.over = true
    }
  }

  private fail(fault: Fault): void {
    this.failure ??= { ...fault, schedule: { threads: this.explorer.taken, crashes: [] }, marked: [] }
    if (this.options.keepGoing !== true || fault.title.startsWith(ENDLESS)) this.over = true
  }

  private rerun(first: Execution): void {
    const second = this.execute(new GivenOrder(this.explorer.taken))
    const [before, after] = [first, second].map(({ trace, agenda, outcomes, fault }) => [
      ...trace,
      ...agenda.happened,
      ...outcomes,
      fault?.title ?? '',
    ])
    const at = before.findIndex((text, i) => text !== after[i])
    if (at >= 0) throw differs(before[at], after[at] ?? 'nothing')
  }

  /**
   * An order in which as few events as possible overtake an older one, and among such orders one with few
   * events.
   */
  private async shrink({ schedule, kind, title }: Failure): Promise<readonly number[]> {
    const found = schedule.threads
    if (title.startsWith(ENDLESS)) return found
    let left = this.options.shrink ?? SHRINK_MAX
    const deviations = found.filter(choice => choice > 0).length
    let best: { taken: readonly number[]; steps: number } | undefined
    const look = (): void => {
      for (let bound = 0; bound <= deviations && best === undefined; bound++) {
        const explorer = new AllOrders(bound)
        do {
          if (--left < 0) return
          const { fault, steps } = this.execute(explorer)
          if (fault?.kind === kind && (best === undefined || steps < best.steps))
            best = { taken: explorer.taken, steps }
        } while (explorer.advance())
      }
    }
    await this.environment.within(10 * this.patience, look).catch((error: unknown) => {
      if (!(error instanceof Endless)) throw error
    })
    return best?.taken ?? found
  }

  /**
   * Checks that Node reports everything that a check relies on: unhandled rejections, which a flag can turn
   * off; and resources, whose hooks may not work any more after code was cut off.
   */
  private requireHost(): void {
    const probe = new Execution(this.host, new GivenOrder([]), this.limits)
    this.environment.enter(probe)
    void Promise.reject(new Error('a probe'))
    this.host.drain()
    this.host.makeResource()
    const missing =
      probe.fault === undefined
        ? 'unhandled rejections: it runs with --unhandled-rejections=none'
        : probe.refusal === undefined
          ? 'what a program does outside: its hooks do not work, or stopped working when an earlier check was cut off'
          : undefined
    if (missing === undefined) return
    throw new CheckError(
      'ERR_CHECK_HOST',
      `Node does not report ${missing}; run the check in a process of its own, without flags`,
    )
  }

  private requireSomething(): void {
    if (this.executions > 0 || this.failure !== undefined) return
    throw new CheckError(
      'ERR_CHECK_NOTHING',
      `no execution of the check ended: all had more than ${this.limits.steps} events; make the check smaller, bound its loops, or raise \`steps\``,
    )
  }
}

const ENDLESS = 'livelock: the event loop'

function endless(patience: number): { title: string; detail: string[] } {
  return {
    title: `${ENDLESS} stands still: the code after the last event has not returned for ${patience} ms`,
    detail: [
      'A loop that awaits only settled promises, or nothing, lets no event happen. Await an event from outside.',
    ],
  }
}

function explorerOf(options: AsyncCheckOptions): AsyncExplorer {
  const { runs = 1000, seed = 1 } = options
  switch (options.explorer ?? 'exhaustive') {
    case 'exhaustive':
      return new AllOrders()
    case 'preemption-bounded':
      return new AllOrders(options.preemptions ?? 2)
    case 'pct':
    case 'random':
      return new SomeOrders(runs, seed)
    case 'round-robin':
      return new SomeOrders(1)
    case 'replay':
      return new GivenOrder(parseSchedule(options.schedule as string).threads)
  }
}

function limitOf({ explorer, runs = 1000, preemptions = 2 }: AsyncCheckOptions): string {
  switch (explorer ?? 'exhaustive') {
    case 'exhaustive':
      return ''
    case 'preemption-bounded':
      return `only orders with at most ${preemptions} events that came before an older one were tried`
    case 'pct':
    case 'random':
      return `${runs} random orders were tried`
    case 'round-robin':
      return 'one order was tried, the oldest event first'
    case 'replay':
      return 'one order was replayed'
  }
}
