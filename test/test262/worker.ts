/** A process that runs tests one after the other, and tells of each mode in which one fails. */
import { execute, type Mode } from './execute.ts'
import { readTest } from './tests.ts'

/** One test, by every mode that is asked for. */
export interface Order {
  suite: string
  path: string
  modes: Mode[]
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

async function run({ suite, path, modes }: Order): Promise<Report> {
  const counted: Report['counted'] = {}
  const failures: Failure[] = []
  for (const test of readTest(suite, path)) {
    const isGood = (await execute(suite, test, 'plain')) === null
    if (!isGood) continue
    const withStops = modes.some(mode => mode.endsWith('stops'))
    const isGoodWithStops = withStops && (await execute(suite, test, 'plain-stops')) === null
    for (const mode of modes) {
      if (mode.endsWith('stops') && !isGoodWithStops) continue
      const reason = await execute(suite, test, mode)
      if (reason === undefined) continue
      counted[mode] = (counted[mode] ?? 0) + 1
      if (reason !== null) failures.push({ mode, strict: test.strict, reason })
    }
  }
  return { path, counted, failures }
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
