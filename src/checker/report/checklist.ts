/** The checks of a run, kept for a page: how far each search is, its failure, and the search to ask again. */
import type { CheckError } from '../errors.ts'
import { plainExecution, type Execution } from './execution.ts'
import {
  asRerunRequest,
  type CheckerData,
  type CheckStatus,
  type CheckView,
  type RerunReply,
} from './checkview.ts'
import { shorten } from './paths.ts'
import type { RecordedStep } from './recording.ts'
import { parseSchedule } from '../machine/schedule.ts'
import { failingExecution, rerun } from '../search/rerun.ts'
import { type CheckResult, Search } from '../search/search.ts'

interface Entry {
  view: CheckView
  readonly file: string
  readonly id: string | undefined
  search: Search | undefined
}

/** The text of a source file; undefined when there is none. */
export type ReadSource = (file: string) => string | undefined

export class CheckList {
  protected readonly entries: Entry[] = []
  protected readonly sources: Record<string, string> = {}
  private readonly listeners = new Set<() => void>()
  private isOver = false
  private readonly read: ReadSource

  constructor(read: ReadSource) {
    this.read = read
  }

  get data(): CheckerData {
    return { checks: this.entries.map(({ view }) => view), over: this.isOver, sources: this.sources }
  }

  /** Calls `listener` after each change. Returns the function that ends it. */
  follow(listener: () => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** A check begins. Returns its number. `id`: by which its file finds it again. */
  begin(file: string, name: string, id?: string): number {
    const view: CheckView = {
      name,
      file: shorten(file),
      status: 'running',
      why: '',
      explorer: '',
      executions: 0,
      redundant: 0,
      steps: 0,
      depth: 0,
      seconds: 0,
      fraction: 0,
      outcomes: [],
      shape: undefined,
      execution: undefined,
      fixed: '',
    }
    this.entries.push({ view, file, id, search: undefined })
    this.changed()
    return this.entries.length - 1
  }

  /** How far a search is. */
  progress(check: number, result: CheckResult, search: unknown): void {
    this.set(check, 'running', result, search, undefined, '')
  }

  /** A check has ended. The steps are those of its failure. */
  end(check: number, result: CheckResult, steps: readonly RecordedStep[], search: unknown): void {
    const { failure } = result
    let execution: Execution | undefined
    let fixed = ''
    if (failure !== undefined && failure.kind !== 'unreached-outcome') {
      if (search instanceof Search) {
        execution = failingExecution(search, failure)
        this.entries[check].search = search
      } else {
        fixed = 'Only an interleaving of threads over sequential memory can be put into another order.'
      }
      execution ??= plainExecution(result.threads, steps, failure)
      for (const { file } of execution.steps) this.addSource(file)
    }
    this.set(check, result.outcome, result, search, execution, fixed)
  }

  wrong(check: number, { code, message }: CheckError): void {
    const entry = this.entries[check]
    entry.view = { ...entry.view, status: 'wrong', why: `${message} [${code}]` }
    this.changed()
  }

  over(): void {
    this.isOver = true
    this.changed()
  }

  /** Answers a page that asks for another schedule. Never throws. */
  answer(data: unknown): RerunReply {
    try {
      const { check, schedule, firm } = asRerunRequest(data)
      const search = this.entries[check]?.search
      if (search === undefined) return { error: `check ${check} has no execution that can run again` }
      return rerun(search, parseSchedule(schedule), firm)
    } catch (error) {
      return { error: (error as Error).message }
    }
  }

  private set(
    check: number,
    status: CheckStatus,
    result: CheckResult,
    search: unknown,
    execution: Execution | undefined,
    fixed: string,
  ): void {
    const entry = this.entries[check]
    entry.view = {
      name: entry.view.name,
      file: entry.view.file,
      status,
      why: result.complete ? '' : result.why,
      explorer: result.explorer,
      executions: result.executions,
      redundant: result.redundant,
      steps: result.steps,
      depth: result.depth,
      seconds: result.seconds,
      fraction: result.fraction,
      outcomes: result.outcomes ?? [],
      shape: search instanceof Search ? search.shape : undefined,
      execution,
      fixed,
    }
    this.changed()
  }

  private addSource(file: string): void {
    if (file === '' || this.sources[file] !== undefined) return
    const text = this.read(file)
    // Without it, the page says that it has no source for these steps.
    if (text !== undefined) this.sources[file] = text
  }

  private changed(): void {
    for (const listener of this.listeners) listener()
  }
}
