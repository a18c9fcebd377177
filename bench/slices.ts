/**
 * How long should a slice be? Two computing tasks share a CPU, and a short task arrives now and then. Short
 * slices cost switches; long ones make the short task wait. Throughput is turns of the long tasks for each
 * second of CPU time, so that it is valid on a busy machine.
 */
import { Kernel } from '../src/index.ts'
import { median, quantile, type Row } from './harness.ts'

type Work = typeof import('./slices/work.ts')

const SLICES_MS = [1, 2, 5, 10, 20, 50] as const
const ROUNDS = Number(process.env.HEDDLE_ROUNDS ?? 5)
const SHORT_TASKS = 12

interface Measured {
  /** Turns for each millisecond of CPU time. */
  readonly rate: number
  /** The waits of the short tasks, in milliseconds. */
  readonly waits: readonly number[]
}

async function measure(slice: number): Promise<Measured> {
  await using kernel = await Kernel.boot({ cpus: 1, slice, control: false, watchdog: false })
  const work = await kernel.import<Work>(new URL('./slices/work.ts', import.meta.url))
  const stop = new Int32Array(new SharedArrayBuffer(4))
  const hogs = [kernel.spawn(work.turns, [stop]), kernel.spawn(work.turns, [stop])]
  await kernel.spawn(work.nothing)
  const used = process.cpuUsage()
  const waits: number[] = []
  for (let at = 0; at < SHORT_TASKS; at++) {
    const begun = performance.now()
    await kernel.spawn(work.nothing)
    waits.push(performance.now() - begun)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  Atomics.store(stop, 0, 1)
  const counts = await Promise.all(hogs)
  const { user, system } = process.cpuUsage(used)
  return { rate: counts.reduce((sum, count) => sum + count, 0) / ((user + system) / 1000), waits }
}

const round3 = (value: number): number => Number(value.toPrecision(3))

export async function* rows(): AsyncIterable<Row> {
  const measured = new Map<number, Measured[]>(SLICES_MS.map(slice => [slice, []]))
  for (let round = -1; round < ROUNDS; round++) {
    for (const slice of SLICES_MS) {
      const one = await measure(slice)
      if (round >= 0) measured.get(slice)?.push(one)
    }
  }
  const longest = measured.get(50) ?? []
  for (const [slice, rounds] of measured) {
    const rates = rounds.map(({ rate }) => rate)
    const ratios = rates.map((rate, round) => rate / longest[round].rate)
    yield {
      row: `slices/throughput-${slice}ms`,
      value: round3(median(rates)),
      unit: 'turns/ms',
      against: 'slices of 50 ms',
      base: round3(median(longest.map(({ rate }) => rate))),
      ratio: round3(median(ratios)),
      rounds: rounds.length,
      spread: [round3(quantile(ratios, 0.25)), round3(quantile(ratios, 0.75))],
    }
    for (const [name, q] of [
      ['p50', 0.5],
      ['p99', 0.99],
    ] as const) {
      const waits = rounds.map(one => quantile([...one.waits], q))
      yield {
        row: `slices/wait-${name}-${slice}ms`,
        value: round3(median(waits)),
        unit: 'ms',
        rounds: rounds.length,
        spread: [round3(quantile(waits, 0.25)), round3(quantile(waits, 0.75))],
      }
    }
  }
}
