/**
 * The kernel against the worker pools from npm: the same work and the same number of threads, in turns, each
 * in its own process.
 */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { compare, comparedRow, measure, median, quantile, type Row } from './harness.ts'
import type { Question } from './kernel/contender.ts'
import { PackedHeddle, type StartFigures } from './kernel/packed.ts'
import { bestOf, peerNames, Side } from './kernel/peers.ts'

const CPUS = 2
const SLICE_MS = 10
const HOG_MS = 1000

interface Bench {
  readonly heddle: Side
  readonly peers: readonly Side[]
}

export async function* rows(): AsyncIterable<Row> {
  const heddle = await Side.start('heddle')
  const peers: Side[] = []
  for (const name of peerNames) peers.push(await Side.start(name))
  const bench = { heddle, peers }
  try {
    yield* spawnRows(bench)
    yield* arrayRows(bench)
    yield* hogRows(bench)
  } finally {
    for (const side of [heddle, ...peers]) await side.close()
  }
  yield* startRows()
  yield await measure('kernel/bytes-per-task', 'bytes', bytesPerTask, {
    rounds: 3,
    target: { valueMost: 1024 },
  })
}

async function* spawnRows({ heddle, peers }: Bench): AsyncIterable<Row> {
  const against = 'the best of the peers'
  const batch: Question = { what: 'batch', count: 10_000 }
  yield await compare({
    row: 'kernel/spawn-batch',
    against,
    target: { least: 5 },
    ours: () => heddle.ask(batch),
    base: () => bestOf(peers, { what: 'batch', count: 4_000 }),
  })
  const single: Question = { what: 'single', count: 1_000 }
  yield await compare({
    row: 'kernel/spawn-single',
    against,
    target: { least: 2 },
    ours: () => heddle.ask(single),
    base: () => bestOf(peers, single),
  })
  yield await compare({
    row: 'kernel/spawn-inside',
    against: 'spawn-batch',
    ours: () => heddle.ask({ what: 'inside', count: 5_000 }),
    base: () => heddle.ask(batch),
  })
}

/** A task with a megabyte: by reference, and copied. */
async function* arrayRows({ heddle, peers }: Bench): AsyncIterable<Row> {
  for (const what of ['shared', 'copied'] as const) {
    const question: Question = { what, count: 300 }
    yield await compare({
      row: `kernel/array-1mib-${what}`,
      against: 'the best of the peers',
      ours: () => heddle.ask(question),
      base: () => bestOf(peers, question),
    })
  }
}

/**
 * Short tasks behind twice as many hogs as CPUs: at equal priority, against the peers; and at a higher one.
 */
async function* hogRows({ heddle, peers }: Bench): AsyncIterable<Row> {
  const rounds = 10
  const equal: number[][] = []
  const high: number[][] = []
  const ratios: number[] = []
  const ratiosP50: number[] = []
  const peerP50: number[] = []
  const peerP99: number[] = []
  for (let round = 0; round < rounds; round++) {
    equal.push(await heddle.askAll({ what: 'hogs', ms: HOG_MS }))
    high.push(await heddle.askAll({ what: 'hogs-first', ms: HOG_MS }))
    let best50 = Infinity
    let best99 = Infinity
    for (const peer of peers) {
      const latencies = await peer.askAll({ what: 'hogs', ms: HOG_MS })
      best50 = Math.min(best50, median(latencies))
      best99 = Math.min(best99, quantile(latencies, 0.99))
    }
    peerP50.push(best50)
    peerP99.push(best99)
    ratios.push(best99 / quantile(equal[round], 0.99))
    ratiosP50.push(best50 / quantile(equal[round], 0.5))
  }
  const row = (name: string, values: readonly number[], rest: Partial<Row>): Row => ({
    row: name,
    value: round3(median(values)),
    unit: 'ms',
    rounds,
    spread: [round3(quantile(values, 0.25)), round3(quantile(values, 0.75))],
    ...rest,
  })
  const p = (latencies: readonly number[][], q: number): number[] => latencies.map(all => quantile(all, q))
  yield row('kernel/short-behind-hogs-p99', p(equal, 0.99), {
    against: 'the best of the peers',
    base: round3(median(peerP99)),
    ratio: round3(median(ratios)),
    spread: [round3(quantile(ratios, 0.25)), round3(quantile(ratios, 0.75))],
    target: { least: 50 },
  })
  yield row('kernel/short-behind-hogs-p50', p(equal, 0.5), {
    against: 'the best of the peers',
    base: round3(median(peerP50)),
    ratio: round3(median(ratiosP50)),
    spread: [round3(quantile(ratiosP50, 0.25)), round3(quantile(ratiosP50, 0.75))],
  })
  yield row('kernel/equal-priority-p99', p(equal, 0.99), { target: { valueMost: 3 * SLICE_MS } })
  yield row('kernel/high-priority-p50', p(high, 0.5), {})
  yield row('kernel/high-priority-p99', p(high, 0.99), { target: { valueMost: 2 } })
}

/**
 * The packed tarball in a process of its own each round: the import of the package, the boot until every CPU
 * runs, against as many plain workers, and the import of a module on the CPUs.
 */
async function* startRows(): AsyncIterable<Row> {
  const rounds = 12
  const packed = new PackedHeddle()
  const all: StartFigures[] = []
  try {
    // The first process compiles, and fills the caches.
    await packed.start(CPUS)
    for (let round = 0; round < rounds; round++) all.push(await packed.start(CPUS))
  } finally {
    packed.remove()
  }
  yield comparedRow({
    row: 'kernel/boot',
    unit: 'ms',
    against: 'bare workers',
    target: { most: 5 },
    values: all.map(({ boot }) => boot),
    bases: all.map(({ bare }) => bare),
    ratios: all.map(({ boot, bare }) => boot / bare),
  })
  const value = (row: string, values: readonly number[]): Row => ({
    row,
    value: round3(median(values)),
    unit: 'ms',
    rounds,
    spread: [round3(quantile(values, 0.25)), round3(quantile(values, 0.75))],
    target: { valueMost: 25 },
  })
  yield value(
    'kernel/import',
    all.map(({ importPackage }) => importPackage),
  )
  yield value(
    'kernel/import-module',
    all.map(({ importModule }) => importModule),
  )
}

/** In its own process: 100,000 sleeping tasks, with all memory of the process counted. */
function bytesPerTask(): number {
  const script = fileURLToPath(new URL('./kernel/memory.ts', import.meta.url))
  return Number(execFileSync(process.execPath, ['--expose-gc', script, '100000'], { encoding: 'utf8' }))
}

function round3(value: number): number {
  return Number(value.toPrecision(3))
}
