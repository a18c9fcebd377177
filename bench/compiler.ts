/**
 * The cost of a resumable function against the plain one while nothing preempts it: small programs of every
 * kind and whole packages. Each has one row with the lowering that the compiler chooses, and one with
 * generators.
 */
import { readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { compile } from '../src/compiler/compile.ts'
import { coroutineOf } from '../src/coroutine/core/coroutine.ts'
import { compare, median, type Row, type Target } from './harness.ts'
import { latencyRows } from './latency.ts'
import { type Job, jobs, load } from './packages.ts'

interface Program {
  size: number
  /**
   * The size of many short first runs, after which the engine has compiled the whole functions, not only
   * their loops.
   */
  small: number
  run(size: number): number
}

/** Loops, and small functions that the engine inlines: the safepoints must be nearly free. */
export const loops: readonly string[] = [
  'integers',
  'floats',
  'matrix',
  'nbody',
  'fannkuch',
  'spectral',
  'sieve',
  'checksum',
  'strings',
  'maps',
]
/** Calls between functions, methods and callbacks. */
export const calls: readonly string[] = [
  'fib',
  'queens',
  'tasks',
  'constraints',
  'parser',
  'sorting',
  'pipelines',
]

/** Long enough for a clock, and for the optimizing compiler to have finished. */
const warm_ms = 250
/** Many ticks of the clock with which an operating system counts a thread's time. */
const round_ms = 80
const rounds = 10

type Way = 'best' | 'generator' | 'movable'

/** One program, ready to run in both forms. */
interface Contest {
  readonly name: string
  ours(): unknown
  base(): unknown
  /** The length of the output relative to the source. */
  readonly growth: number
}

export async function* rows(): AsyncIterable<Row> {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-bench-'))
  try {
    const all: Row[] = []
    const growths: number[] = []
    const generators: number[] = []
    for (const name of [...loops, ...calls]) {
      const best = await program(name, folder, 'best')
      const target = loops.includes(name) ? { most: 1.25 } : { most: name === 'fib' ? 1.3 : 1.5 }
      const row = await measured(best, `compiler/${name}`, target)
      all.push(row)
      growths.push(best.growth)
      yield row
      const second = await program(name, folder, 'generator')
      generators.push(second.growth)
      yield await measured(second, `compiler/${name}-generator`, undefined)
    }
    for (const job of jobs) {
      const best = packaged(job, 'best')
      const row = await measured(best, `compiler/${job.name}`, { most: 1.5 })
      all.push(row)
      growths.push(best.growth)
      yield row
      const second = packaged(job, 'generator')
      generators.push(second.growth)
      yield await measured(second, `compiler/${job.name}-generator`, undefined)
    }
    const ratios = all.map(({ ratio }) => ratio!)
    yield summary('compiler/median', median(ratios), all, { most: 1.2 })
    yield summary('compiler/worst', Math.max(...ratios), all, { most: 1.5 })
    yield* movableRows(folder)
    yield size('compiler/code-size', growths, { most: 4 })
    yield size('compiler/code-size-generator', generators)
    yield compileTime('compiler/compile-time')
    yield* latencyRows()
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The cost of functions that can move, against the ordinary compiled ones. */
async function* movableRows(folder: string): AsyncIterable<Row> {
  const all: Row[] = []
  const pairs = [
    ...[...loops, ...calls].map(
      name => async () =>
        [await program(name, folder, 'movable'), await program(name, folder, 'best')] as const,
    ),
    ...jobs.map(job => async () => [packaged(job, 'movable'), packaged(job, 'best')] as const),
  ]
  for (const load of pairs) {
    const [moving, ordinary] = await load()
    const contest = { ...moving, base: () => ordinary.ours() }
    const row = await measured(contest, `compiler/${moving.name}-movable`, undefined)
    const against = 'the ordinary compiled function'
    all.push(row)
    yield { ...row, against }
  }
  const ratios = all.map(({ ratio }) => ratio!)
  const row = summary('compiler/movable', median(ratios), all, { most: 1.15 })
  yield { ...row, against: 'the ordinary compiled function' }
}

/** Runs a function as a coroutine without preemption. */
function finish(fn: (...args: any[]) => unknown, args: readonly unknown[], self?: unknown): unknown {
  const coroutine = coroutineOf(fn, args, self)
  if (!coroutine.start()) throw new Error(`${fn.name} was preempted`)
  if (coroutine.state === 'threw') throw coroutine.result
  return coroutine.result
}

async function program(name: string, folder: string, way: Way): Promise<Contest> {
  const url = new URL(`./programs/${name}.ts`, import.meta.url)
  const plain = (await import(url.href)) as Program
  const source = await readFile(url, 'utf8')
  const { code, diagnostics } = compile(source, url.pathname, {
    runtime: new URL('../src/compiler/runtime.ts', import.meta.url).href,
    ...(way === 'generator' ? { lowering: 'generator' } : way === 'movable' ? { movable: true } : {}),
  })
  const error = diagnostics.find(({ severity }) => severity === 'error')
  if (error !== undefined) throw new SyntaxError(`${error.message}\n${error.frame}`)
  const file = join(folder, `${name}-${way}.ts`)
  await writeFile(file, code)
  const { run } = (await import(pathToFileURL(file).href)) as Program
  const { size: large, small } = plain
  for (let i = 0; i < 300; i++) {
    if (!Object.is(finish(run, [small]), plain.run(small))) throw new Error(`${name} differs`)
  }
  return {
    name,
    ours: () => finish(run, [large]),
    base: () => plain.run(large),
    growth: code.length / source.length,
  }
}

function packaged(job: Job, way: Way): Contest {
  const { namespace, before, after } = load(job, way)
  const plain = job.prepare(load(job, null).namespace)
  const compiled = job.prepare(namespace)
  return {
    name: job.name,
    ours: () => finish(compiled.fn, compiled.args, compiled.self),
    base: () => plain.fn.apply(plain.self, plain.args),
    growth: after / before,
  }
}

async function measured(
  { name, ours, base }: Contest,
  row: string,
  target: Target | undefined,
): Promise<Row> {
  if (JSON.stringify(ours()) !== JSON.stringify(base())) throw new Error(`${name} differs`)
  repeat(base, warm_ms)
  repeat(ours, warm_ms)
  return compare({
    row,
    against: 'the plain function',
    unit: 'ms',
    rounds,
    ours: () => repeat(ours, round_ms),
    base: () => repeat(base, round_ms),
    ...(target && { target }),
  })
}

/** Runs for about this long. Returns milliseconds of this thread's own CPU time for one run. */
function repeat(run: () => unknown, atLeast_ms: number): number {
  const start = threadTime_ms()
  let now = start
  let runs = 0
  do {
    run()
    runs++
    now = threadTime_ms()
  } while (now - start < atLeast_ms)
  return (now - start) / runs
}

function threadTime_ms(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

function summary(row: string, ratio: number, all: readonly Row[], target: Target): Row {
  const ratios = all.map(({ ratio: one }) => one!)
  return {
    row,
    value: Number(ratio.toPrecision(3)),
    unit: '×',
    against: 'the plain function',
    base: 1,
    ratio: Number(ratio.toPrecision(3)),
    rounds: all[0]!.rounds,
    spread: [Math.min(...ratios), Math.max(...ratios)],
    target,
  }
}

/** The growth of the output over the source: the median, the least and the most. */
function size(row: string, growths: readonly number[], target?: Target): Row {
  const value = Number(median(growths).toPrecision(3))
  return {
    row,
    value,
    unit: '×',
    rounds: growths.length,
    spread: [Number(Math.min(...growths).toPrecision(3)), Number(Math.max(...growths).toPrecision(3))],
    ...(target && { against: 'the source', base: 1, ratio: value, target }),
  }
}

/**
 * CPU time of this thread to compile whole packages, with source maps, for each megabyte of source. It is the
 * total over all packages, because some are a few lines long. Each was compiled before, to warm up.
 */
function compileTime(row: string): Row {
  const times: number[] = []
  let all_ms = 0
  let characters = 0
  for (const { entry } of jobs) {
    const source = readFileSync(entry, 'utf8')
    const start = threadTime_ms()
    compile(source, entry, { whole: true })
    const took_ms = threadTime_ms() - start
    all_ms += took_ms
    characters += source.length
    times.push(took_ms / (source.length / 1e6))
  }
  const value = Number((all_ms / (characters / 1e6)).toPrecision(3))
  return {
    row,
    value,
    unit: 'ms/MB',
    against: 'a second a megabyte',
    base: 1000,
    ratio: Number((value / 1000).toPrecision(3)),
    rounds: times.length,
    spread: [Number(Math.min(...times).toPrecision(3)), Number(Math.max(...times).toPrecision(3))],
    target: { most: 1 },
  }
}
