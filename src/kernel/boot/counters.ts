import type { ArenaPlan, Region } from '../../arena/memory/arena.ts'
import { type Layout, LINE_WORDS, ownLine, record, word } from '../../arena/memory/record.ts'
import { Job } from '../spawn/job.ts'
import type { KernelView } from './view.ts'

/** Words of the kernel as a whole. Atomic, from any thread. */
export const Counters: Layout<'jobs' | 'kills' | 'deadlocks'> = record('counters', {
  /** Jobs ever made: where their numbers come from. */
  jobs: ownLine(word),
  /** Kills ever asked for: the booting thread sees that there are new ones to keep the time of. */
  kills: ownLine(word),
  /** Deadlocks ever found: the booting thread sees that there is one to tell of (deadlock.ts). */
  deadlocks: ownLine(word),
})

/**
 * How many jobs have no outcome yet: those spawned less those ended. Each thread counts its own, so that no
 * two write one word and a thread that dies in the middle leaves no doubt: the job has the number that the
 * thread's word goes to next.
 *
 *   spawn                                     end
 *   (A) job.spawnCount = spawned + 1          (C) job.endCount = ended + 1
 *   (B) spawned = job.spawnCount              (D) ended = job.endCount
 *
 * A job that nobody holds any more when it ends is counted by the booting thread, once that has seen to it
 * (outcome.ts): while a failure is still to be told, something is active.
 *
 * Dead between the two of a pair, the word is one behind what the job says: it was not counted. Whoever adds
 * them all up reads what has ended first: then nothing counts as ended that does not count as spawned.
 */
const SPAWNED_COUNT = 0
const ENDED_COUNT = 1
/** Beside them, a payload: what a thread has to tell of a deadlock. */
const DEADLOCK = 2

export function reserveCounters(plan: ArenaPlan, cpus: number): Region {
  return plan.reserve('counters', Counters.words + (cpus + 1) * LINE_WORDS)
}

/** Where a thread counts: a CPU, or the booting thread, which is the last. */
function countsOf(view: KernelView, thread: number): number {
  const { counters, sizes } = view.plan
  return counters.start + Counters.words + Math.min(thread, sizes.cpus) * LINE_WORDS
}

/** Where a thread leaves what it says of a deadlock. */
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

/** How many jobs a thread has ended. */
export function endedBy(view: KernelView, thread: number): number {
  return Atomics.load(view.i32, countsOf(view, thread) + ENDED_COUNT)
}

/** Jobs that have no outcome yet, or one that nobody has been told. */
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

/** Recovery: a job that the dead CPU was spawning, and that nobody will run, is not counted. */
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
