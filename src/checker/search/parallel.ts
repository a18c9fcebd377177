import { Worker } from 'node:worker_threads'
import { Awaits } from './awaits.ts'
import { conclude, type DeclaredCheck } from '../check.ts'
import type { LoadedCheck } from '../run/files.ts'
import { CheckError } from '../errors.ts'
import type { Machine } from '../machine/machine.ts'
import { BeginAgain } from '../machine/memory.ts'
import type { Root } from './optimal.ts'
import type { CheckOptions } from '../run/options.ts'
import { Outcomes, withExpected } from '../spec/outcomes.ts'
import { crashPlans } from './plans.ts'
import type { RecordedStep } from '../report/recording.ts'
import type { Crash } from '../machine/schedule.ts'
import { type CheckResult, Search, type SearchPart, STEPS_MAX, throwUnlessSomething } from './search.ts'
import { split } from './split.ts'
import type { FromWorker, ToWorker } from './worker.ts'
import { verdict } from './verdict.ts'

/** One piece of work: a part of an exhaustive search, or a share of the runs of a sampling search. */
interface Job {
  readonly part: SearchPart | undefined
  readonly options: CheckOptions
}

/** The numbering of cells, and the knowledge about them. */
type Numbering = Pick<SearchPart, 'shift' | 'mixed' | 'unfit'>

type Show = (result: CheckResult | undefined) => void

/**
 * Explores one check on the worker threads of a team. Each worker loads the check file; the parts are
 * assigned one by one. A worker sends a failure as a schedule, which this thread runs again, shrinks and
 * reports. A short search stays on this thread: it would end before a worker has loaded the file.
 */
export async function searchInParallel(
  file: string,
  check: DeclaredCheck & LoadedCheck,
  options: CheckOptions,
  team: Team,
  show: Show,
  interrupted: { readonly now: boolean },
  alive: () => void,
): Promise<{ result: CheckResult; steps: RecordedStep[] }> {
  const alone = new Search(check.name, options, check.setup)
  const whole = UNSHARED.has(options.explorer ?? 'exhaustive')
  if (alone.run(whole ? Number.POSITIVE_INFINITY : ALONE_MS)) return conclude(alone, undefined, alive)
  team.setCheck(file, check)
  try {
    for (let numbering: Numbering = { shift: 3, mixed: [], unfit: [] }; ; ) {
      try {
        return await searchWith(team, check, options, numbering, show, interrupted, alive)
      } catch (error) {
        if (!(error instanceof BeginAgain)) throw error
        numbering = { shift: error.shift, mixed: [...(error.mixed ?? [])], unfit: error.unfit }
      }
    }
  } finally {
    show(undefined)
  }
}

/** Explorers that are not split. */
const UNSHARED: ReadonlySet<string> = new Set(['replay', 'round-robin', 'preemption-bounded'])
/** The time in milliseconds for which a search runs on this thread before it is split. */
const ALONE_MS = 200

async function searchWith(
  team: Team,
  check: DeclaredCheck & LoadedCheck,
  options: CheckOptions,
  numbering: Numbering,
  show: Show,
  interrupted: { readonly now: boolean },
  alive: () => void,
): Promise<{ result: CheckResult; steps: RecordedStep[] }> {
  const explorer = options.explorer ?? 'exhaustive'
  const workers = team.size
  const started = performance.now()
  const total = new Total(check.name, explorer, options)
  const budget = new Int32Array(new SharedArrayBuffer(4))
  const bounded = options.executions === undefined ? undefined : budget
  budget[0] = options.executions ?? 0
  if (explorer !== 'exhaustive') {
    const runs = Math.min(options.runs ?? 1000, options.executions ?? Number.POSITIVE_INFINITY)
    const share = Math.ceil(runs / (workers * 4))
    const jobs: Job[] = []
    for (let at = 0; at < runs; at += share) {
      jobs.push({
        part: undefined,
        options: {
          ...options,
          executions: undefined,
          runs: Math.min(share, runs - at),
          seed: (options.seed ?? 1) + at,
        },
      })
    }
    await team.work(jobs, total, started, show, interrupted, alive)
    total.planned = true
    return total.conclude(check, options, started, alive)
  }
  const planner = new Search(check.name, options, check.setup, { ...numbering, crashes: [], root: undefined })
  const plans = planner.withGuards(() => {
    const machine = planner.extraMachine()
    machine.begin(planner.setup)
    return crashPlans(machine, options)
  })
  let happened = true
  for (;;) {
    const plan = plans.next(happened)
    total.planned = plan === undefined
    if (plan === undefined || interrupted.now || total.isSpent(started)) break
    const awaits = new Awaits(numbering.unfit)
    const roots = planner.withGuards(() =>
      splitPlan(planner.extraMachine(), planner, plan, workers * 8, awaits),
    )
    const jobs = roots.map(root => ({
      part: { ...numbering, waits: awaits.waitCells, crashes: plan, root, budget: bounded },
      options,
    }))
    total.happened = false
    await team.work(jobs, total, started, show, interrupted, alive)
    happened = total.happened
    if (total.failed !== undefined && options.keepGoing !== true) break
  }
  return total.conclude(check, options, started, alive)
}

