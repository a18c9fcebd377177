/** The pool's settings for the runner in a test process, as JSON in the environment. */
export const settingsVariable = 'HEDDLE_VITEST'

export interface Settings {
  /** The file of the project's own runner, if it has one. */
  readonly runner: string | null
  readonly importTimeout: number
}
