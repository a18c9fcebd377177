/**
 * Adapts vitest's provider 'v8' to compiled modules. It converts V8's counts of the text that ran. For a
 * module with counters (blockcounters.ts), it gets the original text and the counts of that text's blocks.
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
  /** The report of a file, from the text that ran, its map, and V8's counts. */
  remapCoverage(
    url: string,
    wrapperLength: number,
    sources: Sources,
    functions: CountedFunction[],
  ): Promise<unknown>
}

/** A module before its counters were inserted. */
interface Original extends Pick<Counted, 'prefix' | 'blocks'> {
  code: string
  map: SourceMap
}

const originals: unique symbol = Symbol.for('heddle.coverage.originals') as never

/** All modules with counters of this process, by the key in their mark. Several plugins share it. */
export type Originals = Map<string, Original>

/**
 * Adapts the provider that the project has installed. Returns the map to store originals in; null without
 * such a provider.
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

/** The comment that marks a text with counters. */
export function markOf(key: string): string {
  return `/* heddle-counted ${key} */`
}

function originalIn(code: string, url: string, all: Originals): Original | undefined {
  const key = /\/\* heddle-counted (\w+) \*\//.exec(code)?.[1]
  if (key === undefined) return undefined
  const original = all.get(key)
  if (original === undefined) {
    process.emitWarning(
      `the coverage of ${url} is wrong: an earlier process compiled it, and it comes from a cache; disable vitest's cache of modules`,
      { code: 'HEDDLE_COVERAGE' },
    )
  }
  return original
}

/** V8's counts of the blocks, computed from its counts of the counters. */
function countsOf({ prefix, blocks }: Original, functions: readonly CountedFunction[]): CountedFunction[] {
  // A file that no test has loaded has no counts.
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
