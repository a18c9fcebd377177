import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { CpuRecord, cpuRecord, MachineRecord, reserveMachine } from '../core/cpurecord.ts'
import { armSlice, keepTime, wakeTimekeeper } from './timekeeper.ts'

const MINUTE = 60_000

/** Minutes for which the process is stopped. A moment repeats after 36. */
test.each([11, 20, 30, 36, 50])(
  'a slice that ended while the process was stopped for %d minutes ends',
  stop => {
    const plan = new ArenaPlan()
    const region = reserveMachine(plan, 1)
    const { i32 } = Arena.create(plan)
    const cpu = cpuRecord(region, 0)
    let time = 1
    armSlice(i32, region, cpu, time + 5)
    const stopNow = (): void => {
      Atomics.store(i32, region.start + MachineRecord.shutdown, 1)
      wakeTimekeeper(i32, region)
    }
    const now = (): number => {
      // The second turn of the loop is the last.
      if (time > MINUTE) stopNow()
      return time
    }
    keepTime(i32, region, now, () => (time += stop * MINUTE))
    expect(Atomics.load(i32, cpu + CpuRecord.needResched)).toBe(1)
    expect(Atomics.load(i32, cpu + CpuRecord.sliceEnd)).toBe(0)
  },
)
