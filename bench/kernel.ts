/** The kernel beside the worker pools from npm: the same work, the same number of threads, in turns. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { Kernel } from '../src/task/kernel.ts'
import { compare, type Measure, measure, median, quantile, type Row } from './harness.ts'
import { bestOf, type Peer, startPeers } from './kernel/peers.ts'

const CPUS = 2
const SLICE_MS = 10
const HOG_MS = 1000
const MEBIBYTE = 1 << 20

type Work = typeof import('./kernel/work.ts')
const workUrl = new URL('./kernel/work.ts', import.meta.url)

interface Bench {
  readonly kernel: Kernel
  readonly work: Awaited<ReturnType<typeof importWork>>
  readonly peers: readonly Peer[]
}

function importWork(kernel: Kernel) {
  return kernel.import<Work>(workUrl)
}

export async function* rows(): AsyncIterable<Row> {
  const kernel = await Kernel.boot({ cpus: CPUS, slice: SLICE_MS })
  const bench = { kernel, work: await importWork(kernel), peers: await startPeers(CPUS) }
  try {
    yield* spawnRows(bench)
    yield* arrayRows(bench)
    yield* hogRows(bench)
  } finally {
    for (const peer of bench.peers) await peer.close()
    await kernel.close()
  }
  yield* bootRows()
  yield await measure('kernel/bytes-per-task', 'bytes', bytesPerTask, {
    rounds: 3,
    target: { valueMost: 1024 },
  })
}

/** Nanoseconds for each of `count` turns. */
async function timed(count: number, work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return ((performance.now() - start) * 1e6) / count
}

async function* spawnRows({ kernel, work, peers }: Bench): AsyncIterable<Row> {
  const batch = 20_000
  const peerBatch = 4_000
  yield await compare({
    row: 'kernel/spawn-batch',
    against: 'the best of the peers',
    target: { least: 5 },
    ours: () =>
      timed(batch, () =>
        Promise.all(Array.from({ length: batch }, (_, a) => kernel.spawn(work.add, [a, 1]))),
      ),
    base: () =>
      bestOf(peers, peer =>
        timed(peerBatch, () =>
          Promise.all(Array.from({ length: peerBatch }, (_, a) => peer.run('add', { a, b: 1 }))),
        ),
      ),
  })
  const single = 1_000
  const oneByOne = (run: (a: number) => PromiseLike<unknown>): Promise<number> =>
    timed(single, async () => {
      for (let a = 0; a < single; a++) await run(a)
    })
  yield await compare({
    row: 'kernel/spawn-single',
    against: 'the best of the peers',
    target: { least: 2 },
    ours: () => oneByOne(a => kernel.spawn(work.add, [a, 1])),
    base: () => bestOf(peers, peer => oneByOne(a => peer.run('add', { a, b: 1 }))),
  })
  const inside = 20_000
  yield await compare({
    row: 'kernel/spawn-inside',
    against: 'spawn-batch',
    ours: () => timed(inside, async () => void (await kernel.spawn(work.spawner, [inside]))),
    base: () =>
      timed(inside, () =>
        Promise.all(Array.from({ length: inside }, (_, a) => kernel.spawn(work.add, [a, 1]))),
      ),
  })
}

/** A task with a megabyte: by reference, and copied. */
async function* arrayRows({ kernel, work, peers }: Bench): AsyncIterable<Row> {
  const turns = 300
  const shared = new Uint8Array(new SharedArrayBuffer(MEBIBYTE))
  const own = new Uint8Array(MEBIBYTE)
  for (const [name, array] of [
    ['shared', shared],
    ['copied', own],
  ] as const) {
    yield await compare({
      row: `kernel/array-1mib-${name}`,
      against: 'the best of the peers',
      ours: () => timed(turns, () => inTurn(turns, () => kernel.spawn(work.touch, [array]))),
      base: () => bestOf(peers, peer => timed(turns, () => inTurn(turns, () => peer.run('touch', array)))),
    })
  }
}

async function inTurn(turns: number, run: () => PromiseLike<unknown>): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await run()
}

/**
 * Short tasks that arrive, one every few milliseconds, behind twice as many hogs as CPUs, each of which wants a second of CPU
 * time. Milliseconds from the spawn to the moment at which the task ran.
 */
async function* hogRows({ kernel, work, peers }: Bench): AsyncIterable<Row> {
  const shorts = 40
  const every = 8
  const now = (): number => performance.timeOrigin + performance.now()
  const behind = async (
    hog: () => PromiseLike<unknown>,
    when: () => PromiseLike<unknown>,
  ): Promise<number[]> => {
    const hogs = Array.from({ length: CPUS * 2 }, hog)
    await pause(50)
    const waits: Promise<number>[] = []
    for (let index = 0; index < shorts; index++) {
      const spawned = now()
      waits.push(Promise.resolve(when()).then(ran => (ran as number) - spawned))
      await pause(every)
    }
    const latencies = await Promise.all(waits)
    await Promise.all(hogs)
    return latencies
  }
  const rounds = 10
  const equal: number[][] = []
  const high: number[][] = []
  const ratios: number[] = []
  const peerP50: number[] = []
  const peerP99: number[] = []
  for (let round = 0; round < rounds; round++) {
    equal.push(
      await behind(
        () => kernel.spawn(work.hog, [HOG_MS]),
        () => kernel.spawn(work.when),
      ),
    )
    high.push(
      await behind(
        () => kernel.spawn(work.hog, [HOG_MS]),
        () => kernel.spawn(work.when, [], { priority: 'high' }),
      ),
    )
    let best50 = Infinity
    let best99 = Infinity
    for (const peer of peers) {
      const latencies = await behind(
        () => peer.run('hog', HOG_MS),
        () => peer.run('when'),
      )
      best50 = Math.min(best50, median(latencies))
      best99 = Math.min(best99, quantile(latencies, 0.99))
    }
    peerP50.push(best50)
    peerP99.push(best99)
    ratios.push(best99 / quantile(equal[round], 0.99))
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
    ratio: round3(median(peerP50) / median(p(equal, 0.5))),
  })
  yield row('kernel/equal-priority-p99', p(equal, 0.99), { target: { valueMost: 3 * SLICE_MS } })
  yield row('kernel/high-priority-p50', p(high, 0.5), {})
  yield row('kernel/high-priority-p99', p(high, 0.99), { target: { valueMost: 2 } })
}

/** Until every CPU runs, beside as many bare workers until each has said so. */
async function* bootRows(): AsyncIterable<Row> {
  const boot: Measure = async () => {
    const start = performance.now()
    const kernel = await Kernel.boot({ cpus: CPUS })
    const took = performance.now() - start
    await kernel.close()
    return took
  }
  const bare: Measure = async () => {
    const start = performance.now()
    const workers = Array.from({ length: CPUS }, () => new Worker('', { eval: true }))
    await Promise.all(workers.map(worker => once(worker, 'online')))
    const took = performance.now() - start
    await Promise.all(workers.map(worker => worker.terminate()))
    return took
  }
  yield await compare({ row: 'kernel/boot', against: 'bare workers', unit: 'ms', ours: boot, base: bare })
}

/** In a process of its own: 100,000 sleeping tasks, all memory of the process counted. */
function bytesPerTask(): number {
  const script = fileURLToPath(new URL('./kernel/memory.ts', import.meta.url))
  return Number(execFileSync(process.execPath, ['--expose-gc', script, '100000'], { encoding: 'utf8' }))
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}

function round3(value: number): number {
  return Number(value.toPrecision(3))
}
