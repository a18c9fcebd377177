/** The checks of a run as plain data: what a page shows, and what it may ask. */
import { CheckError } from '../errors.ts'
import type { Execution } from './execution.ts'
import type { ExploredShape } from '../search/explored.ts'
import type { Rerun } from '../search/rerun.ts'
import type { OutcomeCount } from '../spec/outcomes.ts'

/** `wrong`: the check itself could not be run. */
export type CheckStatus = 'running' | 'passed' | 'failed' | 'incomplete' | 'wrong'

export interface CheckView {
  readonly name: string
  readonly file: string
  readonly status: CheckStatus
  /** Why the search is incomplete, or what is wrong with the check. */
  readonly why: string
  readonly explorer: string
  readonly executions: number
  readonly redundant: number
  readonly steps: number
  readonly depth: number
  readonly seconds: number
  /** The part of the search that is done, from 0 to 1: an estimate until it is over. */
  readonly fraction: number
  readonly outcomes: readonly OutcomeCount[]
  readonly shape: ExploredShape | undefined
  readonly execution: Execution | undefined
  /** Why its steps cannot be put into another order; empty when they can. */
  readonly fixed: string
}

export interface CheckerData {
  readonly checks: readonly CheckView[]
  /** No further check follows. */
  readonly over: boolean
  /** The files that steps name, by path. */
  readonly sources: Readonly<Record<string, string>>
}

/** Runs an execution of a check with another schedule: see `rerun`. */
export interface RerunRequest {
  readonly check: number
  readonly schedule: string
  readonly firm: number
}

export type RerunReply = Rerun | { readonly error: string }

/** Throws when a message is not such a request: it comes from a page. */
export function asRerunRequest(data: unknown): RerunRequest {
  const { check, schedule, firm } = (data ?? {}) as Partial<Record<keyof RerunRequest, unknown>>
  if (!Number.isInteger(check) || typeof schedule !== 'string' || !Number.isInteger(firm)) {
    throw new CheckError(
      'ERR_CHECK_SCHEDULE',
      `${JSON.stringify(data)} is no request to run a schedule; give \`check\`, \`schedule\` and \`firm\``,
    )
  }
  return data as RerunRequest
}

/** A failing execution in a file, for `heddle view`. */
export interface SavedCheck {
  readonly format: 'heddle check'
  readonly version: 1
  /** The file of the check, to run it again. */
  readonly path: string
  /** Which check of the file it is; a file that an older heddle wrote does not say it. */
  readonly id?: string | undefined
  readonly data: CheckerData
}

/** The saved check in a JSON text; undefined when the text is something else. */
export function parseSavedCheck(text: string): SavedCheck | undefined {
  let saved: Partial<SavedCheck>
  try {
    saved = JSON.parse(text) as Partial<SavedCheck>
  } catch {
    return undefined
  }
  if (saved?.format !== 'heddle check') return undefined
  if (saved.version !== 1 || saved.data === undefined || typeof saved.path !== 'string') {
    throw new SyntaxError(
      `the file holds a check in format ${String(saved.version)}; this heddle reads format 1`,
    )
  }
  return saved as SavedCheck
}
