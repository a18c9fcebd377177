import { show } from '../coroutine/core/knownoptions.ts'
import type { AsyncCheckOptions } from './async/options.ts'
import { here } from './async/place.ts'
import type { AsyncSetup } from './async/program.ts'
import { AsyncSearch } from './async/search.ts'
import type { Failure } from './report/failure.ts'
import { BeginAgain } from './machine/memory.ts'
import type { Setup } from './machine/program.ts'
import type { CheckOptions } from './run/options.ts'
import { withExpected } from './spec/outcomes.ts'
import { type RecordedStep, record } from './report/recording.ts'
import { formatFailure, formatSummary } from './report/report.ts'
import { type CheckResult, Search } from './search/search.ts'
import { shrink } from './search/shrink.ts'
import { WeakSearch } from './weak/search.ts'

export type { Always, WatchedView } from './spec/always.ts'
export type { Crash, Schedule } from './machine/schedule.ts'
export type { Failure, FailureKind } from './report/failure.ts'
export type { Body, Outcome, Program, Setup } from './machine/program.ts'
export type { CheckOptions, ExplorerName } from './run/options.ts'
export type { AsyncCheckOptions } from './async/options.ts'
export type {
  AsyncOutcome,
  AsyncProgram,
  AsyncSetup,
  AsyncTask,
  IoOptions,
  Outside,
} from './async/program.ts'
export type { OutcomeCount } from './spec/outcomes.ts'
export type { CheckResult } from './search/search.ts'
export { CheckError } from './errors.ts'
export { coverage, type FileCoverage, type Place } from './report/coverage.ts'
export { formatCoverage, toLcov } from './report/coveragereport.ts'
export { markAllocated, markFreed } from './machine/lifetimes.ts'
export { CheckedMutex } from './machine/mutex.ts'
export { type Call, History } from './spec/history.ts'
export { linearizable, NotLinearizableError, type Specification } from './spec/linearizable.ts'
export * as specifications from './spec/specifications.ts'

/** Thrown when a check fails. Its message is the whole report. */
export class CheckFailure extends Error {
  override readonly name = 'CheckFailure'
  readonly result: CheckResult
  readonly steps: readonly RecordedStep[]

  constructor(result: CheckResult, steps: readonly RecordedStep[]) {
    super(formatFailure(result, steps, ''))
    this.result = result
    this.steps = steps
    // The message is the whole report, and the test runner knows where `check` was called.
    this.stack = `${this.name}: ${this.message}`
  }
}

/**
 * Thrown when the search found no failure and did not cover everything, unless the check has
 * `allowIncomplete`.
 */
export class CheckIncomplete extends Error {
  override readonly name = 'CheckIncomplete'
  readonly result: CheckResult

  constructor(result: CheckResult) {
    super(
      `${formatSummary(result)}\n    The executions that were not explored may fail. Make the check smaller, or accept it: \`allowIncomplete: true\``,
    )
    this.result = result
    this.stack = `${this.name}: ${this.message}`
  }
}

/** A check over shared memory that a file declares, for the loader of the file to run. */
export interface DeclaredCheck {
  readonly name: string
  readonly options: CheckOptions
  readonly setup: Setup
}

/** The same for a check of asynchronous code. */
export interface DeclaredAsyncCheck {
  readonly name: string
  readonly options: AsyncCheckOptions
  readonly asyncSetup: AsyncSetup
  /** The file that declares it. */
  readonly file: string | undefined
}

export type AnyDeclaredCheck = DeclaredCheck | DeclaredAsyncCheck
type Collector = (check: AnyDeclaredCheck) => void

const collectorKey = Symbol.for('heddle.checker.collector')
const holder = globalThis as unknown as Record<symbol, Collector | undefined>

/**
 * From this call on `check` declares a check instead of running it; undefined ends that. `heddle check` uses
 * it.
 */
export function collectChecks(collector: Collector | undefined): void {
  holder[collectorKey] = collector
}

export interface Check {
  /**
   * Explores the interleavings of a program over shared memory. Throws a CheckFailure with the report when
   * one goes wrong, and a CheckIncomplete when not all were explored. `setup` runs before every execution. It
   * creates the shared memory, and returns the bodies of the threads and an optional final assertion. Call
   * `check` inside a test of vitest or node:test, or at the top of a file `*.check.ts` for `heddle check`.
   */
  (name: string, options: CheckOptions, setup: Setup): CheckResult
  (name: string, setup: Setup): CheckResult
  /**
   * Explores the orders in which the outside world can answer ordinary asynchronous code: I/O, timers,
   * messages. `setup` runs before every execution. It creates all state, and returns the tasks and an
   * optional final assertion. The promise rejects where `check` would throw: await it in a test.
   */
  async(name: string, options: AsyncCheckOptions, setup: AsyncSetup): Promise<CheckResult>
  async(name: string, setup: AsyncSetup): Promise<CheckResult>
}

