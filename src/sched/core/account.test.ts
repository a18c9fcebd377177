import { expect, test } from 'vitest'
import { cpuAccount } from './account.ts'
import { Entity } from './entity.ts'
import { RunQueue } from './runqueue.ts'
import { Simulation } from '../../../testing/sched/simulation.ts'
import { UNINTERRUPTIBLE } from './taskrecord.ts'
import { schedulerSleep } from '../../../testing/sched/tasks.ts'

/** Microseconds at which the high word changes. */
const HIGH_US = 2 ** 32

test('a time whose writer died in the middle of it is read, and never goes back', () => {
  const i32 = new Int32Array(new SharedArrayBuffer(RunQueue.words * 4))
  const busyTime = (): number => cpuAccount(i32, 0).busyTime
  const times: number[] = []
  i32[RunQueue.busyTimeLow] = -1
  times.push(busyTime())
  for (const [at, word] of [
    [RunQueue.busyTimeHigh, 1],
    [RunQueue.busyTimeLow, 5],
    [RunQueue.busyTimeCheck, 1],
  ]) {
    i32[at] = word
    times.push(busyTime())
  }
  expect(times).toEqual([HIGH_US - 1, HIGH_US, HIGH_US, HIGH_US + 5].map(us => us / 1000))
})

test('the words of a published time stand together', () => {
  for (const [high, low, check] of [
    [RunQueue.busyTimeHigh, RunQueue.busyTimeLow, RunQueue.busyTimeCheck],
    [Entity.runTimeHigh, Entity.runTimeLow, Entity.runTimeCheck],
    [Entity.waitTimeHigh, Entity.waitTimeLow, Entity.waitTimeCheck],
  ]) {
    expect([low, check]).toEqual([high + 1, high + 2])
  }
})

test('each wakeup is counted by its task, and by the CPU that it goes to', () => {
  const sim = new Simulation({ cpus: 2, seed: 3 })
  const { s } = sim
  for (let task = 0; task < 4; task++) {
    sim.fork(function* (context) {
      for (let turn = 0; turn < 5; turn++) yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 1)
    })
  }
  expect(sim.run()).toBe('idle')
  const accounts = [0, 1].map(cpu => cpuAccount(s.i32, s.queueOf(cpu)))
  expect(accounts[0].wakeups + accounts[1].wakeups).toBe(4 * (1 + 5))
})
