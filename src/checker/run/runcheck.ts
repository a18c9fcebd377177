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
import { messageWithPlace } from '../async/place.ts'
import { CheckError } from '../errors.ts'
import { shorten } from '../report/paths.ts'
import type { RecordedStep } from '../report/recording.ts'
import { formatFailure, formatSummary, toJson, toTimeline } from '../report/report.ts'
import { searchInParallel, Team } from '../search/parallel.ts'
import type { CheckResult } from '../search/search.ts'
import type { LoadedCheck } from './files.ts'
import type { CheckOptions } from './options.ts'
import { type RunnerOutput, type Show, showSearch } from './progress.ts'
import { RememberedResults } from './remembered.ts'
import { isCovering, type RunnerOptions } from './runneroptions.ts'
import type { WatchedChecks } from './watched.ts'
import { Watchdog } from './watchdog.ts'

/** One check to run, and its file. */
export interface CheckToRun {
  readonly file: string
  readonly check: LoadedCheck
}

/** How the checks of a run ended. */
export interface Tally {
  passed: number
  failed: number
  wrong: number
  incomplete: number
  /** The incomplete checks that the check or the caller accepts. */
  accepted: number
  /** The checks whose result is from an earlier run. */
  remembered: number
}

export function emptyTally(): Tally {
  return { passed: 0, failed: 0, wrong: 0, incomplete: 0, accepted: 0, remembered: 0 }
}

/** Whether the run stops because a check failed and the caller asked for that. */
export function isOver({ bail }: RunnerOptions, { failed, wrong }: Tally): boolean {
  return bail === true && failed + wrong > 0
}

interface Explored {
  readonly result: CheckResult
  readonly steps: RecordedStep[]
}

/** Runs checks one after the other, in this process. */
export class CheckRunner {
  readonly tally: Tally = emptyTally()
  readonly interrupted: { now: boolean } = { now: false }
  readonly remembered: RememberedResults = new RememberedResults()
  private readonly options: RunnerOptions
  private readonly output: RunnerOutput
  private watchdog: Watchdog | undefined
  /** Teams of worker threads, by size. They are reused by the next check. */
  private readonly teams = new Map<number, Team>()
  /** Whether the message that some searches are not split has been printed. */
  private saidWhole = false
  private readonly show: (label: string) => Show
  /** For a page that shows the run. */
  private readonly watched: WatchedChecks | undefined
  /** The number of the running check on that page. */
  private current = -1

  constructor(
    options: RunnerOptions,
    output: RunnerOutput,
    show: (label: string) => Show = label => showSearch(output, label),
    watched?: WatchedChecks,
  ) {
    this.options = options
    this.output = output
    this.show = show
    this.watched = watched
    process.on('unhandledRejection', this.onRejection)
  }

  async stop(): Promise<void> {
    // Callbacks that a thread left on the event loop run now.
    await new Promise(resolve => setImmediate(resolve))
    process.off('unhandledRejection', this.onRejection)
    await Promise.all([...this.teams.values()].map(team => team.dismiss()))
    await this.unwatch()
  }

  /** Ends the watchdog: from now on this process only waits for others. */
  async unwatch(): Promise<void> {
    await this.watchdog?.stop()
    this.watchdog = undefined
  }

  /** Prints the result of an earlier run, if one is still valid. */
  recall(file: string, check: LoadedCheck): boolean {
    if (!this.remembers) return false
    const merged = this.mergedOptions(check)
    const result = this.remembered.recall(this.remembered.questionOf(file, check, merged))
    if (result === undefined) return false
    this.tally.remembered++
    this.report(file, { result, steps: [] }, merged)
    return true
  }

  /** Explores a check, prints its result, and keeps it. */
  async explore(file: string, check: LoadedCheck): Promise<void> {
    const merged = this.mergedOptions(check)
    this.current = this.watched?.begin(file, check.name, check.id) ?? -1
    try {
      const question = this.remembers ? this.remembered.questionOf(file, check, merged) : undefined
      this.rejections = []
      const explored = await this.search(file, check, merged)
      // Node reports a promise that the check has left rejected when the microtasks are done.
      await new Promise(resolve => setImmediate(resolve))
      if (this.rejections.length > 0 && explored.result.failure === undefined)
        throw new CheckError(
          'ERR_CHECK_PROMISE',
          `a promise was rejected and nothing handles it: ${messageWithPlace(this.rejections[0])}. The check is judged before: await the promise in a thread, or handle its rejection`,
        )
      if (question !== undefined) this.remembered.keep(question, explored.result, this.interrupted.now)
      this.report(file, explored, merged)
    } catch (error) {
      // Code of a wrong check may continue and fail.
      await new Promise(resolve => setImmediate(resolve))
      if (!(error instanceof CheckError)) throw error
      this.watched?.wrong(this.current, error)
      this.reportWrong(file, check.name, error)
    } finally {
      this.rejections = undefined
    }
  }

  /** The file or check that is being loaded or explored. */
  label = ''

