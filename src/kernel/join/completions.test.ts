import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { found } from '../../checker/check.ts'
import {
  dieWhileItEnds,
  endAgainstSleep,
  looksTooEarly,
  trustsTheWord,
} from '../../../testing/kernel/completionprograms.ts'
import { Completions, COMPLETIONS_WORDS } from './completions.ts'
import { Job } from '../spawn/job.ts'

test('a booting thread that looks at the list before it says that it sleeps forgets a job', () => {
  expect(found(() => endAgainstSleep(false, false, looksTooEarly))).toMatch('does not sleep on')
})

test('a recovery that trusts the word of a CPU which died before its notify leaves the booting thread asleep', () => {
  const crashes = { max: 1, threads: ['CPU'] }
  expect(found(() => dieWhileItEnds(trustsTheWord), { crashes })).toMatch('asleep')
})

/** A list, and a function that ends the next of many jobs. */
function makeCompletions() {
  const plan = new ArenaPlan()
  const region = plan.reserve('completions', COMPLETIONS_WORDS)
  const jobs = plan.reserve('jobs', 200 * Job.words)
  const completions = new Completions(Arena.create(plan).i32, region)
  let at = jobs.start
  const end = (now: number): boolean => completions.push((at += Job.words), now)
  return { completions, end }
}

test('jobs that end in quick succession wake a dozing thread once for many of them', () => {
  const { completions, end } = makeCompletions()
  end(1)
  let woken = 0
  completions.take()
  for (let job = 1; job <= 128; job++) {
    if (completions.fallAsleep(true) && end(1 + job / 1000)) woken++
    completions.take()
  }
  expect(woken).toBe(2)
})

test('the last job, jobs with time between them, and any job of a thread that sleeps wake it at once', () => {
  const { completions, end } = makeCompletions()
  end(1)
  const wakes = (dozes: boolean, now: number): boolean => {
    completions.take()
    completions.fallAsleep(dozes)
    return end(now)
  }
  expect(wakes(true, 1.01)).toBe(false)
  expect(wakes(true, Infinity)).toBe(true)
  expect(wakes(true, 1.02)).toBe(true)
  expect(wakes(true, 1.03)).toBe(false)
  expect(wakes(true, 2)).toBe(true)
  expect(wakes(false, 2.01)).toBe(true)
})
