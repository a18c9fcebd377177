/**
 * Checks ordinary asynchronous code: a cache, a ticket sale and a session store, each in a naive version and
 * in a fixed one.
 *
 *     npm run example await-races
 *
 * is the same as `heddle check examples/await-races/races.check.ts`. The checker tries every order in which
 * the database, the payment service and the requests can answer. For each of the three naive versions it
 * prints the failing order with its lines.
 */
import { showChecks } from './checks/show.ts'

await showChecks(
  new URL('./await-races/races.check.ts', import.meta.url),
  'Both readers find the cache empty before the first load ends. Both buyers find the seat free before the first has paid. Both requests read the session before either writes it. The fixed versions pass.',
)
