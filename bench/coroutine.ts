/**
 * Coroutines on one thread: the cost of a switch, and how a long computation delays a server on the same
 * thread.
 */
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { compile } from '../src/compiler/compile.ts'
import { coroutineOf, PREEMPTED } from '../src/coroutine/core/coroutine.ts'
import { resumable } from '../src/coroutine/core/generators.ts'
import { Schedule } from '../src/coroutine/schedule/schedule.ts'
import { compare, median, quantile, type Row, timed } from './harness.ts'
import { switchDepthRows } from './switches.ts'

export async function* rows(): AsyncIterable<Row> {
  yield* switchRows()
  yield* depthRows()
  yield* switchDepthRows()
  yield* serverRows()
}

const SWITCHES = 200_000

function* yielding(turns: number): Generator<number, void, unknown> {
  for (let turn = 0; turn < turns; turn++) yield PREEMPTED
}

/** Two coroutines that yield to each other. */
function scheduleSwitch(): number {
  const schedule = new Schedule({ ticks: 'clock' })
  schedule.go(yielding, SWITCHES / 2)
  schedule.go(yielding, SWITCHES / 2)
  return timed(SWITCHES, () => schedule.runSync())
}

function bareGenerators(): number {
  const first = yielding(SWITCHES / 2)
  const second = yielding(SWITCHES / 2)
  return timed(SWITCHES, turns => {
    for (let turn = 0; turn < turns / 2; turn++) {
      first.next()
      second.next()
    }
  })
}

async function awaits(): Promise<number> {
  const turn = async (): Promise<void> => {
    for (let i = 0; i < SWITCHES / 2; i++) await undefined
  }
  const start = performance.now()
  await Promise.all([turn(), turn()])
  return ((performance.now() - start) * 1e6) / SWITCHES
}

async function* switchRows(): AsyncIterable<Row> {
  yield await compare({
    row: 'coroutine/switch',
    against: 'a bare generator resume',
    ours: scheduleSwitch,
    base: bareGenerators,
  })
  yield await compare({ row: 'coroutine/switch-await', against: 'await', ours: scheduleSwitch, base: awaits })
}

const leaf = resumable(function* (turns: number): Generator<number, number, unknown> {
  for (let turn = 0; turn < turns; turn++) yield PREEMPTED
  return 0
})

const chain = resumable(function* (depth: number, turns: number): Generator<number, number, unknown> {
  return depth === 1 ? yield* leaf(turns) : 1 + (yield* chain(depth - 1, turns))
})

function* plainLeaf(turns: number): Generator<number, number, unknown> {
  for (let turn = 0; turn < turns; turn++) yield PREEMPTED
  return 0
}

function* plainChain(depth: number, turns: number): Generator<number, number, unknown> {
  return depth === 1 ? yield* plainLeaf(turns) : 1 + (yield* plainChain(depth - 1, turns))
}

/** Nanoseconds for a resume and a stop at this call depth, after the first one. */
function deepSwitch(depth: number, turns: number): number {
  const coroutine = coroutineOf(chain, [depth, turns + 1])
  coroutine.start()
  const cost = timed(turns, count => {
    for (let turn = 0; turn < count; turn++) coroutine.resume()
  })
  if (!coroutine.resume() || coroutine.result !== depth - 1) throw new Error('a call went missing')
  return cost
}

/** The same with the engine's own chain of generators. */
function plainDeepSwitch(depth: number, turns: number): number {
  const generator = plainChain(depth, turns + 1)
  generator.next()
  return timed(turns, count => {
    for (let turn = 0; turn < count; turn++) generator.next()
  })
}

/** Nanoseconds for the first stop at this call depth, and the calls before it. */
function firstSwitch(depth: number): number {
  return timed(20_000 / depth, count => {
    for (let turn = 0; turn < count; turn++) coroutineOf(chain, [depth, 1]).start()
  })
}

