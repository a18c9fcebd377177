import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Arena, ArenaPlan } from '../memory/arena.ts'
import {
  BUCKETS,
  bucketOf,
  bucketStart,
  countTime,
  histogramQuantile,
  LOCK_WAIT,
  QUEUE_WAIT,
  readHistogram,
  reserveHistograms,
} from './histogram.ts'

describe('histograms', () => {
  it('puts every time into the bucket that spans it, an eighth wide at most either way', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 2_000_000, noNaN: true }), ms => {
        const bucket = bucketOf(ms)
        expect(bucket).toBeLessThan(BUCKETS)
        expect(bucketStart(bucket)).toBeLessThanOrEqual(ms)
        expect(bucketStart(bucket + 1)).toBeGreaterThan(Math.floor(ms * 1000) / 1000)
        if (ms >= 0.004) expect(bucketStart(bucket + 1) / bucketStart(bucket)).toBeLessThanOrEqual(1.25)
      }),
    )
  })

  it('has buckets that rise one by one', () => {
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      expect(bucketOf(bucketStart(bucket) + 1e-9)).toBe(bucket)
      expect(bucketStart(bucket + 1)).toBeGreaterThan(bucketStart(bucket))
    }
  })

  it('counts what does not fit, and what is no time, at the ends', () => {
    expect(bucketOf(Infinity)).toBe(BUCKETS - 1)
    expect(bucketOf(-3)).toBe(0)
    expect(bucketOf(Number.NaN)).toBe(0)
  })

  it('adds up all CPUs and the threads that are none, and keeps the kinds apart', () => {
    const plan = new ArenaPlan()
    const histograms = reserveHistograms(plan, 2)
    const { i32 } = Arena.create(plan)
    for (const cpu of [0, 1, -1, 1]) countTime(i32, histograms, cpu, QUEUE_WAIT, 5)
    countTime(i32, histograms, 0, QUEUE_WAIT, 100)
    const waits = readHistogram(i32, histograms, QUEUE_WAIT)
    expect(waits.count).toBe(5)
    expect(histogramQuantile(waits, 0.5)).toBeCloseTo(5, -0.2)
    expect(histogramQuantile(waits, 1)).toBeGreaterThan(87)
    expect(readHistogram(i32, histograms, LOCK_WAIT).count).toBe(0)
    expect(histogramQuantile(readHistogram(i32, histograms, LOCK_WAIT), 0.5)).toBeNaN()
  })
})