function splitPlan(
  machine: Machine,
  search: Search,
  plan: readonly Crash[],
  wanted: number,
  awaits: Awaits,
): Root[] {
  machine.crashAt.fill(-1)
  for (const { thread, step } of plan) machine.crashAt[thread] = step
  return split(machine, search.setup, wanted, awaits)
}

/** The total of the parts. */
class Total {
  private readonly name: string
  private readonly explorer: string
  private readonly options: CheckOptions
  private executions = 0
  private redundant = 0
  private steps = 0
  private depth = 0
  private threads: readonly string[] = []
  private readonly why = new Set<string>()
  private probability: number | undefined
  private readonly outcomes = new Outcomes()
  happened = false
  failed: { readonly schedule: string } | undefined
  /** The number of parts that are finished, and that are assigned. */
  done = 0
  jobs = 0
  /** Whether no further parts will be made. */
  planned = false

  constructor(name: string, explorer: string, options: CheckOptions) {
    this.name = name
    this.explorer = explorer
    this.options = options
  }

  /** How many milliseconds are left. */
  timeLeft(started: number): number {
    return (this.options.time ?? Number.POSITIVE_INFINITY) - (performance.now() - started)
  }

  /** Whether the bounds of the check are reached: then no further part is started. */
  isSpent(started: number): boolean {
    return (
      this.timeLeft(started) <= 0 ||
      this.executions + this.redundant >= (this.options.executions ?? Number.POSITIVE_INFINITY)
    )
  }

  add(message: Extract<FromWorker, { kind: 'done' }>): void {
    this.done++
    this.executions += message.result.executions
    this.redundant += message.result.redundant
    this.steps += message.result.steps
    this.depth = Math.max(this.depth, message.result.depth)
    this.threads = message.result.threads
    this.happened ||= message.happened
    this.outcomes.merge(message.result.outcomes)
    if (message.result.probability !== undefined) {
      this.probability = 1 - (1 - (this.probability ?? 0)) * (1 - message.result.probability)
    }
    if (message.schedule !== undefined) this.failed ??= { schedule: message.schedule }
    else if (message.result.why !== '') {
      // Each part has a share of the time; the result names the bound of the whole search.
      const why = message.result.why.replace(
        /it was to stop after [\d.]+ ms/,
        `it was to stop after ${this.options.time} ms`,
      )
      this.why.add(why)
    }
  }

  private boundReached(started: number): string {
    return this.timeLeft(started) <= 0
      ? `it was to stop after ${this.options.time} ms`
      : `it was to stop after ${this.options.executions} executions`
  }

  result(started: number, over: boolean): CheckResult {
    const left = this.isSpent(started) ? this.boundReached(started) : 'it was interrupted'
    const why = [...new Set(over ? this.why : [left, ...this.why])]
    return {
      name: this.name,
      ...verdict(this.failed !== undefined, why),
      complete: why.length === 0 && this.failed === undefined,
      explorer: this.explorer,
      executions: this.executions,
      redundant: this.redundant,
      steps: this.steps,
      depth: this.depth,
      seconds: (performance.now() - started) / 1000,
      fraction: this.jobs === 0 ? 0 : this.done / this.jobs,
      probability: this.probability,
      failure: undefined,
      threads: this.threads,
      ...(this.options.expectOutcomes === undefined ? {} : { outcomes: this.outcomes.list }),
    }
  }

