/**
 * Checks that a lock-free stack behaves as a stack: every history of calls that run at the same time must
 * have an order in which a plain stack gives the same results.
 *
 *     npm run example linearizability
 *
 * is the same as `heddle check examples/linearizability/stack.check.ts`. The specification is one call,
 * `specifications.stack()`. The wrong version has the bug that is known as ABA.
 */
import { showChecks } from './checks/show.ts'

await showChecks(
  new URL('./linearizability/stack.check.ts', import.meta.url),
  'Ann reads the top node and the one below it, and is interrupted. Bob takes both nodes, and puts the first one back. Ann finds the same top, and makes the node below it, which Bob has, the top again: it is taken twice. The second version counts the changes of the top, and passes.',
)
