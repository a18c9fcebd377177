import { CheckError } from '../errors.ts'

export type ExplorerName = 'exhaustive' | 'preemption-bounded' | 'pct' | 'random' | 'round-robin' | 'replay'

/** What a check may say about how it is explored. */
export interface CheckOptions {
  /** Default: exhaustive, every trace once. */
  readonly explorer?: ExplorerName
  /** preemption-bounded: how many preemptions a schedule may have. Default 2. */
  readonly preemptions?: number
  /** pct: how many ordering constraints a bug may need. Default 3. */
  readonly depth?: number
  /** pct and random: how many executions. Default 1000. */
  readonly runs?: number
  /** pct and random: where the pseudo-random numbers start. Default 1. */
  readonly seed?: number
  /** round-robin: steps in a row. Default 1. */
  readonly quantum?: number
  /** replay: the schedule of a report. */
  readonly schedule?: string
  /** Crash points: how many threads may die, at any of their steps; and which ones may. Default: none. */
  readonly crashes?: number | { readonly max?: number; readonly threads?: readonly number[] }
  /** Report data races on plain accesses. Default true. */
  readonly races?: boolean
  /** An execution that is longer is cut off, and looked at for a livelock. Default 5000. */
  readonly steps?: number
  /**
   * Turns that a thread may take in a row, in a loop, that only read and change something of its own. Default
   * 16.
   */
  readonly turns?: number
  /** A search that did not cover everything is no error. Default false. */
  readonly allowIncomplete?: boolean
  /**
   * Stop after so many executions, or milliseconds; the result then says that the search was not complete.
   */
  readonly executions?: number
  readonly time?: number
  /**
   * Run each schedule a second time, to see that it does the same. Default true; false looks only at what is
   * replayed.
   */
  readonly rerun?: boolean
  /** Go on after a failure, and count: the result has the first failure. */
  readonly keepGoing?: boolean
  /** How many executions the search for a shorter schedule of a failure may take. Default 2000. */
  readonly shrink?: number
  /** Packages or files, beyond the check file and what it imports relatively, that are to be instrumented. */
  readonly modules?: readonly string[]
  /**
   * What memory does. Default `sequential`: accesses of all threads are in one order. `weak`: plain accesses
   * do whatever the memory model of the language allows, and data races are no failures; for two or three
   * threads of a few accesses.
   */
  readonly memory?: 'sequential' | 'weak'
  /** Outcomes (what `final` returns) each of which at least one execution must reach. */
  readonly expectOutcomes?: readonly unknown[]
  /** An outcome that is not among those expected is a failure. Default false. */
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

/** Says what is wrong with the options of a check, before anything runs. */
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

/** A search of weak memory has no schedules, and no thread dies in it. */
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
      `\`explorer\` is '${explorer}' beside \`memory: 'weak'\`, which explores every execution that the memory model allows and has no schedules; leave one of them out`,
    )
  }
  if (crashes !== undefined) {
    throw new CheckError(
      'ERR_CHECK_OPTION',
      "`crashes` beside `memory: 'weak'`: no thread dies there; leave one of them out",
    )
  }
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
