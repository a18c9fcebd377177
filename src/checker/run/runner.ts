import { writeFileSync } from 'node:fs'
import { asyncPart } from '../async/options.ts'
import { AsyncSearch } from '../async/search.ts'
import {
  type AnyDeclaredCheck,
  conclude,
  type DeclaredAsyncCheck,
  type DeclaredCheck,
  searchOf,
} from '../check.ts'
import { CheckError } from '../errors.ts'
import { coverage } from '../report/coverage.ts'
import { formatCoverage, toLcov } from '../report/coveragereport.ts'
import { findCheckFiles, loadChecks } from './files.ts'
import { coverChecks } from './loader.ts'
import type { CheckOptions } from './options.ts'
import { searchInParallel, Team } from '../search/parallel.ts'
import { shorten } from '../report/paths.ts'
import type { RecordedStep } from '../report/recording.ts'
import { count, formatFailure, formatSummary, plural, toJson, toTimeline } from '../report/report.ts'
import type { CheckResult } from '../search/search.ts'
import { Watchdog } from './watchdog.ts'

/** How `heddle check` was called. */
export interface RunnerOptions {
  /** Only the checks with this in their name. */
  readonly only?: string
  /** Over what a check says itself. */
  readonly override: CheckOptions
  /** A bound for each check that does not have one: milliseconds. */
  readonly time?: number
  /** Print one JSON object for each check instead of text. */
  readonly json?: boolean
  /** Where to write the failing execution as a timeline. */
  readonly timeline?: string
  /** Stop at the first check that fails. */
  readonly bail?: boolean
  readonly parallel?: number
  /** A search that did not cover everything is no error. */
  readonly allowIncomplete?: boolean
  /**
   * Count what is reached in the files, print it, and write it to a file: lcov, or JSON where the name ends
   * so.
   */
  readonly coverage?: boolean
  readonly coverageFile?: string
  /** After how many seconds in which nothing has come back the process is ended. Default 30. */
  readonly patience?: number
}

export interface RunnerOutput {
  out(text: string): void
  err(text: string): void
  /** Whether `err` is a terminal, on which a line can be written over. */
  readonly live: boolean
}

/** What the process should exit with. */
const PASSED = 0
const FAILED = 1
const WRONG = 2
const INCOMPLETE = 3
const INTERRUPTED = 130

/** Runs the checks of all files under the paths, and prints what comes of it. Returns the exit code. */
/**
 * Of a check that is wrong, code that is not instrumented may have gone on and failed: it has been told with
 * the check.
 */
function rejections(tally: { readonly wrong: number }): (error: unknown) => void {
  return error => {
    if (tally.wrong === 0) throw error
  }
}

export async function runChecks(
  paths: readonly string[],
  options: RunnerOptions,
  output: RunnerOutput,
): Promise<number> {
  if (isCovering(options)) coverChecks()
  let files: string[]
  try {
    files = findCheckFiles(paths)
  } catch (error) {
    output.err(`heddle check: ${(error as Error).message}\n`)
    return WRONG
  }
  if (files.length === 0) {
    output.err(`heddle check: no files *.check.ts under ${paths.join(', ')}\n`)
    return WRONG
  }
  const interrupted = { now: false }
  const onInterrupt = (): void => {
    interrupted.now = true
  }
  process.on('SIGINT', onInterrupt)
  const watchdog = new Watchdog(options.patience ?? PATIENCE_SECONDS)
  const tally = { passed: 0, failed: 0, wrong: 0, incomplete: 0, accepted: 0, toldWhole: false }
  const teams = new Map<number, Team>()
  const onRejection = rejections(tally)
  process.on('unhandledRejection', onRejection)
  try {
    for (const file of files) {
      const checks = await declaredIn(file, output, tally)
      for (const check of checks) {
        if (options.only !== undefined && !check.name.includes(options.only)) continue
        if (interrupted.now || (options.bail === true && tally.failed + tally.wrong > 0)) break
        await runOne(file, check, options, output, tally, interrupted, watchdog, teams)
      }
    }
  } finally {
    process.off('SIGINT', onInterrupt)
    // What a thread left to the event loop comes now.
    await new Promise(resolve => setImmediate(resolve))
    process.off('unhandledRejection', onRejection)
    await Promise.all([...teams.values()].map(team => team.dismiss()))
    await watchdog.stop()
  }
  const ran = tally.passed + tally.failed + tally.wrong + tally.incomplete
  if (options.json !== true) {
    output.out(
      `\n${plural(ran, 'check')}: ${count(tally.passed)} passed, ${tally.incomplete > 0 ? `${count(tally.incomplete)} incomplete, ` : ''}${count(tally.failed)} failed${tally.wrong > 0 ? `, ${count(tally.wrong)} could not be run` : ''}\n`,
    )
  }
  if (isCovering(options)) tellCoverage(options, output)
  if (interrupted.now) return INTERRUPTED
  if (ran === 0) {
    output.err(
      options.only === undefined
        ? 'heddle check: the files declare no checks; call `check(name, options, setup)` at their top\n'
        : `heddle check: no check has ${JSON.stringify(options.only)} in its name\n`,
    )
    return WRONG
  }
  if (tally.failed > 0) return FAILED
  if (tally.wrong > 0) return WRONG
  return tally.incomplete > tally.accepted ? INCOMPLETE : PASSED
}

