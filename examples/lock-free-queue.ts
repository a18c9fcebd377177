/**
 * Checking your own lock-free code: a queue for one producer and one consumer, written as one would at first,
 * and as it has to be.
 *
 *     npm run example lock-free-queue
 *
 * is the same as `heddle check examples/lock-free-queue/queue.check.ts`. Every interleaving of the two
 * threads is tried; the one that loses a message is printed with the lines that it went through.
 */
import { showChecks } from './checks/show.ts'

await showChecks(
  new URL('./lock-free-queue/queue.check.ts', import.meta.url),
  'The first queue loses a message: `tail` is raised before the slot is written. The second writes first, and passes.',
)
