/**
 * `heddle bench`: a few figures of this machine, in a few seconds. The whole suite, with other packages as
 * baselines, is in the repository.
 */
import { availableParallelism, cpus } from 'node:os'
import { Command } from 'commander'
import { Channel } from '../sync/index.ts'
import { Kernel } from '../kernel/boot/kernel.ts'
import type { ModuleView } from '../kernel/spawn/modules.ts'
import { cpuCount } from './numbers.ts'
import { formatMs, paint, table, type Terminal, terminalOf } from './terminal.ts'

interface Figure {
  readonly row: string
  readonly value: number
  readonly unit: string
  readonly rounds: number
  readonly spread: readonly [number, number]
}

interface BenchFlags {
  json?: boolean
  cpus?: number
}

type Work = ModuleView<typeof import('./benchwork.ts')>

export function benchCommand(): Command {
  return new Command('bench')
    .summary('measure tasks, latencies, locks and channels on this machine')
    .description(
      'Measures in a few seconds: tasks per second, the latency of a short task behind long ones, the cost of preemption and locks.',
    )
    .option('--cpus <n>', 'how many CPUs', cpuCount)
    .option('--json', 'print one JSON object a line')
    .action(async (flags: BenchFlags) => bench(flags, terminalOf(process.stdout)))
}

async function bench(flags: BenchFlags, terminal: Terminal): Promise<void> {
  const count = flags.cpus ?? availableParallelism()
  const kernel = await Kernel.boot({ cpus: count, control: false })
  try {
    const figures = await measureAll(kernel, count, flags.json === true)
    if (!flags.json) print(figures, terminal)
  } finally {
    await kernel.close()
  }
}

async function measureAll(kernel: Kernel, count: number, json: boolean): Promise<Figure[]> {
  const work = await kernel.import<typeof import('./benchwork.ts')>(
    new URL('./benchwork.ts', import.meta.url),
  )
  if (!json) {
    console.log(`${count} CPUs on ${cpus().length} × ${cpus()[0].model.trim()}, Node ${process.version}\n`)
  }
  const figures: Figure[] = []
  for (const measure of [spawnBatch, spawnSingle, behindLong, preemption, mutex, channel]) {
    for (const figure of await measure(kernel, work)) {
      figures.push(figure)
      if (json) console.log(JSON.stringify(figure))
    }
    if (!json && process.stderr.isTTY) process.stderr.write('.')
  }
  return figures
}

function print(figures: readonly Figure[], terminal: Terminal): void {
  if (process.stderr.isTTY) process.stderr.write('\r')
  const rows = figures.map(({ row, value, unit, spread }) => [
    row,
    format(value, unit),
    `${format(spread[0], unit)} – ${format(spread[1], unit)}`,
  ])
  const [head, ...lines] = table([['', 'median', 'quartiles'], ...rows])
  console.log([paint(terminal, 'bold', head), ...lines].join('\n'))
}

function format(value: number, unit: string): string {
  if (unit === 'ms') return formatMs(value)
  return unit === '×' ? `${value.toFixed(2)}×` : `${Math.round(value).toLocaleString('en')} ${unit}`
}

function figure(row: string, unit: string, values: readonly number[]): Figure {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number): number => sorted[Math.round((sorted.length - 1) * share)]
  return { row, unit, value: at(0.5), rounds: values.length, spread: [at(0.25), at(0.75)] }
}

async function repeat(rounds: number, measure: () => Promise<number>): Promise<number[]> {
  await measure()
  const values: number[] = []
  for (let round = 0; round < rounds; round++) values.push(await measure())
  return values
}

const BATCH = 2000

async function spawnBatch(kernel: Kernel, work: Work): Promise<Figure[]> {
  const values = await repeat(10, async () => {
    const start = performance.now()
    await Promise.all(Array.from({ length: BATCH }, (_, n) => kernel.spawn(work.add, [n, 1])))
    return (BATCH * 1000) / (performance.now() - start)
  })
  return [figure('tasks a second, many at once', '/s', values)]
}

async function spawnSingle(kernel: Kernel, work: Work): Promise<Figure[]> {
  const values = await repeat(200, async () => {
    const start = performance.now()
    await kernel.spawn(work.add, [1, 1])
    return performance.now() - start
  })
  return [figure('spawn and await one task', 'ms', values)]
}

/** Short tasks, at normal and high priority, beside two computing tasks for each CPU. */
async function behindLong(kernel: Kernel, work: Work): Promise<Figure[]> {
  const hogs = Array.from({ length: kernel.cpus * 2 }, () => kernel.spawn(work.burn, [1200]))
  const latency = async (priority: 'normal' | 'high'): Promise<number> => {
    const start = performance.now()
    await kernel.spawn(work.add, [1, 1], { priority })
    return performance.now() - start
  }
  const equal = await repeat(20, () => latency('normal'))
  const high = await repeat(20, () => latency('high'))
  for (const hog of hogs) hog.kill()
  await Promise.allSettled(hogs)
  return [
    figure('a short task behind long ones', 'ms', equal),
    figure('the same at a higher priority', 'ms', high),
  ]
}

async function preemption(kernel: Kernel, work: Work): Promise<Figure[]> {
  const values = await repeat(10, async () => {
    const [plain, preemptible] = await kernel.spawn(work.sums, [2_000_000])
    return preemptible / plain
  })
  return [figure('a preemptible loop against a plain one', '×', values)]
}

async function mutex(kernel: Kernel, work: Work): Promise<Figure[]> {
  return [
    figure(
      'lock and unlock a free mutex',
      'ns',
      await repeat(10, async () => await kernel.spawn(work.lockFree, [100_000])),
    ),
  ]
}

async function channel(kernel: Kernel, work: Work): Promise<Figure[]> {
  const messages = 5000
  const values = await repeat(10, async () => {
    const numbers = new Channel<number>(256)
    const start = performance.now()
    const sending = kernel.spawn(work.send, [numbers, messages], { affinity: [0] })
    const receiving = kernel.spawn(work.receive, [numbers], { affinity: [kernel.cpus - 1] })
    await Promise.all([sending, receiving])
    return (messages * 1000) / (performance.now() - start)
  })
  return [figure('messages a second through a channel', '/s', values)]
}
