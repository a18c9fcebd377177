import { expect, test } from 'vitest'
import { durableChaos } from './durablechaos.ts'

const isLong = process.env.HEDDLE_LONG === '1'
const runs = isLong ? 2000 : 60
const time = isLong ? 60_000 : 8000
const seed = Number(process.env.HEDDLE_SEED ?? Date.now() % 1_000_000)

test(`workers that die, stop and drain, and a database that restarts: every run ends once, with the result of plain code, seed ${seed}`, async () => {
  const { mistakes, states } = await durableChaos({ seed, runs, time })
  expect(mistakes).toEqual([])
  expect(Object.values(states).reduce((sum, count) => sum + count, 0)).toBe(runs)
}, 900_000)
