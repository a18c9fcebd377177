/**
 * How long a high-priority task waits beside a workload on its CPU. The compiled workload runs with the
 * safepoint flag raised, so it stops at each safepoint that it checks. The time between two stops is the
 * longest wait. It is the time of the clock, because some systems count a thread's CPU time in milliseconds;
 * each value is a median over several runs.
 */
import { readFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { compile } from '../src/compiler/compile.ts'
import { evaluateModule } from '../test/compiler/differential/evaluate.ts'
import * as runtime from '../src/compiler/runtime.ts'
import { coroutineOf, setSafepointFlag } from '../src/coroutine/core/coroutine.ts'
import { Kernel } from '../src/index.ts'
import { median, quantile, type Row } from './harness.ts'
import type * as Tasks from './kernel/latencywork.ts'
import { jobs, load } from './packages.ts'

const raised = Int32Array.of(1)
const lowered = Int32Array.of(0)

/** Packages with large inputs, and programs that spend their time in constructors and built-ins. */
const packages = ['acorn', 'marked', 'terser', 'js-yaml', 'jpeg-js']
const programs = ['decomposition', 'documents']
const rounds = 5
const times = new Float64Array(1_000_000)

interface Work {
  fn: (...args: any[]) => unknown
  self?: unknown
  args: readonly unknown[]
}

export async function* latencyRows(): AsyncIterable<Row> {
  for (const name of packages) {
    const job = jobs.find(one => one.name === name)!
    yield* measured(name, job.prepare(load(job, 'best').namespace))
  }
  for (const name of programs) yield* measured(name, await programOf(name))
  yield* taskRows()
}

const warm_up_ms = 700
const probed_ms = 2_000
const every_ms = 3
/** A wait is shorter than this when only the operating system delays the task. */
const control = 'loop'

/**
 * The same from end to end: a kernel with one CPU runs the workload as a task in a loop, and a high-priority
 * task that is woken every few milliseconds. Its delay includes the timekeeper, the safepoints, the switch,
 * and the other programs of the machine. The row `loop`, the delay beside a bare loop, shows this noise.
 */
export async function* taskRows(
  names: readonly string[] = [control, ...packages, ...programs],
): AsyncIterable<Row> {
  for (const name of names) {
    const { entry, method, args } = packaged(name)
    const kernel = await Kernel.boot({ cpus: 1, compile: packages })
    try {
      const tasks = await kernel.import<typeof Tasks>(new URL('./kernel/latencywork.ts', import.meta.url))
      await kernel.spawn(tasks.prepare, [name, entry, method, args])
      const work = kernel.spawn(tasks.workload, [name, warm_up_ms + probed_ms])
      await new Promise(resolve => setTimeout(resolve, warm_up_ms))
      const waits = [...(await kernel.spawn(tasks.probe, [probed_ms, every_ms], { priority: 'high' }))]
      await work
      yield row(`compiler/latency-task-${name}-p99`, quantile(waits, 0.99), waits, 5)
      yield row(`compiler/latency-task-${name}-worst`, Math.max(...waits), waits, 20)
    } finally {
      await kernel.close()
    }
  }
}

/** The package of that name and its called function; a program has none. */
function packaged(name: string): { entry: string; method: string; args: unknown[] } {
  const job = jobs.find(one => one.name === name)
  if (job === undefined) return { entry: '', method: '', args: [] }
  const { namespace } = load(job, null)
  const { fn, args } = job.prepare(namespace)
  const method = Object.keys(namespace).find(key => namespace[key] === fn) ?? 'default'
  return { entry: pathToFileURL(job.entry).href, method, args }
}

async function programOf(name: string): Promise<Work> {
  const url = new URL(`./programs/${name}.ts`, import.meta.url)
  const { code } = compile(await readFile(url, 'utf8'), url.pathname, { sourcemap: false })
  const { run, size } = evaluateModule(code, url.pathname, { 'heddle/runtime': runtime })
  return { fn: run as Work['fn'], args: [size] }
}

function* measured(name: string, work: Work): Iterable<Row> {
  for (let i = 0; i < 3; i++) stretchesOf(work, lowered)
  const runs = Array.from({ length: rounds }, () => stretchesOf(work, raised))
  const stretches = usual(runs)
  const each = runs.map(run => ({ p99: waitedFor(run, 0.99), worst: longestOf(run) }))
  yield row(
    `compiler/latency-${name}-p99`,
    waitedFor(stretches, 0.99),
    each.map(({ p99 }) => p99),
    5,
  )
  yield row(
    `compiler/latency-${name}-worst`,
    longestOf(stretches),
    each.map(({ worst }) => worst),
    20,
  )
}

/**
 * The typical stretches. Each run stops at the same places, so the median of each stretch removes the time of
 * other programs. Runs with different stops are counted as they are.
 */
function usual(runs: readonly number[][]): number[] {
  const [first] = runs
  if (runs.some(({ length }) => length !== first!.length)) return runs.flat()
  return first!.map((_, index) => median(runs.map(run => run[index]!)))
}

function row(name: string, value: number, values: readonly number[], valueMost: number): Row {
  const round3 = (one: number): number => Number(one.toPrecision(3))
  return {
    row: name,
    value: round3(value),
    unit: 'ms',
    rounds,
    spread: [round3(quantile(values, 0.25)), round3(quantile(values, 0.75))],
    target: { valueMost },
  }
}

/** The milliseconds between stops. */
function stretchesOf({ fn, self, args }: Work, flag: Int32Array): number[] {
  const coroutine = coroutineOf(fn, args, self)
  let count = 0
  setSafepointFlag(flag, 0)
  try {
    let since = performance.now()
    let finished = coroutine.start()
    for (;;) {
      const now = performance.now()
      // A growing list is copied at times, which would count as a stretch.
      times[count++ % times.length] = now - since
      if (finished) break
      since = now
      finished = coroutine.resume()
    }
  } finally {
    setSafepointFlag(lowered, 0)
  }
  if (coroutine.state === 'threw') throw coroutine.result
  return [...times.subarray(0, Math.min(count, times.length))]
}

/**
 * The longest wait of a task that arrives at a random time, in this share of all cases: it meets a long
 * stretch more often than a short one.
 */
function waitedFor(stretches: readonly number[], share: number): number {
  const all = stretches.reduce((sum, one) => sum + one, 0)
  let low = 0
  let high = longestOf(stretches)
  for (let step = 0; step < 40; step++) {
    const middle = (low + high) / 2
    const longer = stretches.reduce((sum, one) => sum + Math.max(0, one - middle), 0)
    if (longer / all > 1 - share) low = middle
    else high = middle
  }
  return high
}

function longestOf(stretches: readonly number[]): number {
  return stretches.reduce((most, one) => Math.max(most, one), 0)
}
