import { Arena, ArenaPlan } from '../../src/arena/memory/arena.ts'
import { assert } from '../../src/arena/assert.ts'
import { LINE_WORDS } from '../../src/arena/memory/record.ts'
import type { Program } from '../../src/checker/machine/program.ts'
import { Completions, COMPLETIONS_WORDS } from '../../src/kernel/join/completions.ts'
import { Job } from '../../src/kernel/spawn/job.ts'

type Side = Pick<Completions, 'push' | 'fallAsleep'>

/** Takes the sides of a CPU and of the booting thread, or broken ones. */
export type MakeSide = (completions: Completions, words: { i32: Int32Array; head: number }) => Side

const right: MakeSide = completions => completions

/**
 * Two CPUs end a job each while the booting thread falls asleep, or dozes. `streams`: the first CPU has just
 * ended another job, and has more tasks.
 */
export function endAgainstSleep(dozes: boolean, streams: boolean, make: MakeSide = right): Program {
  const plan = new ArenaPlan()
  const region = plan.reserve('completions', COMPLETIONS_WORDS)
  const jobs = plan.reserve('jobs', 3 * Job.words)
  const { i32 } = Arena.create(plan)
  const views = [0, 1, 2].map(() => new Completions(i32, region))
  if (streams) {
    views[0].push(jobs.start + 2 * Job.words, 1)
    views[2].take()
  }
  const sides = views.map(view => make(view, { i32, head: region.start }))
  return {
    threads: {
      streaming: () => sides[0].push(jobs.start, streams ? 1.01 : Infinity),
      other: () => sides[1].push(jobs.start + Job.words),
      booting: () => sides[2].fallAsleep(dozes),
    },
    final: () => {
      assert(!views[2].isForgotten, 'the booting thread does not sleep on while ended jobs wait for it')
    },
  }
}

/** Looks at the list before it says that it sleeps: (D) before (C). */
export const looksTooEarly: MakeSide = (completions, { i32, head }) => ({
  push: (job, now) => completions.push(job, now),
  fallAsleep(dozes) {
    if (Atomics.load(i32, head) !== 0) return false
    Atomics.store(i32, head + LINE_WORDS, dozes ? 2 : 1)
    return true
  },
})

/** The interruption that recovery makes on the booting thread, or a broken one. */
type Interrupt = (completions: Completions, words: { i32: Int32Array; asleep: number }) => void

/**
 * A CPU ends a job, and may die at any step of that. The booting thread sleeps until the job is there, or
 * until the recovery of the dead CPU wakes it.
 */
export function dieWhileItEnds(
  interrupt: Interrupt = completions => completions.interrupt(),
): Program & { recover: () => void } {
  const plan = new ArenaPlan()
  const region = plan.reserve('completions', COMPLETIONS_WORDS)
  const jobs = plan.reserve('jobs', Job.words)
  const recovered = plan.reserve('recovered', 1).start
  const { i32 } = Arena.create(plan)
  const [cpu, booting, recovering] = [0, 1, 2].map(() => new Completions(i32, region))
  const asleep = region.start + LINE_WORDS
  return {
    threads: {
      CPU: () => cpu.push(jobs.start),
      booting: () => {
        // It recovers itself: it does not sleep when that is over, and the job was found by its outcome.
        if (booting.fallAsleep(false) && Atomics.load(i32, recovered) === 0) Atomics.wait(i32, asleep, 1)
      },
    },
    recover: () => {
      Atomics.store(i32, recovered, 1)
      interrupt(recovering, { i32, asleep })
    },
  }
}

/** Notifies only if no other thread has said that the booting thread is awake. */
export const trustsTheWord: Interrupt = (_, { i32, asleep }) => {
  if (Atomics.exchange(i32, asleep, 0) !== 0) Atomics.notify(i32, asleep)
}
