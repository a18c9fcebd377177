import { CheckError } from '../errors.ts'
import { Random } from '../search/random.ts'
import type { Chooser } from './execution.ts'

/** A chooser for a sequence of executions. */
export interface AsyncExplorer extends Chooser {
  /** The choices of this execution. */
  readonly taken: readonly number[]
  begin(): void
  /** Called after an execution. True if there is another one. */
  advance(): boolean
  /** The part of the search that is done, from 0 to 1. */
  readonly fraction: number
}

interface Point {
  readonly options: number
  readonly among: string
  taken: number
}

/**
 * All orders, depth first; or, with a bound, those with at most that many choices that are not the oldest
 * event.
 */
export class AllOrders implements AsyncExplorer {
  private readonly points: Point[] = []
  private at = 0
  private readonly bound: number

  constructor(bound: number = Number.POSITIVE_INFINITY) {
    this.bound = bound
  }

  get taken(): number[] {
    return this.points.slice(0, this.at).map(({ taken }) => taken)
  }

  begin(): void {
    this.at = 0
  }

  pick(options: number, among: string): number {
    if (this.at === this.points.length) this.points.push({ options, among, taken: 0 })
    const point = this.points[this.at++]
    if (point.options !== options || point.among !== among) throw differs(point.among, among)
    return point.taken
  }

  advance(): boolean {
    const { points, bound } = this
    if (this.at < points.length) throw differs(points[this.at].among, 'nothing')
    let others = points.filter(({ taken }) => taken > 0).length
    for (let point = points.pop(); point !== undefined; point = points.pop()) {
      if (point.taken > 0) others--
      if (point.taken + 1 < point.options && others < bound) {
        point.taken++
        points.push(point)
        return true
      }
    }
    return false
  }

  get fraction(): number {
    let done = 0
    let share = 1
    for (const { taken, options } of this.points) {
      share /= options
      done += share * taken
    }
    return done
  }
}

/** A number of random orders, or one order: always the oldest event. */
export class SomeOrders implements AsyncExplorer {
  taken: number[] = []
  private run = 0
  private readonly runs: number
  private readonly random: Random | undefined

  constructor(runs: number, seed?: number) {
    this.runs = runs
    this.random = seed === undefined ? undefined : new Random(seed)
  }

  begin(): void {
    this.taken = []
  }

  pick(options: number): number {
    const chosen = this.random?.below(options) ?? 0
    this.taken.push(chosen)
    return chosen
  }

  advance(): boolean {
    return ++this.run < this.runs
  }

  get fraction(): number {
    return this.run / this.runs
  }
}

/** One order, as a report printed it. After its end the oldest event comes first. */
export class GivenOrder implements AsyncExplorer {
  taken: number[] = []
  readonly fraction = 0
  private readonly given: readonly number[]

  constructor(given: readonly number[]) {
    this.given = given
  }

  begin(): void {
    this.taken = []
  }

  pick(options: number): number {
    const at = this.taken.length
    const chosen = this.given[at] ?? 0
    if (chosen >= options) {
      throw new CheckError(
        'ERR_CHECK_SCHEDULE',
        `choice ${at + 1} of the schedule is ${chosen}, and only ${options} events may come next: the schedule belongs to another program`,
      )
    }
    this.taken.push(chosen)
    return chosen
  }

  advance(): boolean {
    return false
  }
}

/** The same choices led to different events. */
export function differs(before: string, now: string): CheckError {
  const said = (text: string): string => text.replaceAll(/(^|\|)-?\d+ /g, '$1').replaceAll('|', ', ')
  return new CheckError(
    'ERR_CHECK_NONDETERMINISTIC',
    `the same schedule ran differently the second time: first [${said(before)}], then [${said(now)}]. ` +
      'A check must depend on nothing but its schedule: create everything that changes in the set-up; state of a module (a cache, a counter, a pool) stays from one execution to the next',
  )
}
