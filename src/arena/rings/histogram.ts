import type { ArenaPlan, Region } from '../memory/arena.ts'
import { assert } from '../assert.ts'
import { LINE_WORDS, roundUp } from '../memory/record.ts'

/**
 * Latency histograms in the arena: log-linear, four buckets to each doubling of a microsecond, so a quantile
 * read from one is within an eighth of the true value. Each CPU has its own set, which it alone writes,
 * plainly; threads that are not CPUs share one and add to it atomically. A reader adds them up, at any time,
 * from any thread.
 */
const SUB_BITS = 2
const SUB = 1 << SUB_BITS
/** 0 to 2^31 microseconds: 36 minutes; longer times count as that. */
export const BUCKETS: number = (31 - SUB_BITS) * SUB + SUB
const WORDS = roundUp(BUCKETS, LINE_WORDS)

/** What is measured. */
export const WAKEUP_LATENCY = 0
export const QUEUE_WAIT = 1
export const LOCK_WAIT = 2
export const LOCK_HOLD = 3
export const SLICE_OVERRUN = 4
export const SPAWN_TO_START = 5
export const HISTOGRAMS = 6

export const histogramNames: readonly string[] = [
  'wakeup latency',
  'run-queue wait',
  'lock wait',
  'lock hold',
  'slice overrun',
  'spawn to start',
]

export interface HistogramPlan {
  readonly region: Region
  readonly cpus: number
}

export function reserveHistograms(plan: ArenaPlan, cpus: number): HistogramPlan {
  return { region: plan.reserve('histograms', (cpus + 1) * HISTOGRAMS * WORDS), cpus }
}

/** The bucket of a time in milliseconds. */
export function bucketOf(ms: number): number {
  const us = ms * 1000
  if (!(us >= 1)) return 0
  const whole = us >= 0x7fff_ffff ? 0x7fff_ffff : us | 0
  const power = 31 - Math.clz32(whole)
  if (power < SUB_BITS) return whole
  return ((power - SUB_BITS) << SUB_BITS) + (whole >>> (power - SUB_BITS))
}

/** The least time in a bucket, in milliseconds. */
export function bucketStart(bucket: number): number {
  if (bucket < SUB) return bucket / 1000
  const power = (bucket >>> SUB_BITS) + SUB_BITS - 1
  return ((SUB + (bucket & (SUB - 1))) * 2 ** (power - SUB_BITS)) / 1000
}

/** Where a CPU's own histogram starts; -1: that of the threads which are not CPUs. */
function histogramAt(plan: HistogramPlan, cpu: number, which: number): number {
  assert(which >= 0 && which < HISTOGRAMS, 'there is no such histogram')
  const set = cpu < 0 ? plan.cpus : cpu
  return plan.region.start + (set * HISTOGRAMS + which) * WORDS
}

/** Counts one time. `cpu`: the CPU that this thread is, or -1. */
export function countTime(
  i32: Int32Array,
  plan: HistogramPlan,
  cpu: number,
  which: number,
  ms: number,
): void {
  const at = histogramAt(plan, cpu, which) + bucketOf(ms)
  if (cpu >= 0) i32[at]++
  else Atomics.add(i32, at, 1)
}

/** A histogram as it stands: all CPUs and threads added up. */
export interface Histogram {
  /** How many, by bucket. */
  readonly counts: readonly number[]
  readonly count: number
}

export function readHistogram(i32: Int32Array, plan: HistogramPlan, which: number): Histogram {
  const counts = Array.from({ length: BUCKETS }, () => 0)
  let count = 0
  for (let cpu = -1; cpu < plan.cpus; cpu++) {
    const at = histogramAt(plan, cpu, which)
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      const n = Atomics.load(i32, at + bucket) >>> 0
      counts[bucket] += n
      count += n
    }
  }
  return { counts, count }
}

/** The quantile `q` in milliseconds: the middle of its bucket. NaN without any times. */
export function histogramQuantile(histogram: Histogram, q: number): number {
  if (histogram.count === 0) return Number.NaN
  let left = Math.max(1, Math.ceil(histogram.count * q))
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    left -= histogram.counts[bucket]
    if (left <= 0) return (bucketStart(bucket) + bucketStart(bucket + 1)) / 2
  }
  return bucketStart(BUCKETS)
}
