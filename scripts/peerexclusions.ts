/** A test of another pool that is not run against ours: about what it is made of, and not about what it does. */
export interface Exclusion {
  readonly file: string
  /** Its name; without one, the whole file. */
  readonly test?: string
  readonly reason: string
}

export const piscinaExclusions: readonly Exclusion[] = []
