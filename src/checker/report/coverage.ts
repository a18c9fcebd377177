/**
 * The statements and branches of the checked files that were reached, over all executions of all checks so
 * far.
 */

/**
 * A place that is counted: its line, its column, and its kind: a statement, or one side of a branch (`if`,
 * `else`, `?`, `&&` …).
 */
type Point = readonly [line: number, column: number, what: string]

interface Counted {
  readonly points: readonly Point[]
  /** How often each point was reached. A file that is loaded twice has two arrays. */
  readonly hits: Uint32Array[]
}

export interface Place {
  readonly line: number
  readonly column: number
  /** `statement`, or the side of the branch. */
  readonly what: string
  /** How often it was reached, including executions that were run again. */
  readonly hits: number
}

/** The coverage of one file, in the order of its source. */
export interface FileCoverage {
  readonly file: string
  readonly statements: readonly Place[]
  readonly branches: readonly Place[]
}

const key = Symbol.for('heddle.checker.coverage')
const holder = globalThis as unknown as Record<symbol, Map<string, Counted> | undefined>
/** Shared by every copy of this module in the process. */
const files: Map<string, Counted> = (holder[key] ??= new Map())

/** Called by a module that is instrumented with counters. Returns the array of its counters. */
export function cover(file: string, points: readonly Point[]): Uint32Array {
  const hits = new Uint32Array(points.length)
  const known = files.get(file)
  // A file that has changed since it was loaded (a test runner that watches) starts again at zero.
  if (known === undefined || JSON.stringify(known.points) !== JSON.stringify(points))
    files.set(file, { points, hits: [hits] })
  else known.hits.push(hits)
  return hits
}

/**
 * The coverage of each file that is instrumented with counters: see `heddle check --coverage` and the
 * plugin's `coverage`.
 */
export function coverage(): FileCoverage[] {
  return [...files]
    .map(([file, { points, hits }]) => {
      const places = points
        .map(([line, column, what], i) => ({
          line,
          column,
          what,
          hits: hits.reduce((sum, counts) => sum + counts[i], 0),
        }))
        .sort((a, b) => a.line - b.line || a.column - b.column)
      return {
        file,
        statements: places.filter(({ what }) => what === 'statement'),
        branches: places.filter(({ what }) => what !== 'statement'),
      }
    })
    .sort((a, b) => (a.file < b.file ? -1 : 1))
}
