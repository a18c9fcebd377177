import { expect, test } from 'vitest'
import { cpuAccount } from './account.ts'
import { Entity } from './entity.ts'
import { RunQueue } from './runqueue.ts'

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
