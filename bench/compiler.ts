/** What a twin costs over the plain function while nothing preempts it: programs of every kind, one row each. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { compile } from '../src/compiler/compile.ts'
import { twin } from '../src/coroutine/coroutine.ts'
import { compare, median, type Row, type Target } from './harness.ts'

interface Program {
  size: number
  /** A size for many short runs first, after which the engine compiles the functions whole, not loop by loop. */
  small: number
  run(size: number): number
}

/** Loops and what they call in line: the safepoints must be nearly free. */
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

/** Long enough for a clock, and for the optimizing compiler to have had its turn. */
const warm_ms = 300
const round_ms = 20

export async function* rows(): AsyncIterable<Row> {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-bench-'))
  try {
    const all: Row[] = []
    for (const name of [...loops, ...calls]) {
      const row = await measureProgram(name, folder, loops.includes(name) ? { most: 1.25 } : undefined)
      all.push(row)
      yield row
    }
    const ratios = all.map(({ ratio }) => ratio!)
    yield summary('compiler/median', median(ratios), all, { most: 1.2 })
    yield summary('compiler/worst', Math.max(...ratios), all, { most: 1.5 })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function measureProgram(name: string, folder: string, target: Target | undefined): Promise<Row> {
  const url = new URL(`./programs/${name}.ts`, import.meta.url)
  const plain = (await import(url.href)) as Program
  const { code, diagnostics } = compile(await readFile(url, 'utf8'), url.pathname, {
    runtime: new URL('../src/compiler/runtime.ts', import.meta.url).href,
  })
  const error = diagnostics.find(({ severity }) => severity === 'error')
  if (error !== undefined) throw new SyntaxError(`${error.message}\n${error.frame}`)
  const file = join(folder, `${name}.ts`)
  await writeFile(file, code)
  const compiled = (await import(pathToFileURL(file).href)) as Program
  const resumable = (compiled.run as any)[twin] as (size: number) => Generator<number, number>
  if (resumable === undefined) throw new Error(`${name} has no twin`)

  const { size, small } = plain
  const finish = (of: number): number => {
    const step = resumable(of).next()
    if (!step.done) throw new Error(`${name} was preempted`)
    return step.value
  }
  for (let i = 0; i < 300; i++)
    if (!Object.is(finish(small), plain.run(small))) throw new Error(`${name} differs`)
  const ours = (): number => finish(size)
  const base = (): number => plain.run(size)
  const expected = base()
  if (!Object.is(ours(), expected)) throw new Error(`${name} differs`)
  repeat(base, warm_ms)
  repeat(ours, warm_ms)
  return compare({
    row: `compiler/${name}`,
    against: 'the plain function',
    unit: 'ms',
    ours: () => repeat(ours, round_ms),
    base: () => repeat(base, round_ms),
    ...(target && { target }),
  })
}

/** Runs for about this long; the best run's milliseconds, which is the one that nothing disturbed. */
function repeat(run: () => number, atLeast_ms: number): number {
  let best = Number.POSITIVE_INFINITY
  const start = performance.now()
  let now = start
  do {
    run()
    const after = performance.now()
    best = Math.min(best, after - now)
    now = after
  } while (now - start < atLeast_ms)
  return best
}

function summary(row: string, ratio: number, all: readonly Row[], target: Target): Row {
  const ratios = all.map(({ ratio }) => ratio!)
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
