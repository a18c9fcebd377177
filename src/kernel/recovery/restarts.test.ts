import { expect, test } from 'vitest'
import type { CpuDeath } from '../../machine/core/machine.ts'
import { DEATHS_MAX, Restarts } from './restarts.ts'

const death: CpuDeath = { cpu: 0, reason: 'exited', exitCode: 9 }

function rowOfDeaths(life: (restarts: Restarts, pass: (ms: number) => void) => void): number[] {
  let now = 0
  const restarts = new Restarts(
    () => 0,
    () => now,
  )
  const waits: number[] = []
  for (let n = 0; n < DEATHS_MAX; n++) {
    restarts.starts(0)
    life(restarts, ms => (now += ms))
    waits.push(restarts.died(death, 0))
  }
  return waits
}

test('a CPU that loads slowly and dies before it takes a task is in a crash loop', () => {
  expect(rowOfDeaths((_, pass) => pass(60_000))).toEqual([0, 50, 100, 200, 400, Infinity])
})

test('a CPU that dies soon after it took tasks is in a crash loop', () => {
  const waits = rowOfDeaths((restarts, pass) => {
    pass(60_000)
    restarts.isReady(0)
    pass(10)
  })
  expect(waits.at(-1)).toBe(Infinity)
})

test('after a CPU has taken tasks for a while, its next death is the first of a new row', () => {
  const waits = rowOfDeaths((restarts, pass) => {
    restarts.isReady(0)
    pass(60_000)
  })
  expect(waits).toEqual([0, 0, 0, 0, 0, 0])
})