  /** Reports progress to the watchdog, which the first call starts. */
  pat(label: string): void {
    this.label = label
    this.watchdog ??= new Watchdog(this.options.patience ?? PATIENCE_SECONDS)
    this.watchdog.pat(label)
  }

  /** The rejections that nothing has handled since the running check began; undefined between checks. */
  private rejections: unknown[] | undefined

  private readonly onRejection = (error: unknown): void => {
    if (this.rejections !== undefined) this.rejections.push(error)
    // Code of a wrong check may continue and fail later: the check has already been reported.
    else if (this.tally.wrong === 0) throw error
  }

  private get remembers(): boolean {
    const { cache, override } = this.options
    if (this.watched !== undefined) return false
    return cache !== false && !isCovering(this.options) && override?.explorer !== 'replay'
  }

  private mergedOptions(check: AnyDeclaredCheck): CheckOptions {
    const { time, override } = this.options
    return {
      // The outcomes that were reached are part of the coverage.
      ...(isCovering(this.options) ? { expectOutcomes: [] } : {}),
      ...check.options,
      ...(time !== undefined && check.options.time === undefined ? { time } : {}),
      ...override,
    }
  }

  private search(file: string, check: LoadedCheck, merged: CheckOptions): Promise<Explored> {
    const label = `${shorten(file)} ${check.name}`
    const threads = this.threadsFor(check, merged)
    if ('asyncSetup' in check) return this.searchAsync(check, label)
    if (threads === 1) return this.searchHere(check, merged, label)
    let team = this.teams.get(threads)
    if (team === undefined) this.teams.set(threads, (team = new Team(threads)))
    return searchInParallel(file, check, merged, team, this.show(label), this.interrupted, () =>
      this.pat(label),
    )
  }

  /** On how many threads a check is explored. */
  private threadsFor(check: AnyDeclaredCheck, merged: CheckOptions): number {
    const asked = this.options.parallel ?? merged.parallel ?? 1
    // A search of weak memory is not split, and workers would count coverage for themselves.
    const isWhole = merged.memory === 'weak' || isCovering(this.options) || 'asyncSetup' in check
    if (!isWhole || asked === 1) return asked
    if (!this.saidWhole) {
      this.saidWhole = true
      this.output.err(
        `heddle check: --parallel does not split ${isCovering(this.options) ? 'a search that counts coverage' : 'asynchronous checks and weak memory'}; these are explored on one thread\n`,
      )
    }
    return 1
  }

  private async searchHere(check: DeclaredCheck, merged: CheckOptions, label: string): Promise<Explored> {
    const search = searchOf(check.name, merged, check.setup)
    const show = this.show(label)
    this.pat(label)
    while (!this.interrupted.now && !search.run(SLICE_MS)) {
      this.pat(label)
      show(search.result)
      this.watched?.progress(this.current, search.result, search)
      await new Promise<void>(done => void setImmediate(done))
    }
    show(undefined)
    const explored = conclude(search, undefined, () => this.pat(label))
    this.watched?.end(this.current, explored.result, explored.steps, search)
    return explored
  }

  private async searchAsync(
    { name, options, asyncSetup, file }: DeclaredAsyncCheck,
    label: string,
  ): Promise<Explored> {
    const { time, override } = this.options
    const search = new AsyncSearch(
      name,
      { ...(time === undefined ? {} : { time }), ...options, ...asyncPart(override ?? {}) },
      asyncSetup,
      file,
    )
    const show = this.show(label)
    this.pat(label)
    while (!this.interrupted.now && !(await search.run(SLICE_MS))) {
      this.pat(label)
      show(search.result)
      this.watched?.progress(this.current, search.result, search)
    }
    show(undefined)
    const explored = await search.conclude()
    this.watched?.end(this.current, explored.result, explored.steps, search)
    return explored
  }

  private report(file: string, { result, steps }: Explored, merged: CheckOptions): void {
    const { json, timeline, allowIncomplete } = this.options
    const { out } = this.output
    if (json === true) out(`${JSON.stringify(toJson(result, steps, shorten(file)))}\n`)
    else if (result.failure === undefined) out(`${formatSummary(result)}\n`)
    else out(`\n${formatFailure(result, steps, shorten(file))}\n\n`)
    if (timeline !== undefined && result.failure !== undefined) {
      writeFileSync(timeline, JSON.stringify(toTimeline(result, steps)))
      if (json !== true) out(`  timeline: ${timeline}\n`)
    }
    if (result.failure !== undefined) this.tally.failed++
    else if (result.complete) this.tally.passed++
    else {
      this.tally.incomplete++
      if (allowIncomplete === true || merged.allowIncomplete === true) this.tally.accepted++
    }
  }

  private reportWrong(file: string, name: string, { code, message }: CheckError): void {
    this.tally.wrong++
    if (this.options.json === true) {
      const wrong = { name, file: shorten(file), ok: false, wrong: code, message }
      this.output.out(`${JSON.stringify(wrong)}\n`)
    } else {
      this.output.err(`✗ ${name} (${shorten(file)}): the check itself is wrong [${code}]\n    ${message}\n`)
    }
  }
}

const PATIENCE_SECONDS = 30
const SLICE_MS = 100