const PATIENCE_SECONDS = 30

interface Tally {
  passed: number
  failed: number
  wrong: number
  incomplete: number
  /** Of those: where the check or the caller accepts it. */
  accepted: number
  /** Whether it has been said that some searches are not split. */
  toldWhole: boolean
}

async function declaredIn(file: string, output: RunnerOutput, tally: Tally): Promise<AnyDeclaredCheck[]> {
  try {
    return await loadChecks(file)
  } catch (error) {
    tally.wrong++
    output.err(`✗ ${shorten(file)}: ${(error as Error).message}\n`)
    return []
  }
}

async function runOne(
  file: string,
  check: AnyDeclaredCheck,
  options: RunnerOptions,
  output: RunnerOutput,
  tally: Tally,
  interrupted: { now: boolean },
  watchdog: Watchdog,
  teams: Map<number, Team>,
): Promise<void> {
  const own = check.options
  const merged: CheckOptions = {
    // Which outcomes were reached is a part of the coverage.
    ...(isCovering(options) ? { expectOutcomes: [] } : {}),
    ...own,
    ...(options.time !== undefined && own.time === undefined ? { time: options.time } : {}),
    ...options.override,
  }
  const label = `${shorten(file)} ${check.name}`
  try {
    // A search of weak memory is not split, and workers would count for themselves.
    const isWhole = merged.memory === 'weak' || isCovering(options) || 'asyncSetup' in check
    const asked = options.parallel ?? merged.parallel ?? 1
    const parallel = isWhole ? 1 : asked
    if (asked > 1 && isWhole && !tally.toldWhole) {
      tally.toldWhole = true
      output.err(
        `heddle check: --parallel does not split ${isCovering(options) ? 'a search that counts coverage' : 'asynchronous checks and weak memory'}; these are explored on one thread\n`,
      )
    }
    const done =
      'asyncSetup' in check
        ? await searchAsync(check, options, output, label, interrupted, watchdog)
        : parallel > 1
          ? await searchInParallel(
              file,
              check,
              merged,
              teamOf(teams, parallel),
              progress(output, label),
              interrupted,
              () => watchdog.pat(label),
            )
          : await searchHere(check, merged, output, label, interrupted, watchdog)
    print(done.result, done.steps, shorten(file), options, output)
    if (done.result.failure !== undefined) tally.failed++
    else if (done.result.complete) tally.passed++
    else {
      tally.incomplete++
      if (options.allowIncomplete === true || merged.allowIncomplete === true) tally.accepted++
    }
  } catch (error) {
    if (!(error instanceof CheckError)) throw error
    tally.wrong++
    if (options.json === true) {
      output.out(
        `${JSON.stringify({ name: check.name, file: shorten(file), ok: false, wrong: error.code, message: error.message })}\n`,
      )
    } else {
      output.err(
        `✗ ${check.name} (${shorten(file)}): the check itself is wrong [${error.code}]\n    ${error.message}\n`,
      )
    }
  }
}

