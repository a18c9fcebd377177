import { CheckError } from '../errors.ts'
import { type CheckOptions, validateOptions } from '../run/options.ts'

/** Options of an asynchronous check. */
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
  /** The values that `Math.random()` may return: each is tried at each call. Default: a call is refused. */
  readonly random?: readonly number[]
  /**
   * When tasks start, in milliseconds of virtual time after the set-up. Each time of a list is tried for each
   * task. Default: at any time.
   */
  readonly starts?: number | readonly number[]
  /**
   * After how many milliseconds an execution that does not return (an endless loop of microtasks) is stopped.
   * Default 10,000.
   */
  readonly patience?: number
}

const OWN = ['random', 'starts', 'patience'] as const

const SHARED: ReadonlySet<string> = new Set(
  'explorer preemptions runs seed schedule steps turns allowIncomplete executions time rerun keepGoing shrink modules'.split(
    ' ',
  ),
)

/** Throws a CheckError that says what is wrong with the options of an asynchronous check. */
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

/** The options of a caller that apply to an asynchronous check. */
export function asyncPart(options: CheckOptions): AsyncCheckOptions {
  return Object.fromEntries(Object.entries(options).filter(([name]) => SHARED.has(name)))
}

/** A number of milliseconds, or a list of numbers to try. */
export function isDuration(value: unknown): value is number | readonly number[] {
  const all: unknown[] = Array.isArray(value) ? value : [value]
  return all.length > 0 && all.every(ms => typeof ms === 'number' && Number.isFinite(ms) && ms >= 0)
}
