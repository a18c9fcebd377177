/** A process that runs tests one after the other, and reports each mode in which a test fails. */
import { type Baseline, execute, type Mode, Realm } from './execute.ts'
import { readTest, type Test } from './tests.ts'

/** One test, in every requested mode. */
export interface Order {
  suite: string
  path: string
  modes: Mode[]
  /** Each mode gets its own realm. Otherwise only a failure in a shared realm does. */
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
 * Runs modes of one variant in one realm, because making realms takes most of the time. A failure is repeated
 * in its own realm.
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
  // An event loop job that a test has left behind.
})
process.on('message', (order: Order) => {
  void run(order).then(report => process.send!(report))
})
process.send!('ready')