  private other(schedule: string): CheckError {
    return new CheckError(
      'ERR_CHECK_NONDETERMINISTIC',
      `the schedule ${schedule} fails on one thread of the search and not on another: the check depends on more than its schedule, as on the thread that runs it or on state that its module keeps`,
    )
  }

  conclude(
    check: DeclaredCheck,
    options: CheckOptions,
    started: number,
    alive: () => void,
  ): { result: CheckResult; steps: RecordedStep[] } {
    const result = this.result(started, this.planned && this.done === this.jobs)
    if (this.failed === undefined) {
      if (result.complete) throwUnlessSomething(result.executions, result.steps, options.steps ?? STEPS_MAX)
      return { result: withExpected(result, options), steps: [] }
    }
    const again = new Search(
      check.name,
      {
        ...options,
        explorer: 'replay',
        schedule: this.failed.schedule,
        executions: undefined,
        time: undefined,
      },
      check.setup,
    )
    again.run()
    const { result: replayed, steps } = conclude(again, true, alive)
    if (replayed.failure === undefined) throw this.other(this.failed.schedule)
    const why = 'it stopped at the failure'
    return {
      result: { ...result, ok: false, why, failure: replayed.failure, threads: replayed.threads },
      steps,
    }
  }
}

/** The worker threads of a run: started for the first check that needs them, and kept for later checks. */
export class Team {
  readonly size: number
  private readonly workers: Worker[] = []
  private check = { file: '', name: '', id: '' }
  /** Receives the messages of the workers for the current work. */
  private onMessage: (worker: Worker, message: FromWorker) => void = () => undefined
  private fail: (error: Error) => void = () => undefined

  constructor(size: number) {
    this.size = size
  }

  /** Makes this check the subject of the next jobs. */
  setCheck(file: string, { name, id }: LoadedCheck): void {
    this.check = { file, name, id }
    while (this.workers.length < this.size) this.workers.push(this.start())
  }

  private start(): Worker {
    const script = new URL('./worker.ts', import.meta.url)
    const worker = new Worker(script, { resourceLimits: { maxYoungGenerationSizeMb: 64 } })
    worker.on('message', (message: FromWorker) => this.onMessage(worker, message))
    worker.on('error', error => this.fail(error instanceof Error ? error : new Error(String(error))))
    return worker
  }

  /**
   * Assigns the jobs until all are done or one has failed. Throws errors that make the whole search invalid.
   */
  work(
    jobs: readonly Job[],
    total: Total,
    started: number,
    show: Show,
    interrupted: { readonly now: boolean },
    alive: () => void,
  ): Promise<void> {
    total.jobs += jobs.length
    return new Promise((resolve, reject) => {
      let next = 0
      const busy = new Set<Worker>()
      const timer = setInterval(() => {
        alive()
        show(total.result(started, false))
        if (interrupted.now) finish()
      }, 250)
      const finish = (error?: Error): void => {
        clearInterval(timer)
        this.onMessage = () => undefined
        // A part that is no longer needed would still run to its end: replace its worker for the next check.
        for (const worker of busy) this.replace(worker)
        if (error === undefined) resolve()
        else reject(error)
      }
      const give = (worker: Worker): void => {
        const failed = total.failed !== undefined && jobs[0]?.options.keepGoing !== true
        if (next < jobs.length && !failed && !total.isSpent(started)) {
          busy.add(worker)
          const job = jobs[next++]
          const time = job.options.time === undefined ? undefined : Math.max(1, total.timeLeft(started))
          worker.postMessage({ ...this.check, ...job, options: { ...job.options, time } } satisfies ToWorker)
        } else if (busy.size === 0) {
          finish()
        }
      }
      this.fail = finish
      this.onMessage = (worker, message) => {
        busy.delete(worker)
        if (message.kind === 'again')
          finish(new BeginAgain(message.shift, new Set(message.mixed), message.unfit))
        else if (message.kind === 'wrong') finish(new CheckError(message.code, message.message))
        else {
          total.add(message)
          give(worker)
        }
      }
      for (const worker of this.workers) give(worker)
    })
  }

  private replace(worker: Worker): void {
    void worker.terminate()
    this.workers[this.workers.indexOf(worker)] = this.start()
  }

  async dismiss(): Promise<void> {
    await Promise.all(this.workers.map(worker => worker.terminate()))
  }
}
