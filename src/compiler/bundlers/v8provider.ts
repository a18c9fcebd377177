/**
 * What vitest's provider 'v8' makes of a compiled module. It converts V8's counts of the text that ran. For a
 * module that carries counters (blockcounters.ts) it is given the text before they were put in, and the
 * counts of that text's blocks.
 */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { SourceMap } from '../output/sourcemap.ts'
import type { Counted } from './blockcounters.ts'

interface Range {
  startOffset: number
  endOffset: number
  count: number
}

interface CountedFunction {
  functionName: string
  ranges: Range[]
  isBlockCoverage: boolean
}

interface Sources {
  code: string
  map?: SourceMap | null
}

interface Provider {
  /** The report of a file, from a text that ran, with its map, and V8's counts of it. */
  remapCoverage(
    url: string,
    wrapperLength: number,
    sources: Sources,
    functions: CountedFunction[],
  ): Promise<unknown>
}

/** A module as it was before its counters were put in. */
export interface Original extends Pick<Counted, 'prefix' | 'blocks'> {
  code: string
  map: SourceMap
}

const originals: unique symbol = Symbol.for('heddle.coverage.originals') as never

/** All that were compiled in this process, by the key in the mark at their end. Several plugins share it. */
export type Originals = Map<string, Original>

/**
 * Lets the provider that the project has installed convert modules with counters. Returns where those are to
 * be entered; null without such a provider.
 */
export async function originalsOf(root: string): Promise<Originals | null> {
  let prototype: Partial<Provider> & { [originals]?: Originals }
  try {
    const entry = createRequire(join(root, 'package.json')).resolve('@vitest/coverage-v8')
    const { V8CoverageProvider } = await import(new URL('./provider.js', pathToFileURL(entry)).href)
    prototype = V8CoverageProvider.prototype
  } catch {
    return null
  }
  const known = prototype[originals]
  if (known !== undefined) return known
  const convert = prototype.remapCoverage
  if (typeof convert !== 'function' || convert.length !== 4) return null
  const all: Originals = new Map()
  prototype[originals] = all
  prototype.remapCoverage = function (this: Provider, url, wrapperLength, sources, functions) {
    const original = originalIn(sources.code, url, all)
    if (original === undefined) return convert.call(this, url, wrapperLength, sources, functions)
    const { code, map } = original
    const named = { ...map, sources: sources.map?.sources ?? [url] }
    return convert.call(this, url, 0, { code, map: named }, countsOf(original, functions))
  }
  return all
}

/** The comment by which a text is found to have counters. */
export function markOf(key: string): string {
  return `/* heddle-counted ${key} */`
}

function originalIn(code: string, url: string, all: Originals): Original | undefined {
  const key = /\/\* heddle-counted (\w+) \*\//.exec(code)?.[1]
  if (key === undefined) return undefined
  const original = all.get(key)
  if (original === undefined) {
    process.emitWarning(
      `the coverage of ${url} is wrong: it was compiled by an earlier process, and comes from a cache; turn vitest's cache of modules off`,
      { code: 'HEDDLE_COVERAGE' },
    )
  }
  return original
}

/** V8's counts of the blocks, from its counts of the counters. */
function countsOf({ prefix, blocks }: Original, functions: readonly CountedFunction[]): CountedFunction[] {
  // Of a file that no test has loaded nothing is counted.
  if (functions.length === 0) return []
  const counts = new Map<number, number>()
  for (const { functionName, ranges } of functions) {
    const number = functionName.startsWith(prefix) ? functionName.slice(prefix.length) : ''
    if (!/^\d+$/.test(number)) continue
    const counter = Number(number)
    counts.set(counter, (counts.get(counter) ?? 0) + ranges[0]!.count)
  }
  return blocks.map(({ start, end, counter }) => ({
    functionName: '',
    isBlockCoverage: true,
    ranges: [
      { startOffset: start, endOffset: end, count: counter === null ? 0 : (counts.get(counter) ?? 0) },
    ],
  }))
}
