import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { reserveMachine } from '../../machine/core/cpurecord.ts'
import { WorkerCpu } from '../../machine/core/workercpu.ts'
import { FAIR_PRIORITY, makePriority } from './priority.ts'
import { RunQueue } from './runqueue.ts'
import { planScheduler, Scheduler } from './scheduler.ts'
import { SWITCH_YIELDS } from './switch.ts'
import { TurnClock } from './turnclock.ts'

const SHORT_MS = 0.0002
const LONG_MS = 1

/** How many short turns after a long one the clock is read at every switch, with 1,000 tasks. */
function measuredAfterLongTurn(priority: number): number {
  const plan = new ArenaPlan()
  const region = reserveMachine(plan, 1)
  const schedulerPlan = planScheduler(plan, { cpus: 1, tasks: 4 })
  let time = 1
  let readings = 0
  const cpu = new WorkerCpu(Arena.create(plan), region, 0, () => {
    readings++
    return time
  })
  const s = Scheduler.forCpu(schedulerPlan, cpu)
  s.initialize()
  s.i32[s.queue + RunQueue.taskCount] = 1000
  const clock = new TurnClock(s)
  const turn = (ms: number): void => {
    time += ms
    clock.atSwitch(SWITCH_YIELDS, priority)
  }
  for (let count = 0; count < 10_000; count++) turn(SHORT_MS)
  expect(s.turnsAreShort).toBe(true)
  turn(LONG_MS)
  for (let count = 0; s.turnsAreShort && count < 100; count++) turn(SHORT_MS)
  expect(s.turnsAreShort).toBe(false)
  const before = readings
  let turns = 0
  for (; !s.turnsAreShort && turns < 10_000; turns++) turn(SHORT_MS)
  expect(readings - before).toBe(turns)
  return turns
}

test('after a long turn FIFO tasks are measured for a few turns, however many they are', () => {
  expect(measuredAfterLongTurn(makePriority(8, 0))).toBeLessThan(100)
})

test('after a long turn fair tasks are measured for two rounds of the queue', () => {
  expect(measuredAfterLongTurn(FAIR_PRIORITY)).toBeGreaterThan(1900)
})
