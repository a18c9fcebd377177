import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Switch } from '../core/switch.ts'
import { ClockSlices } from './slices.ts'
import { TickSource } from './ticksource.ts'

test.each([
  { slice: 1, after: 100 },
  { slice: 10, after: 100 },
  { slice: 50, after: 500 },
])('a schedule with slices of $slice ms starts its thread when it was busy for $after ms', async row => {
  const now = (): number => performance.now()
  const source = new TickSource('auto', new Switch(new ClockSlices(now), row.slice, now))
  let workers = 0
  const count = (): void => void workers++
  process.on('worker', count)
  try {
    source.busy(row.after - 1)
    await setImmediate()
    expect(workers).toBe(0)
    source.busy(1)
    await setImmediate()
    expect(workers).toBe(1)
  } finally {
    process.off('worker', count)
    source.close()
  }
})
