import {
  BUCKETS,
  bucketStart,
  type Histogram,
  HISTOGRAMS,
  histogramNames,
  histogramQuantile,
  readHistogram,
} from '../arena/rings/histogram.ts'
import { type CpuAccount, cpuAccount } from '../sched/core/account.ts'
import { isOnline } from '../sched/balance/hotplug.ts'
import type { Scheduler } from '../sched/core/scheduler.ts'

/** Counters and latencies, readable at any time, from any thread that has the arena. */
export interface Latency {
  readonly name: string
  readonly count: number
  /** Milliseconds. NaN while there are no samples. */
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly max: number
  readonly histogram: Histogram
}

export interface Metrics {
  /** Milliseconds since boot. */
  readonly time: number
  readonly cpus: readonly (CpuAccount & { readonly cpu: number; readonly online: boolean })[]
  readonly latencies: readonly Latency[]
}

export function readMetrics(s: Scheduler): Metrics {
  const { i32 } = s
  return {
    time: s.now(),
    cpus: Array.from({ length: s.cpus }, (_, cpu) => ({
      cpu,
      online: isOnline(s, cpu),
      ...cpuAccount(i32, s.queueOf(cpu)),
    })),
    latencies: Array.from({ length: HISTOGRAMS }, (_, which) => {
      const histogram = readHistogram(i32, s.histograms, which)
      return {
        name: histogramNames[which],
        count: histogram.count,
        p50: histogramQuantile(histogram, 0.5),
        p90: histogramQuantile(histogram, 0.9),
        p99: histogramQuantile(histogram, 0.99),
        max: histogramQuantile(histogram, 1),
        histogram,
      }
    }),
  }
}

const cpuCounters: readonly (readonly [key: keyof CpuAccount, metric: string, help: string])[] = [
  ['switches', 'heddle_switches_total', 'Switches from one task to another.'],
  ['preemptions', 'heddle_preemptions_total', 'Tasks that had to give their CPU up.'],
  ['migrations', 'heddle_migrations_total', 'Tasks that came from another CPU.'],
  ['steals', 'heddle_steals_total', 'Tasks that an idle CPU took from another.'],
  ['moves', 'heddle_moves_total', 'Started tasks that the CPU packed and sent to another.'],
  ['wakeups', 'heddle_wakeups_total', 'Tasks that were woken here.'],
]

/** The text format of Prometheus, version 0.0.4. */
export function prometheusText(metrics: Metrics): string {
  const lines: string[] = []
  const describe = (name: string, help: string, type: string): void => {
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`)
  }
  describe('heddle_cpu_online', 'Whether the CPU takes tasks.', 'gauge')
  for (const { cpu, online } of metrics.cpus) lines.push(`heddle_cpu_online{cpu="${cpu}"} ${online ? 1 : 0}`)
  describe('heddle_run_queue_tasks', 'Tasks that are queued on the CPU or run there.', 'gauge')
  for (const { cpu, load } of metrics.cpus) lines.push(`heddle_run_queue_tasks{cpu="${cpu}"} ${load}`)
  describe('heddle_cpu_busy_seconds_total', 'Time that the CPU ran tasks.', 'counter')
  for (const { cpu, busyTime } of metrics.cpus)
    lines.push(`heddle_cpu_busy_seconds_total{cpu="${cpu}"} ${busyTime / 1000}`)
  for (const [key, name, help] of cpuCounters) {
    describe(name, help, 'counter')
    for (const cpu of metrics.cpus) lines.push(`${name}{cpu="${cpu.cpu}"} ${cpu[key]}`)
  }
  for (const { name, histogram } of metrics.latencies) histogramText(lines, describe, name, histogram)
  return `${lines.join('\n')}\n`
}

/** One boundary for each doubling: enough for alerts and graphs, with few series. */
const BOUNDARY_EVERY = 4

function histogramText(
  lines: string[],
  describe: (name: string, help: string, type: string) => void,
  name: string,
  { counts, count }: Histogram,
): void {
  const metric = `heddle_${name.replaceAll(/[ -]/g, '_')}_seconds`
  describe(metric, `Time of ${name}; the sum is estimated from the middles of the buckets.`, 'histogram')
  let below = 0
  let sum = 0
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    below += counts[bucket]
    sum += counts[bucket] * ((bucketStart(bucket) + bucketStart(bucket + 1)) / 2)
    if ((bucket + 1) % BOUNDARY_EVERY !== 0) continue
    lines.push(`${metric}_bucket{le="${bucketStart(bucket + 1) / 1000}"} ${below}`)
  }
  lines.push(
    `${metric}_bucket{le="+Inf"} ${count}`,
    `${metric}_sum ${sum / 1000}`,
    `${metric}_count ${count}`,
  )
}
