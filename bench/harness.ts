/**
 * How every figure is measured: ours and its baseline run in the same process in turns, so that a disturbance
 * affects both. A round gives one ratio, and the row is the median over the rounds.
 */
export interface Row {
  /** `part/name`, the names of the table in the documentation. */
  readonly row: string
  readonly value: number
  readonly unit: string
  readonly against?: string
  readonly base?: number
  readonly ratio?: number
  readonly rounds: number
  /** First and third quartile of the ratio, or of the value where there is no baseline. */
  readonly spread: readonly [number, number]
  /** A point of a plot of growth: its series, its x, and the unit of x. */
  readonly series?: string
  readonly x?: number
  readonly xName?: string
  /** The target of the row, for the printed table. */
  readonly target?: Target
}

/**
 * `most`: the ratio is a cost, ours over the baseline's. `least`: the ratio is how many times better ours is.
 * `valueMost` beside it limits the value too.
 */
export type Target =
  | { readonly most: number }
  | { readonly least: number; readonly valueMost?: number }
  | { readonly valueMost: number }
  | { readonly valueLeast: number }

/** One part of the suite: `bench/<part>.ts` exports `rows`. */
export interface Part {
  rows(): AsyncIterable<Row>
  /** What this machine cannot measure, and why. */
  readonly omitted?: readonly string[]
}

/** Runs the work `count` times and returns nanoseconds per turn. */
export type Measure = () => number | Promise<number>

export interface Comparison {
  readonly row: string
  readonly against: string
  readonly ours: Measure
  readonly base: Measure
  readonly rounds?: number
  readonly unit?: string
  readonly target?: Target
}

/** Ours and its baseline, in interleaved rounds; the first round is discarded. */
export async function compare(comparison: Comparison): Promise<Row> {
  const { row, against, ours, base, rounds = 12, unit = 'ns', target } = comparison
  const better = target !== undefined && 'least' in target
  const values: number[] = []
  const bases: number[] = []
  const ratios: number[] = []
  for (let round = -1; round < rounds; round++) {
    const oursFirst = round % 2 === 0
    const first = await (oursFirst ? ours() : base())
    const second = await (oursFirst ? base() : ours())
    if (round < 0) continue
    const value = oursFirst ? first : second
    const baseline = oursFirst ? second : first
    values.push(value)
    bases.push(baseline)
    ratios.push(better ? baseline / value : value / baseline)
  }
  return comparedRow({ row, unit, against, target, values, bases, ratios })
}

/** The row of a comparison: medians over the rounds, and the quartiles of the ratios. */
export function comparedRow(of: {
  readonly row: string
  readonly unit: string
  readonly against: string
  readonly target: Target | undefined
  readonly values: readonly number[]
  readonly bases: readonly number[]
  readonly ratios: readonly number[]
}): Row {
  const { row, unit, against, target, values, bases, ratios } = of
  return {
    row,
    value: round3(median(values)),
    unit,
    against,
    base: round3(median(bases)),
    ratio: round3(median(ratios)),
    rounds: values.length,
    spread: [round3(quantile(ratios, 0.25)), round3(quantile(ratios, 0.75))],
    ...(target && { target }),
  }
}

/** A figure without a baseline. */
export async function measure(
  row: string,
  unit: string,
  ours: Measure,
  options: { rounds?: number; target?: Target } = {},
): Promise<Row> {
  const { rounds = 12, target } = options
  const values: number[] = []
  await ours()
  for (let round = 0; round < rounds; round++) values.push(await ours())
  return {
    row,
    value: round3(median(values)),
    unit,
    rounds,
    spread: [round3(quantile(values, 0.25)), round3(quantile(values, 0.75))],
    ...(target && { target }),
  }
}

/** Times `turns` turns of a loop that the caller writes out, so that it is compiled for its own body. */
export function timed(turns: number, loop: (turns: number) => void): number {
  const start = performance.now()
  loop(turns)
  return ((performance.now() - start) * 1e6) / turns
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

export function quantile(values: readonly number[], q: number): number {
  const sorted = Float64Array.from(values).sort()
  const at = (sorted.length - 1) * q
  const low = Math.floor(at)
  return sorted[low] + (sorted[Math.ceil(at)] - sorted[low]) * (at - low)
}

function round3(value: number): number {
  return Number(value.toPrecision(3))
}

/** Whether the row meets its target; undefined where it has none. */
export function meets(row: Row): boolean | undefined {
  const { target, value, ratio = Number.NaN } = row
  if (target === undefined) return undefined
  if ('most' in target) return ratio <= target.most
  if ('least' in target) return ratio >= target.least && value <= (target.valueMost ?? Infinity)
  if ('valueMost' in target) return value <= target.valueMost
  return value >= target.valueLeast
}
