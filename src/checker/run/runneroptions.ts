import type { CheckOptions } from './options.ts'

/** How `heddle check` was called. */
export interface RunnerOptions {
  /** Only the checks with this in their name. */
  readonly only?: string
  /** Over what a check says itself. */
  readonly override?: CheckOptions
  /** A bound for each check that does not have one: milliseconds. */
  readonly time?: number
  /** Print one JSON object for each check instead of text. */
  readonly json?: boolean
  /** Where to write the failing execution as a timeline. */
  readonly timeline?: string
  /** Stop at the first check that fails. */
  readonly bail?: boolean
  /** Explore each check on so many worker threads. */
  readonly parallel?: number
  /** Explore so many checks at a time, each in a process of its own. Default 1: in this process. */
  readonly jobs?: number
  /** Use the results of earlier runs whose inputs are the same, and keep new ones. Default true. */
  readonly cache?: boolean
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

export function isCovering({ coverage, coverageFile }: RunnerOptions): boolean {
  return coverage === true || coverageFile !== undefined
}
