/** A process that runs tests one after the other, and tells of each mode in which one fails. */
import { type Baseline, execute, type Mode, Realm } from './execute.ts'
import { readTest, type Test } from './tests.ts'

/** One test, by every mode that is asked for. */
export interface Order {
  suite: string
  path: string
  modes: Mode[]
  /** Each mode gets a realm of its own. Without, only what fails in a shared one does. */
  apart: boolean
}

export interface Failure {
  mode: Mode
  strict: boolean
  reason: string
}

export interface Report {
  path: string
  /** How many variants passed in plain Node, and so were run in each mode. */
  counted: Partial<Record<Mode, number>>
  failures: Failure[]
}

async function run({ suite, path, modes, apart }: Order): Promise<Report> {
  const counted: Report['counted'] = {}
  const failures: Failure[] = []
  for (const test of readTest(suite, path)) {
    const outcome = outcomes(suite, test, apart)
    const isGood = (await outcome('plain')) === null
    if (!isGood) continue
    const withStops = modes.some(mode => mode.endsWith('stops'))
    const isGoodWithStops = withStops && (await outcome('plain-stops')) === null
    for (const mode of modes) {
      if (mode.endsWith('stops') && !isGoodWithStops) continue
      const reason = await outcome(mode)
      if (reason === undefined) continue
      counted[mode] = (counted[mode] ?? 0) + 1
      if (reason !== null) failures.push({ mode, strict: test.strict, reason })
    }
  }
  return { path, counted, failures }
}

/**
 * Runs modes of one variant: in one realm, as making realms takes most of the time; and again alone where
 * that fails.
 */
function outcomes(
  suite: string,
  test: Test,
  apart: boolean,
): (mode: Mode | Baseline) => Promise<string | null | undefined> {
  const shared = apart ? null : new Realm(suite, test)
  return async mode => {
    const reason = shared === null ? '' : await execute(shared, test, mode)
    return typeof reason === 'string' ? execute(new Realm(suite, test), test, mode) : reason
  }
}

process.on('unhandledRejection', () => {
  // Tests leave promises behind on purpose.
})
process.on('uncaughtException', () => {
  // A job of the event loop that a test has left behind.
})
process.on('message', (order: Order) => {
  void run(order).then(report => process.send!(report))
})
process.send!('ready')
