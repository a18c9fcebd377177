import { show } from '../../coroutine/core/knownoptions.ts'
import { CheckError } from '../errors.ts'

export type ExplorerName = 'exhaustive' | 'preemption-bounded' | 'pct' | 'random' | 'round-robin' | 'replay'

/** Options of a check. */
export interface CheckOptions {
  /** How schedules are chosen. Default: exhaustive, every trace once. */
  readonly explorer?: ExplorerName
  /** preemption-bounded: how many preemptions a schedule may have. Default 2. */
  readonly preemptions?: number
  /** pct: how many ordering constraints a bug may need. Default 3. */
  readonly depth?: number
  /** pct and random: how many executions. Default 1000. */
  readonly runs?: number
  /** pct and random: the seed of the pseudo-random numbers. Default 1. */
  readonly seed?: number
  /** round-robin: steps in a row. Default 1. */
  readonly quantum?: number
  /** replay: the schedule of a report. */
  readonly schedule?: string
  /**
   * Crash points: how many threads may die, at any of their steps, and which ones may, by position or name.
   * Default: none.
   */
  readonly crashes?: number | { readonly max?: number; readonly threads?: readonly (number | string)[] }
  /** Report data races on plain accesses. Default true. */
  readonly races?: boolean
  /** A longer execution is cut off, and checked for a livelock. Default 5000. */
  readonly steps?: number
  /**
   * How many turns of a loop in a row a thread may take that only read and change its own state. Default 16.
   */
  readonly turns?: number
  /** Do not fail when the search did not cover everything. Default false. */
  readonly allowIncomplete?: boolean
  /**
   * Stop after this many executions, or milliseconds. The result then says that the search was not complete.
   */
  readonly executions?: number
  readonly time?: number
  /**
   * Run each schedule a second time, to check that it is deterministic. Default true; false checks only
   * schedules that are replayed.
   */
  readonly rerun?: boolean
  /** Continue after a failure, and count: the result has the first failure. */
  readonly keepGoing?: boolean
  /** How many executions the search for a shorter schedule of a failure may take. Default 2000. */
  readonly shrink?: number
  /** Packages or files to instrument, in addition to the check file and its relative imports. */
  readonly modules?: readonly string[]
  /**
   * The memory model. Default `sequential`: the accesses of all threads are in one order. `weak`: plain
   * accesses may do all that the memory model of the language allows, and data races are not failures; for
   * two or three threads of a few accesses.
   */
  readonly memory?: 'sequential' | 'weak'
  /** Outcomes (results of `final`) that must each be reached by at least one execution. */
  readonly expectOutcomes?: readonly unknown[]
  /** Fail on an outcome that is not in `expectOutcomes`. Default false. */
  readonly onlyOutcomes?: boolean
  /** Worker threads that explore together. `heddle check --parallel` sets it. Default 1. */
  readonly parallel?: number
}

const KNOWN: ReadonlySet<string> = new Set([
  'explorer',
  'preemptions',
  'depth',
  'runs',
  'seed',
  'quantum',
  'schedule',
  'crashes',
  'races',
  'steps',
  'turns',
  'allowIncomplete',
  'executions',
  'time',
  'rerun',
  'keepGoing',
  'shrink',
  'modules',
  'memory',
  'expectOutcomes',
  'onlyOutcomes',
  'parallel',
])

const EXPLORERS: readonly string[] = [
  'exhaustive',
  'preemption-bounded',
  'pct',
  'random',
  'round-robin',
  'replay',
]