function refuseNonObject<Options extends object>(
  call: string,
  options: Options | Setup | AsyncSetup,
): asserts options is Options {
  if (typeof options === 'object' && options !== null && !Array.isArray(options)) return
  throw new TypeError(`${call}: ${show(options)} is not an object with options; give one, or leave it out`)
}

export const check: Check = Object.assign(checkShared, { async: checkAsync })

function checkShared(name: string, second: CheckOptions | Setup, third?: Setup): CheckResult {
  const [options, setup] =
    typeof second === 'function' && third === undefined ? [{}, second] : [second, third]
  if (typeof name !== 'string' || typeof setup !== 'function') {
    throw new TypeError('check(name, options, setup): a name, options, and a function that sets the check up')
  }
  refuseNonObject<CheckOptions>('check(name, options, setup)', options)
  const collector = holder[collectorKey]
  if (collector !== undefined) {
    collector({ name, options, setup })
    return declared(name)
  }
  const search = searchOf(name, options, setup)
  search.run()
  const { result, steps } = conclude(search)
  return judged(result, steps, options)
}

async function checkAsync(
  name: string,
  second: AsyncCheckOptions | AsyncSetup,
  third?: AsyncSetup,
): Promise<CheckResult> {
  const [options, asyncSetup] =
    typeof second === 'function' && third === undefined ? [{}, second] : [second, third]
  if (typeof name !== 'string' || typeof asyncSetup !== 'function') {
    throw new TypeError(
      'check.async(name, options, setup): a name, options, and a function that sets the check up',
    )
  }
  refuseNonObject<AsyncCheckOptions>('check.async(name, options, setup)', options)
  const file = here()?.file
  const collector = holder[collectorKey]
  if (collector !== undefined) {
    collector({ name, options, asyncSetup, file })
    return declared(name)
  }
  const search = new AsyncSearch(name, options, asyncSetup, file)
  while (!(await search.run(SLICE_MS)));
  const { result, steps } = await search.conclude()
  return judged(result, steps, options)
}

/** How long an asynchronous search keeps the event loop of a test. */
const SLICE_MS = 100

function judged(
  result: CheckResult,
  steps: readonly RecordedStep[],
  { allowIncomplete }: CheckOptions,
): CheckResult {
  if (result.failure !== undefined) throw new CheckFailure(result, steps)
  if (!result.complete && allowIncomplete !== true) throw new CheckIncomplete(result)
  return result
}

/**
 * The report of the failure that a check finds in a program that is broken on purpose. Throws when it finds
 * none. A test uses it to show that a check can find the bug.
 */
export function found(setup: Setup, options: CheckOptions = {}): string {
  try {
    check('broken', options, setup)
  } catch (error) {
    if (error instanceof CheckFailure) return error.message
    if (error instanceof CheckIncomplete) throw new Error('nothing was found', { cause: error })
    throw error
  }
  throw new Error('nothing was found')
}

/** The same program without its `always`. */
export function unwatched(setup: Setup): Setup {
  return () => {
    const { always: _, ...program } = setup()
    return program
  }
}

/** The search that the options of a check ask for. */
export function searchOf(name: string, options: CheckOptions, setup: Setup): Search | WeakSearch {
  return options.memory === 'weak' ? new WeakSearch(name, options, setup) : new Search(name, options, setup)
}

/**
 * The result of a finished search, with its failure shrunk and the steps of it recorded. `alive` is called
 * now and then during that.
 */
export function conclude(
  search: Search | WeakSearch,
  shrinks: boolean = search.options.explorer !== 'replay',
  alive: () => void = () => undefined,
): { result: CheckResult; steps: RecordedStep[] } {
  const result = withExpected(search.result, search.options)
  if (search instanceof WeakSearch) return { result, steps: [...search.recorded] }
  if (result.failure === undefined || result.failure.kind === 'unreached-outcome')
    return { result, steps: [] }
  const { failure } = result
  const shorter = !shrinks ? failure : shrink(search, failure, search.options.shrink ?? SHRINK_MAX, alive)
  const steps = search.withGuards(() => recorded(search, shorter))
  return { result: { ...result, failure: shorter }, steps }
}

/**
 * The steps of a failure. The search may have renumbered the cells since it found the failure, and may have
 * to renumber them again here.
 */
function recorded(search: Search, { schedule, marked }: Failure): RecordedStep[] {
  for (;;) {
    try {
      return record(search.extraMachine(), search.setup, schedule, marked)
    } catch (error) {
      if (!(error instanceof BeginAgain)) throw error
      search.renumber(error)
    }
  }
}

/** Default of the option `shrink`: how many executions the search for a shorter schedule may take. */
const SHRINK_MAX = 2000

function declared(name: string): CheckResult {
  return {
    name,
    ok: true,
    complete: false,
    outcome: 'incomplete',
    why: 'it has only been declared',
    explorer: 'exhaustive',
    executions: 0,
    redundant: 0,
    steps: 0,
    depth: 0,
    seconds: 0,
    fraction: 0,
    probability: undefined,
    failure: undefined,
    threads: [],
  }
}
