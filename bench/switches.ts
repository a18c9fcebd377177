/**
 * The cost of a preemption at a given call depth, the first time and later: functions that unwind, and
 * generators.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { compile } from '../src/compiler/compile.ts'
import type { LoweringName } from '../src/compiler/analysis/directive.ts'
import { yieldNow } from '../src/coroutine/core/blocking.ts'
import { coroutineOf, setSafepointFlag } from '../src/coroutine/core/coroutine.ts'
import { switchTo } from '../src/thread/context.ts'
import { compare, type Row, timed } from './harness.ts'

const source = `'use task'
export function descend(depth, turns) { return depth === 1 ? spin(turns) : 1 + descend(depth - 1, turns) }
export function spin(turns) { let sum = 0; for (let i = 0; i < turns; i++) sum += step(i); return sum }
export function step(i) { return i < 0 ? step(i + 1) : i & 1 }
export function block(turns, pause) { let sum = 0; for (let i = 0; i < turns; i++) { pause(); sum += i } return sum }
`

interface Forms {
  descend(depth: number, turns: number): number
  block(turns: number, pause: () => unknown): number
}

const raised = Int32Array.of(1)
const lowered = Int32Array.of(0)
const depths: readonly number[] = [1, 32, 1000]

export async function* switchDepthRows(): AsyncIterable<Row> {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-bench-'))
  try {
    const unwinding = await made(folder, 'frames')
    const generators = await made(folder, 'generator')
    for (const depth of depths) {
      yield await compare({
        row: `coroutine/preempt-depth-${depth}`,
        against: 'generators',
        ours: () => repeated(unwinding, depth),
        base: () => repeated(generators, depth),
      })
    }
    yield await compare({
      row: 'coroutine/preempt-depth-1000-flat',
      against: 'a preemption at depth 1',
      ours: () => repeated(unwinding, 1000),
      base: () => repeated(unwinding, 1),
      target: { most: 1.5 },
    })
    for (const depth of depths) {
      yield await compare({
        row: `coroutine/first-preempt-depth-${depth}`,
        against: 'generators',
        ours: () => first(unwinding, depth),
        base: () => first(generators, depth),
      })
    }
    yield await compare({
      row: 'coroutine/block',
      against: 'generators',
      ours: () => blocking(unwinding),
      base: () => blocking(generators),
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function made(folder: string, lowering: LoweringName): Promise<Forms> {
  const runtime = new URL('../src/compiler/runtime.ts', import.meta.url).href
  const { code } = compile(source, 'switches.js', { lowering, runtime, sourcemap: false })
  const file = join(folder, `${lowering}.mjs`)
  await writeFile(file, code)
  return (await import(pathToFileURL(file).href)) as Forms
}

/** Nanoseconds for a resume and the next stop, after the first one. */
function repeated({ descend }: Forms, depth: number): number {
  const coroutine = coroutineOf(descend, [depth, Infinity])
  setSafepointFlag(raised, 0)
  try {
    coroutine.start()
    // A recursion checks its safepoint also on the way down: those stops come first.
    for (let warm = 0; warm < depth + 10; warm++) coroutine.resume()
    return timed(50_000, count => {
      for (let turn = 0; turn < count; turn++) coroutine.resume()
    })
  } finally {
    setSafepointFlag(lowered, 0)
  }
}

/** Nanoseconds for the calls up to the first stop in the innermost call, and for the stop itself. */
function first({ descend }: Forms, depth: number): number {
  // The word is raised in the innermost call, so the stop covers the whole stack.
  const turns = {
    valueOf: (): number => {
      setSafepointFlag(raised, 0)
      return Infinity
    },
  }
  try {
    return timed(20_000 / depth, count => {
      for (let turn = 0; turn < count; turn++) {
        setSafepointFlag(lowered, 0)
        if (coroutineOf(descend, [depth, turns as never]).start())
          throw new Error('no safepoint stopped the function')
      }
    })
  } finally {
    setSafepointFlag(lowered, 0)
  }
}

/** Nanoseconds for a call that blocks, and for its continuation. */
function blocking({ block }: Forms): number {
  const turns = 20_000
  const runner = { park: () => ({ wake() {}, fail() {} }), unpark() {}, progress() {} }
  switchTo(runner, null)
  try {
    const coroutine = coroutineOf(block, [turns, yieldNow])
    coroutine.start()
    return timed(turns - 1, count => {
      for (let turn = 0; turn < count; turn++) coroutine.resume()
    })
  } finally {
    switchTo(null, null)
  }
}
