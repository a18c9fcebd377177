import { CheckError } from '../errors.ts'
import { type CheckOptions, validateOptions } from '../run/options.ts'

/** What an asynchronous check may say about how it is explored. */
export interface AsyncCheckOptions
  extends Pick<
    CheckOptions,
    | 'explorer'
    | 'preemptions'
    | 'runs'
    | 'seed'
    | 'schedule'
    | 'steps'
    | 'turns'
    | 'allowIncomplete'
    | 'executions'
    | 'time'
    | 'rerun'
    | 'keepGoing'
    | 'shrink'
    | 'modules'
  > {
  /** What `Math.random()` may return: each value is tried at each call. Without it, a call is refused. */
  readonly random?: readonly number[]
  /**
   * When tasks start, in milliseconds of virtual time after the set-up; of a list, every time is tried for
   * each. Without it: at any time.
   */
  readonly starts?: number | readonly number[]
  /**
   * After how many milliseconds an execution that has not come back is stopped: a loop of microtasks without
   * an end. Default 10,000.
   */
  readonly patience?: number
}

const OWN = ['random', 'starts', 'patience'] as const

const SHARED: ReadonlySet<string> = new Set(
  'explorer preemptions runs seed schedule steps turns allowIncomplete executions time rerun keepGoing shrink modules'.split(
    ' ',
  ),
)

/** Says what is wrong with the options of an asynchronous check, before anything runs. */
export function validateAsyncOptions(options: AsyncCheckOptions): void {
  const { random, starts, patience, ...shared } = options
  const wrong = (text: string): CheckError => new CheckError('ERR_CHECK_OPTION', text)
  for (const name of Object.keys(shared)) {
    if (!SHARED.has(name)) {
      throw wrong(
        `there is no option \`${name}\` of an asynchronous check; there are ${[...SHARED, ...OWN].join(', ')}`,
      )
    }
  }
  validateOptions(shared)
  if (
    random !== undefined &&
    (!Array.isArray(random) || random.length === 0 || !random.every(x => x >= 0 && x < 1))
  ) {
    throw wrong(
      `\`random\` is ${JSON.stringify(random)}; it must be a list of numbers from 0 to below 1: what Math.random() may return`,
    )
  }
  if (starts !== undefined && !isDuration(starts)) {
    throw wrong(
      `\`starts\` is ${JSON.stringify(starts)}; it must be a number of milliseconds from 0 on, or a list of them`,
    )
  }
  if (patience !== undefined && !(Number.isInteger(patience) && patience > 0)) {
    throw wrong(`\`patience\` is ${String(patience)}; it must be a whole number of milliseconds`)
  }
}

/**
 * Of the options that a caller sets over those of a check, the ones that mean something to an asynchronous
 * one.
 */
export function asyncPart(options: CheckOptions): AsyncCheckOptions {
  return Object.fromEntries(Object.entries(options).filter(([name]) => SHARED.has(name)))
}

/** A number of milliseconds, or all that are to be tried. */
export function isDuration(value: unknown): value is number | readonly number[] {
  const all: unknown[] = Array.isArray(value) ? value : [value]
  return all.length > 0 && all.every(ms => typeof ms === 'number' && Number.isFinite(ms) && ms >= 0)
}
