/**
 * Checks lock-free code of your own: a queue for one producer and one consumer, in a wrong version and in a
 * correct one.
 *
 *     npm run example lock-free-queue
 *
 * is the same as `heddle check examples/lock-free-queue/queue.check.ts`. The checker tries every interleaving
 * of the two threads. It prints the one that loses a message, with its lines.
 */
import { showChecks } from './checks/show.ts'

await showChecks(
  new URL('./lock-free-queue/queue.check.ts', import.meta.url),
  'The first queue loses a message: it advances `tail` before it writes the slot. The second writes the slot first, and passes.',
)
