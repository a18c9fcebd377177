/**
 * Checking ordinary asynchronous code: a cache, a ticket sale and a session store, each as one would write it at first, and mended.
 *
 *     npm run example await-races
 *
 * is the same as `heddle check examples/await-races/races.check.ts`. Every order is tried in which the database, the payment service and
 * the requests can come; of each of the three that go wrong, the order is printed with the lines that it went through.
 */
import { runChecks } from '../src/checker/runner.ts'

const file = new URL('./await-races/races.check.ts', import.meta.url).pathname
let report = ''
const code = await runChecks(
  [file],
  { override: {} },
  { out: text => (report += text), err: text => void process.stderr.write(text), live: false },
)
console.log(report.trimEnd())
console.log(
  code === 1
    ? '\nThe cache is asked twice before the first answer; the seat is free for both until the first has paid; the session is read twice before it is written. The mended ones pass.'
    : `\nunexpected: the checks ended with ${code}`,
)
process.exitCode = code === 1 ? 0 : 1
