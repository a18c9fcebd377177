import type { CheckOptions } from './options.ts'

/** The options of `heddle check`. */
export interface RunnerOptions {
  /** Run only the checks with this text in their name. */
  readonly only?: string
  /** Options that override those of a check. */
  readonly override?: CheckOptions
  /** A bound in milliseconds for each check that does not have one. */
  readonly time?: number
  /** Print one JSON object for each check instead of text. */
  readonly json?: boolean
  /** Where to write the failing execution as a timeline. */
  readonly timeline?: string
  /** Stop at the first check that fails. */
  readonly bail?: boolean
  /** Explore each check on this many worker threads. */
  readonly parallel?: number
  /** Explore this many checks at a time, each in a process of its own. Default 1: in this process. */
  readonly jobs?: number
  /** Use the results of earlier runs whose inputs are the same, and keep new ones. Default true. */
  readonly cache?: boolean
  /** Do not fail when a search did not cover everything. */
  readonly allowIncomplete?: boolean
  /** Count the coverage of the files, print it, and write it to a file: lcov, or JSON if the name ends so. */
  readonly coverage?: boolean
  readonly coverageFile?: string
  /** After how many seconds without progress the process is ended. Default 30. */
  readonly patience?: number
}

export function isCovering({ coverage, coverageFile }: RunnerOptions): boolean {
  return coverage === true || coverageFile !== undefined
}