/** The workers are kept from check to check. */
function teamOf(teams: Map<number, Team>, size: number): Team {
  let team = teams.get(size)
  if (team === undefined) {
    team = new Team(size)
    teams.set(size, team)
  }
  return team
}

function isCovering({ coverage, coverageFile }: RunnerOptions): boolean {
  return coverage === true || coverageFile !== undefined
}

function tellCoverage({ coverageFile, json }: RunnerOptions, output: RunnerOutput): void {
  const files = coverage()
  if (json === true) output.out(`${JSON.stringify({ coverage: files })}\n`)
  else output.out(`\n${formatCoverage(files)}\n`)
  if (coverageFile !== undefined)
    writeFileSync(coverageFile, coverageFile.endsWith('.json') ? JSON.stringify(files) : toLcov(files))
}

async function searchHere(
  check: DeclaredCheck,
  options: CheckOptions,
  output: RunnerOutput,
  label: string,
  interrupted: { now: boolean },
  watchdog: Watchdog,
): Promise<{ result: CheckResult; steps: RecordedStep[] }> {
  const search = searchOf(check.name, options, check.setup)
  const show = progress(output, label)
  watchdog.pat(label)
  while (!interrupted.now && !search.run(SLICE_MS)) {
    watchdog.pat(label)
    show(search.result)
    await new Promise<void>(done => void setImmediate(done))
  }
  show(undefined)
  return conclude(search, undefined, () => watchdog.pat(label))
}

async function searchAsync(
  { name, options, asyncSetup, file }: DeclaredAsyncCheck,
  { time, override }: RunnerOptions,
  output: RunnerOutput,
  label: string,
  interrupted: { now: boolean },
  watchdog: Watchdog,
): Promise<{ result: CheckResult; steps: RecordedStep[] }> {
  const search = new AsyncSearch(
    name,
    { ...(time === undefined ? {} : { time }), ...options, ...asyncPart(override) },
    asyncSetup,
    file,
  )
  const show = progress(output, label)
  watchdog.pat(label)
  while (!interrupted.now && !(await search.run(SLICE_MS))) {
    watchdog.pat(label)
    show(search.result)
  }
  show(undefined)
  return await search.conclude()
}

const SLICE_MS = 100
const PROGRESS_MS = 1000

/** Says how a long search stands: on a terminal in one line that is written over, else now and then. */
function progress(output: RunnerOutput, label: string): (result: CheckResult | undefined) => void {
  const started = performance.now()
  let last = started
  let shown = false
  return result => {
    if (result === undefined) {
      if (shown && output.live) output.err('\r\u001b[K')
      return
    }
    const now = performance.now()
    const pause = output.live ? PROGRESS_MS : shown ? 10 * PROGRESS_MS : 3 * PROGRESS_MS
    if (now - last < pause) return
    last = now
    shown = true
    const rate = Math.round(result.executions / Math.max(result.seconds, 1e-3))
    const left =
      result.fraction > 0.001
        ? `, about ${formatSeconds((result.seconds / result.fraction) * (1 - result.fraction))} left`
        : ''
    const text = `${label}: ${count(result.executions)} executions, ${count(rate)}/s, depth ${result.depth}, about ${(100 * result.fraction).toPrecision(3)} % done${left}`
    output.err(output.live ? `\r\u001b[K${text}` : `${text}\n`)
  }
}

function formatSeconds(seconds: number): string {
  if (seconds < 120) return `${Math.ceil(seconds)} s`
  if (seconds < 7200) return `${Math.ceil(seconds / 60)} min`
  return `${(seconds / 3600).toPrecision(2)} h`
}

function print(
  result: CheckResult,
  steps: readonly RecordedStep[],
  file: string,
  options: RunnerOptions,
  output: RunnerOutput,
): void {
  if (options.json === true) output.out(`${JSON.stringify(toJson(result, steps, file))}\n`)
  else if (result.failure === undefined) output.out(`${formatSummary(result)}\n`)
  else output.out(`\n${formatFailure(result, steps, file)}\n\n`)
  if (options.timeline !== undefined && result.failure !== undefined) {
    writeFileSync(options.timeline, JSON.stringify(toTimeline(result, steps)))
    if (options.json !== true) output.out(`  timeline: ${options.timeline}\n`)
  }
}
