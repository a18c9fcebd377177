/** The races of the ext class, explored in full. The broken variants are in extraces.test.ts. */
import { check } from '../../checker/check.ts'
import { MORTAL_CPU } from '../../../testing/sched/death.ts'
import {
  consumeAgainstStop,
  deathOfEjector,
  deathOfLoader,
  dispatchAgainstAffinity,
  idleAgainstDispatch,
  startAgainstEject,
  twoConsumers,
  twoEjectors,
} from '../../../testing/sched/fixtures/extraces.ts'

check('two CPUs take one task from a queue', { rerun: false }, twoConsumers())
check('a CPU takes a task that is stopped', { rerun: false }, consumeAgainstStop())
// A mask is read first without a lock, as a hint, and again under the lock.
check('a task is placed while its mask changes', { races: false, rerun: false }, dispatchAgainstAffinity())
check('a CPU goes idle while a task is queued', { rerun: false }, idleAgainstDispatch())
// The class of a new task is read without its lock. It may change, and then the class that the task joins is
// notified.
check('a task starts while its policy is ejected', { races: false, rerun: false }, startAgainstEject())
check('two threads eject one policy', { rerun: false }, twoEjectors())
check(
  'a CPU dies while it ejects a policy',
  { crashes: MORTAL_CPU, steps: 50_000, rerun: false },
  deathOfEjector(),
)
check(
  'a CPU dies while it loads a policy',
  { crashes: MORTAL_CPU, steps: 50_000, rerun: false },
  deathOfLoader(),
)
