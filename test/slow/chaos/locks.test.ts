import { expect, test } from 'vitest'
import { lockChaos } from './lockchaos.ts'

const long = process.env.HEDDLE_LONG === '1'
const RUNS = long ? 20 : 1
const TASKS = long ? 3000 : 400
const DEATHS = long ? 60 : 8

const first = Number(process.env.HEDDLE_SEED ?? Date.now() % 1_000_000)

test.each(Array.from({ length: RUNS }, (_, run) => first + run))(
  'locks of every kind, tasks of every priority, and CPUs that die as fast as they restart: one outcome for each task, and the kernel still serves, seed %i',
  async seed => {
    const { deaths, outcomes, unexpected } = await lockChaos({ seed, tasks: TASKS, deaths: DEATHS })
    expect(unexpected).toEqual([])
    // Only the chaos itself, and evictions, end a CPU.
    expect(deaths.map(({ why }) => why.slice(0, 10)).filter(why => why !== 'terminated')).toEqual([])
    expect(Object.values(outcomes).reduce((sum, count) => sum + count, 0)).toBe(TASKS)
  },
  600_000,
)