function plainFirstSwitch(depth: number): number {
  return timed(20_000 / depth, count => {
    for (let turn = 0; turn < count; turn++) plainChain(depth, 1).next()
  })
}

async function* depthRows(): AsyncIterable<Row> {
  const turns = 100_000
  yield await compare({
    row: 'coroutine/switch-depth-32',
    against: 'a switch at depth 1',
    ours: () => deepSwitch(32, turns),
    base: () => deepSwitch(1, turns),
    target: { most: 3 },
  })
  yield await compare({
    row: 'coroutine/switch-depth-1000',
    against: 'a switch at depth 1',
    ours: () => deepSwitch(1000, turns),
    base: () => deepSwitch(1, turns),
    target: { most: 3 },
  })
  yield await compare({
    row: 'coroutine/switch-depth-32-plain',
    against: 'a chain of plain yield*',
    ours: () => deepSwitch(32, turns),
    base: () => plainDeepSwitch(32, turns / 10),
    target: { least: 5 },
  })
  yield await compare({
    row: 'coroutine/first-switch-depth-32',
    against: 'a chain of plain yield*',
    ours: () => firstSwitch(32),
    base: () => plainFirstSwitch(32),
  })
}

interface Work {
  countPrimes(limit: number): number
  countPrimesYielding(limit: number): Promise<number>
}

const COMPUTE_MS = 800
const ROUNDS = 10

/** The effect of each way to compute on the server: latencies in milliseconds, and the time of the work. */
interface Trial {
  readonly p50: number
  readonly p99: number
  readonly took: number
}

async function* serverRows(): AsyncIterable<Row> {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-bench-'))
  const server = createServer((_, response) => response.end('hello'))
  server.keepAliveTimeout = 0
  server.listen(0)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = new Worker(new URL('./coroutine-client.mjs', import.meta.url), { workerData: { port } })
  const schedule = new Schedule()
  try {
    const plain = (await import('./programs/primes.ts')) as Work
    const compiled = await compileWork(folder)
    const limit = limitFor(plain.countPrimes, COMPUTE_MS)
    const expected = plain.countPrimes(limit)
    const ways: Record<string, () => Promise<unknown>> = {
      idle: () => new Promise(resolve => setTimeout(resolve, COMPUTE_MS)),
      plain: async () => plain.countPrimes(limit),
      byHand: () => plain.countPrimesYielding(limit),
      ours: () => schedule.run(compiled.countPrimes, limit),
    }
    const trials: Record<string, Trial[]> = { idle: [], plain: [], byHand: [], ours: [] }
    for (let round = -1; round < ROUNDS; round++) {
      for (const [name, way] of Object.entries(ways)) {
        const trial = await tryOut(client, way, name === 'idle' ? undefined : expected)
        if (round >= 0) trials[name].push(trial)
      }
    }
    yield* serverFigures(trials, schedule.slice)
    yield await compare({
      row: 'coroutine/throughput',
      against: 'the plain function',
      unit: 'ms',
      rounds: 12,
      ours: () => spent(() => schedule.run(compiled.countPrimes, limit)),
      base: () => spent(async () => plain.countPrimes(limit)),
      target: { most: 1.05 },
    })
  } finally {
    schedule.exit()
    server.close()
    server.closeAllConnections()
    await client.terminate()
    await rm(folder, { recursive: true, force: true })
  }
}