/** Throws a CheckError that says what is wrong with the options of a check. */
export function validateOptions(options: CheckOptions): void {
  for (const name of Object.keys(options)) {
    if (!KNOWN.has(name)) {
      throw new CheckError(
        'ERR_CHECK_OPTION',
        `there is no option \`${name}\`; a check knows ${[...KNOWN].join(', ')}`,
      )
    }
  }
  const { explorer } = options
  if (explorer !== undefined && !EXPLORERS.includes(explorer)) {
    throw new CheckError(
      'ERR_CHECK_OPTION',
      `there is no explorer '${explorer}'; there are ${EXPLORERS.join(', ')}`,
    )
  }
  for (const name of ['races', 'allowIncomplete', 'rerun', 'keepGoing', 'onlyOutcomes'] as const) {
    const value: unknown = options[name]
    if (value === undefined || typeof value === 'boolean') continue
    throw new CheckError('ERR_CHECK_OPTION', `\`${name}\` is ${String(value)}; give true or false`)
  }
  validateMemory(options)
  validateOutcomes(options)
  validateCrashes(options)
  validateModules(options)
  const lowest = {
    preemptions: 0,
    depth: 1,
    runs: 1,
    seed: 0,
    quantum: 1,
    steps: 1,
    turns: 1,
    executions: 1,
    time: 0,
    shrink: 0,
    parallel: 1,
  }
  for (const [name, least] of Object.entries(lowest)) {
    const value = (options as Record<string, unknown>)[name]
    if (value === undefined) continue
    if (typeof value !== 'number' || !(value >= least) || (name !== 'time' && !Number.isInteger(value))) {
      throw new CheckError(
        'ERR_CHECK_OPTION',
        `\`${name}\` is ${String(value)}; it must be ${name === 'time' ? 'a number of milliseconds' : 'a whole number'} of at least ${least}`,
      )
    }
  }
  if (explorer === 'replay' && options.schedule === undefined) {
    throw new CheckError(
      'ERR_CHECK_OPTION',
      'to replay, give the `schedule` that the report of the failure printed',
    )
  }
}

/** A search of weak memory has no schedules and no crashes. */
function validateMemory({ memory, explorer, crashes }: CheckOptions): void {
  if (memory !== undefined && memory !== 'sequential' && memory !== 'weak') {
    throw new CheckError(
      'ERR_CHECK_OPTION',
      `\`memory\` is ${JSON.stringify(memory)}; it must be 'sequential' or 'weak'`,
    )
  }
  if (memory !== 'weak') return
  if (explorer !== undefined && explorer !== 'exhaustive') {
    throw new CheckError(
      'ERR_CHECK_OPTION',
      `\`explorer\` is '${explorer}' with \`memory: 'weak'\`, which explores every execution that the memory model allows and has no schedules; leave one of them out`,
    )
  }
  if (crashes !== undefined) {
    throw new CheckError(
      'ERR_CHECK_OPTION',
      "`crashes` with `memory: 'weak'`: no thread dies there; leave one of them out",
    )
  }
}

/** The threads are known only after the set-up: `crashPlans` looks for them. */
function validateCrashes({ crashes }: CheckOptions): void {
  if (crashes === undefined || isCount(crashes)) return
  if (typeof crashes === 'object' && crashes !== null && !Array.isArray(crashes)) {
    const { max = 1, threads, ...others } = crashes
    const isList =
      threads === undefined ||
      (Array.isArray(threads) &&
        threads.length > 0 &&
        threads.every(thread => typeof thread === 'string' || isCount(thread)))
    if (isCount(max) && isList && Object.keys(others).length === 0) return
  }
  throw new CheckError(
    'ERR_CHECK_OPTION',
    `\`crashes\` is ${show(crashes)}; it must be how many threads may die, or \`{ max, threads }\`, where \`threads\` lists positions or names of threads`,
  )
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0
}

function validateModules({ modules }: CheckOptions): void {
  if (modules === undefined) return
  if (Array.isArray(modules) && modules.every(name => typeof name === 'string')) return
  throw new CheckError(
    'ERR_CHECK_OPTION',
    `\`modules\` is ${show(modules)}; it must be a list of the names by which the check imports them`,
  )
}

function validateOutcomes({ expectOutcomes, onlyOutcomes }: CheckOptions): void {
  if (expectOutcomes !== undefined && !Array.isArray(expectOutcomes)) {
    throw new CheckError(
      'ERR_CHECK_OPTION',
      `\`expectOutcomes\` is ${String(expectOutcomes)}; it must be an array of what \`final\` may return`,
    )
  }
  if (onlyOutcomes === true && expectOutcomes === undefined) {
    throw new CheckError('ERR_CHECK_OPTION', '`onlyOutcomes` needs the outcomes: give `expectOutcomes` too')
  }
}
