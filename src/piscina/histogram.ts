import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'

const percentiles = [0.001, 0.01, 0.1, 1, 2.5, 10, 25, 50, 75, 90, 97.5, 99, 99.9, 99.99, 99.999] as const

type PercentileName =
  | 'p0_001'
  | 'p0_01'
  | 'p0_1'
  | 'p1'
  | 'p2_5'
  | 'p10'
  | 'p25'
  | 'p50'
  | 'p75'
  | 'p90'
  | 'p97_5'
  | 'p99'
  | 'p99_9'
  | 'p99_99'
  | 'p99_999'

/** Milliseconds. */
export type PiscinaHistogramSummary = Record<
  'average' | 'mean' | 'stddev' | 'min' | 'max' | PercentileName,
  number
>

export interface PiscinaHistogram {
  readonly runTime: PiscinaHistogramSummary
  readonly waitTime: PiscinaHistogramSummary
  resetRunTime(): void
  resetWaitTime(): void
}

/** Times in a histogram of whole microseconds, which cannot hold 0. */
export class Times {
  readonly #histogram: RecordableHistogram = createHistogram()

  record(ms: number): void {
    this.#histogram.record(Math.max(1, Math.trunc(ms * 1000)))
  }

  reset(): void {
    this.#histogram.reset()
  }

  /** The sum in milliseconds. */
  get total(): number {
    const { count, mean } = this.#histogram
    return count === 0 ? 0 : (mean / 1000) * count
  }

  get summary(): PiscinaHistogramSummary {
    const histogram = this.#histogram
    const { mean, stddev, min, max } = histogram
    const summary: Record<string, number> = {
      average: mean / 1000,
      mean: mean / 1000,
      stddev: stddev / 1000,
      min: min / 1000,
      max: max / 1000,
    }
    for (const percentile of percentiles) {
      summary[`p${String(percentile).replace('.', '_')}`] = histogram.percentile(percentile) / 1000
    }
    return summary as PiscinaHistogramSummary
  }
}
