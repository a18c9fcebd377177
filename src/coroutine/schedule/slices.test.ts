import { describe, expect, test } from 'vitest'
import { ClockSlices } from './slices.ts'

/** A clock that counts how often it is read. */
function clock(): { now: () => number; reads: number; time: number } {
  const counting = {
    time: 0,
    reads: 0,
    now: () => {
      counting.reads++
      return counting.time
    },
  }
  return counting
}

describe('slices by the clock', () => {
  test.each([0.000_01, 0.0001, 0.001, 0.01])(
    'end on time, and read the clock some hundred times, with a safepoint every %f ms',
    every => {
      const counting = clock()
      const slices = new ClockSlices(counting.now)
      slices.begin(0, 10)
      let safepoints = 0
      for (; !slices.isOver(); safepoints++) counting.time += every
      expect(counting.time).toBeGreaterThanOrEqual(10)
      // A hundredth of the slice late at most, or 256 safepoints.
      expect(counting.time).toBeLessThan(10 + Math.max(0.1, 256 * every))
      expect(counting.reads).toBeLessThan(Math.min(safepoints / 10, 4500) + 400)
      if (every <= 0.001) expect(counting.reads).toBeLessThan(safepoints / 3)
    },
  )

  test('read the clock at every safepoint again once safepoints have become rare', () => {
    const counting = clock()
    const slices = new ClockSlices(counting.now)
    slices.begin(0, 10)
    for (let i = 0; i < 50_000; i++) {
      counting.time += 0.0001
      slices.isOver()
    }
    // At 5 ms each safepoint begins to take 0.2 ms: 256 of them at most go by before someone looks.
    const before = counting.reads
    let late = 0
    while (counting.reads === before) {
      counting.time += 0.2
      if (slices.isOver()) break
      late++
    }
    expect(late).toBeLessThan(256)
    slices.begin(counting.time, counting.time + 10)
    const start = counting.reads
    for (let i = 0; i < 40; i++) {
      counting.time += 0.2
      slices.isOver()
    }
    expect(counting.reads - start).toBe(40)
  })

  test('within a slice, go back to every safepoint after one that came late', () => {
    const counting = clock()
    const slices = new ClockSlices(counting.now)
    slices.begin(0, 1000)
    for (let i = 0; i < 100_000; i++) {
      counting.time += 0.0001
      slices.isOver()
    }
    for (let i = 0; i < 300; i++) {
      counting.time += 0.5
      slices.isOver()
    }
    // The distance doubles again only while looks come too often.
    for (let i = 0; i < 20; i++) {
      counting.time += 12
      slices.isOver()
    }
    const start = counting.reads
    for (let i = 0; i < 20; i++) {
      counting.time += 12
      slices.isOver()
    }
    expect(counting.reads - start).toBe(20)
  })

  test('that were asked read the clock at the very next safepoint', () => {
    const counting = clock()
    const slices = new ClockSlices(counting.now)
    slices.begin(0, 10)
    for (let i = 0; i < 50_000; i++) {
      counting.time += 0.0001
      slices.isOver()
    }
    slices.isOver()
    const before = counting.reads
    slices.ask()
    slices.isOver()
    expect(counting.reads).toBe(before + 1)
  })
})