function* serverFigures(trials: Record<string, Trial[]>, slice: number): Iterable<Row> {
  const above = (name: string, pick: (trial: Trial) => number): number[] =>
    trials[name].map((trial, round) => Math.max(pick(trial) - pick(trials.idle[round]), 0.01))
  const figure = (
    row: string,
    ours: number[],
    against: string,
    base: number[],
    target?: Row['target'],
  ): Row => {
    const better = target !== undefined && 'least' in target
    const ratios = ours.map((value, round) => (better ? base[round] / value : value / base[round]))
    return {
      row,
      value: round3(median(ours)),
      unit: 'ms',
      against,
      base: round3(median(base)),
      ratio: round3(median(ratios)),
      rounds: ratios.length,
      spread: [round3(quantile(ratios, 0.25)), round3(quantile(ratios, 0.75))],
      ...(target && { target }),
    }
  }
  const p99 = (trial: Trial): number => trial.p99
  const p50 = (trial: Trial): number => trial.p50
  const took = (trial: Trial): number => trial.took
  const names = { idle: 'idle', plain: 'plain', byHand: 'by-hand', ours: 'ours' }
  for (const [name, label] of Object.entries(names)) {
    for (const [part, pick] of [
      ['p50', p50],
      ['p99', p99],
    ] as const) {
      const values = trials[name].map(pick)
      yield {
        row: `coroutine/http-${part}-${label}`,
        value: round3(median(values)),
        unit: 'ms',
        rounds: values.length,
        spread: [round3(quantile(values, 0.25)), round3(quantile(values, 0.75))],
      }
    }
  }
  const plainly = 'the same work called plainly'
  const byHand = 'setImmediate by hand'
  yield figure('coroutine/http-p99', above('ours', p99), plainly, above('plain', p99), {
    least: 100,
    valueMost: 2,
  })
  yield figure('coroutine/http-p50', above('ours', p50), plainly, above('plain', p50), { least: 100 })
  yield figure('coroutine/http-p99-against-by-hand', above('ours', p99), byHand, above('byHand', p99))
  yield figure('coroutine/http-p50-against-by-hand', above('ours', p50), byHand, above('byHand', p50))
  yield figure(
    'coroutine/http-p99-slices',
    above('ours', p99),
    `a slice of ${slice} ms`,
    trials.ours.map(() => slice),
    { most: 2 },
  )
  yield figure('coroutine/throughput-serving', trials.ours.map(took), plainly, trials.plain.map(took))
  yield figure('coroutine/throughput-by-hand', trials.byHand.map(took), plainly, trials.plain.map(took))
}

/** Computes while the client sends requests; every answer counts, also the later ones. */
async function tryOut(client: Worker, way: () => Promise<unknown>, expected: unknown): Promise<Trial> {
  client.postMessage('start')
  await new Promise(resolve => setTimeout(resolve, 50))
  const start = performance.now()
  const result = await way()
  const took = performance.now() - start
  if (expected !== undefined && result !== expected) throw new Error('the work went wrong')
  client.postMessage('stop')
  const [latencies] = (await once(client, 'message')) as [number[]]
  return { p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99), took }
}

/** Milliseconds of this thread's CPU time. */
async function spent(run: () => Promise<unknown>): Promise<number> {
  const start = process.threadCpuUsage()
  await run()
  const { user, system } = process.threadCpuUsage(start)
  return (user + system) / 1000
}

/** The limit to count to, so that it takes about this long. */
function limitFor(work: (limit: number) => number, ms: number): number {
  let limit = 100_000
  for (;;) {
    const start = performance.now()
    work(limit)
    const took = performance.now() - start
    if (took >= ms) return limit
    limit = Math.ceil(limit * Math.min(2, Math.max(1.05, (ms / took) ** (2 / 3))))
  }
}

async function compileWork(folder: string): Promise<Work> {
  const url = new URL('./programs/primes.ts', import.meta.url)
  const { code, diagnostics } = compile(await readFile(url, 'utf8'), url.pathname, {
    runtime: new URL('../src/compiler/runtime.ts', import.meta.url).href,
  })
  const error = diagnostics.find(({ severity }) => severity === 'error')
  if (error !== undefined) throw new SyntaxError(`${error.message}\n${error.frame}`)
  const file = join(folder, 'primes.ts')
  await writeFile(file, code)
  return (await import(pathToFileURL(file).href)) as Work
}

function round3(value: number): number {
  return Number(value.toPrecision(3))
}
