/**
 * Checking ordinary asynchronous code: a cache, a ticket sale and a session store, each as one would write it
 * at first, and mended.
 *
 *     npm run example await-races
 *
 * is the same as `heddle check examples/await-races/races.check.ts`. Every order is tried in which the
 * database, the payment service and the requests can come; of each of the three that go wrong, the order is
 * printed with the lines that it went through.
 */
import { showChecks } from './checks/show.ts'

await showChecks(
  new URL('./await-races/races.check.ts', import.meta.url),
  'The cache is asked twice before the first answer; the seat is free for both until the first has paid; the session is read twice before it is written. The mended ones pass.',
)
