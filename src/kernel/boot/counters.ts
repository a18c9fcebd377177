import type { ArenaPlan, Region } from '../../arena/memory/arena.ts'
import { type Layout, LINE_WORDS, ownLine, record, word } from '../../arena/memory/record.ts'
import { Job } from '../spawn/job.ts'
import type { KernelView } from './view.ts'

/** Counters of the whole kernel. Atomic, from any thread. */
export const Counters: Layout<'jobs' | 'deadlocks'> = record('counters', {
  /** Jobs created so far: the source of their numbers. */
  jobs: ownLine(word),
  /** Deadlocks found so far: the booting thread notices new ones and reports them (deadlock.ts). */
  deadlocks: ownLine(word),
})

/**
 * The number of jobs without an outcome: those spawned less those ended. Each thread has its own counts, so
 * that no two threads write one word, and a thread that dies in the middle leaves no doubt: the job stores
 * the next value of the thread's count.
 *
 *   spawn                                     end
 *   (A) job.spawnCount = spawned + 1          (C) job.endCount = ended + 1
 *   (B) spawned = job.spawnCount              (D) ended = job.endCount
 *
 * If nobody holds the handle of a job at its end, the booting thread counts it when it has handled it
 * (outcome.ts): the kernel stays active while a failure is still to be reported.
 *
 * If a thread dies between the two steps, its count is one less than the job's value: the job was not
 * counted. A reader of the sum reads the ended counts first, so that no job counts as ended but not as
 * spawned.
 */
const SPAWNED_COUNT = 0
const ENDED_COUNT = 1
/** Beside them a payload: the thread's report of a deadlock. */
const DEADLOCK = 2

export function reserveCounters(plan: ArenaPlan, cpus: number): Region {
  return plan.reserve('counters', Counters.words + (cpus + 1) * LINE_WORDS)
}

/** The counts of a thread: a CPU, or the booting thread, which is the last. */
function countsOf(view: KernelView, thread: number): number {
  const { counters, sizes } = view.plan
  return counters.start + Counters.words + Math.min(thread, sizes.cpus) * LINE_WORDS
}

/** The word of a thread's deadlock report. */
export function deadlockWord(view: KernelView, thread: number): number {
  return countsOf(view, thread) + DEADLOCK
}

export function countSpawned(view: KernelView, job: number): void {
  const { i32, thread } = view
  const at = countsOf(view, thread.id) + SPAWNED_COUNT
  const count = (i32[at] + 1) | 0
  i32[job + Job.spawnCount] = count // (A)
  Atomics.store(i32, at, count) // (B)
}

export function countEnded(view: KernelView, job: number): void {
  const { i32, thread } = view
  const at = countsOf(view, thread.id) + ENDED_COUNT
  const count = (i32[at] + 1) | 0
  i32[job + Job.endCount] = count // (C)
  Atomics.store(i32, at, count) // (D)
}

/** The number of jobs that a thread has ended. */
export function endedBy(view: KernelView, thread: number): number {
  return Atomics.load(view.i32, countsOf(view, thread) + ENDED_COUNT)
}

/** The number of jobs that all threads have spawned, modulo 2^32: it changes with each spawn. */
export function spawnedJobs(view: KernelView): number {
  let spawned = 0
  for (let thread = 0; thread <= view.plan.sizes.cpus; thread++)
    spawned += Atomics.load(view.i32, countsOf(view, thread) + SPAWNED_COUNT)
  return spawned | 0
}

/** Jobs without an outcome, or with one that was not reported yet. */
export function activeJobs(view: KernelView): number {
  const { i32 } = view
  const { cpus } = view.plan.sizes
  let active = 0
  for (let thread = 0; thread <= cpus; thread++)
    active -= Atomics.load(i32, countsOf(view, thread) + ENDED_COUNT)
  for (let thread = 0; thread <= cpus; thread++)
    active += Atomics.load(i32, countsOf(view, thread) + SPAWNED_COUNT)
  return active | 0
}

/** Recovery: a job that the dead CPU was spawning, and that no task will run, is not counted. */
export function uncountSpawned(view: KernelView, job: number, dead: number): void {
  const { i32 } = view
  const at = countsOf(view, dead) + SPAWNED_COUNT
  const count = i32[job + Job.spawnCount]
  if (count !== 0 && count === i32[at]) Atomics.store(i32, at, count - 1)
  i32[job + Job.spawnCount] = 0
}

/** Recovery: a job that the dead CPU was ending has not ended. */
export function uncountEnded(view: KernelView, job: number, dead: number): void {
  const { i32 } = view
  const at = countsOf(view, dead) + ENDED_COUNT
  const count = i32[job + Job.endCount]
  if (count !== 0 && count === i32[at]) Atomics.store(i32, at, count - 1)
  i32[job + Job.endCount] = 0
}
