/** The outcomes of a check: the results of its final assertion over all executions. */

import type { Failure } from '../report/failure.ts'
import type { CheckOptions } from '../run/options.ts'
import type { CheckResult } from '../search/search.ts'

/** An outcome, and how many executions ended with it. */
export interface OutcomeCount {
  /** Its text in a report. */
  readonly text: string
  readonly executions: number
}

/**
 * The text of an outcome. Outcomes with the same text are the same, so it has all contents. Of a cycle it
 * has the number of levels that it goes up. Very deep parts are left out.
 */
export function formatOutcome(value: unknown, around: readonly unknown[] = []): string {
  const inner = (x: unknown): string => formatOutcome(x, [...around, value])
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function') return `function ${value.name}`
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? '-0' : String(value)
  if (around.includes(value)) return `↑${around.length - around.lastIndexOf(value)}`
  if (around.length > DEPTH_MAX) return '…'
  if (value instanceof Map) return `Map ${inner([...value])}`
  if (value instanceof Set) return `Set ${inner([...value])}`
  if (value instanceof Error) return `${value.name}: ${value.message}`
  if (value instanceof RegExp) return String(value)
  if (value instanceof Date) return `Date ${Number.isNaN(value.getTime()) ? 'NaN' : value.toISOString()}`
  if (value instanceof ArrayBuffer) return `ArrayBuffer ${inner(new Uint8Array(value))}`
  if (value instanceof DataView)
    return `DataView ${inner(Array.from({ length: value.byteLength }, (_, at) => value.getUint8(at)))}`
  if (Array.isArray(value) || ArrayBuffer.isView(value))
    return `[${Array.from(value as unknown[], x => inner(x)).join(', ')}]`
  const symbols = Object.getOwnPropertySymbols(value).filter(key => isEnumerable.call(value, key))
  const fields = [...Object.keys(value), ...symbols]
    .map(key => [keyText(key), (value as Record<PropertyKey, unknown>)[key]] as const)
    .sort(([a], [b]) => (a < b ? -1 : Number(a > b)))
    .map(([name, field]) => `${name}: ${inner(field)}`)
  return `{ ${fields.join(', ')} }`
}

function keyText(key: string | symbol): string {
  if (typeof key === 'symbol') return `[${String(key)}]`
  return /^[\w$]+$/.test(key) ? key : JSON.stringify(key)
}

const { propertyIsEnumerable: isEnumerable } = Object.prototype
const DEPTH_MAX = 20

export class Outcomes {
  private readonly counts = new Map<string, number>()

  add(value: unknown): string {
    const text = formatOutcome(value)
    this.counts.set(text, (this.counts.get(text) ?? 0) + 1)
    return text
  }

  /** Adds the counts of a part of the search. */
  merge(counted: readonly OutcomeCount[] = []): void {
    for (const { text, executions } of counted)
      this.counts.set(text, (this.counts.get(text) ?? 0) + executions)
  }

  clear(): void {
    this.counts.clear()
  }

  get list(): readonly OutcomeCount[] {
    return [...this.counts]
      .map(([text, executions]) => ({ text, executions }))
      .sort((a, b) => (a.text < b.text ? -1 : 1))
  }
}

/**
 * The result of a search, with the expected outcomes that no execution reached. They are a failure if the
 * search is complete.
 */
export function withExpected(result: CheckResult, { expectOutcomes }: CheckOptions): CheckResult {
  const missing = unreached(expectOutcomes, result.outcomes ?? [])
  if (result.failure !== undefined || missing.length === 0) return result
  const what = `${missing.length === 1 ? 'an outcome' : 'outcomes'} that the check expects and no execution reaches: ${missing.join(', ')}`
  if (!result.complete) return { ...result, why: `${result.why}; there may be ${what}` }
  const failure: Failure = {
    kind: 'unreached-outcome',
    title: what,
    detail: [
      'Every execution was covered, so it cannot happen: the code is stricter than the check says, or the threads of the check do not lead there.',
    ],
    schedule: { threads: [], crashes: [] },
    marked: [],
    error: undefined,
  }
  return { ...result, ok: false, outcome: 'failed', failure }
}

/** Whether an outcome, as text, is one of the expected ones. */
export function isExpected(expected: readonly unknown[], text: string): boolean {
  return expected.some(outcome => formatOutcome(outcome) === text)
}

/** The title of a failure for an outcome that is not expected. */
export function notExpected(text: string): string {
  return `the outcome ${text} is not one that the check expects`
}

/** The expected outcomes that were not reached. */
function unreached(expected: readonly unknown[] | undefined, reached: readonly OutcomeCount[]): string[] {
  const known = new Set(reached.map(({ text }) => text))
  return [...new Set((expected ?? []).map(outcome => formatOutcome(outcome)))].filter(
    text => !known.has(text),
  )
}
