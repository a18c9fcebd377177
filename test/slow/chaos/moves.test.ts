import { expect, test } from 'vitest'
import { moveChaos } from './movechaos.ts'

const TASKS = Number(process.env.HEDDLE_CHAOS ?? (process.env.HEDDLE_LONG ? 10_000 : 200))
const seed = Number(process.env.HEDDLE_SEED ?? Date.now() % 1_000_000)

test(`${TASKS} movable tasks on 4 CPUs that die, moved and written down at random, have the right result, seed ${seed}`, async () => {
  const { deaths, moves, outcomes, unexpected, left } = await moveChaos({ seed, tasks: TASKS })
  expect(unexpected).toEqual([])
  expect(left).toEqual({})
  // Copies and resumed tasks are more.
  expect(Object.values(outcomes).reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(TASKS)
  expect(outcomes['returned']).toBeGreaterThan(TASKS / 4)
  expect(deaths).toBeGreaterThan(0)
  expect(moves).toBeGreaterThan(0)
}, 1_800_000)
