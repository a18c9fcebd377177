import type { Call, History } from './history.ts'

/**
 * Whether the calls of a history could have happened one at a time: each at some moment between its beginning
 * and its end, with the result that a sequential specification gives. (Herlihy and Wing 1990. The search is
 * Wing and Gong's, and remembers visited states as Lowe's does.)
 */
export interface Specification<S = unknown> {
  readonly name: string
  /** The state before the first call. States are values: `step` returns a new one. */
  readonly initial: S
  /**
   * The new state and the result of the operation. Null: it cannot happen in this state (a lock that is
   * held).
   */
  step(
    state: S,
    operation: string,
    args: readonly unknown[],
  ): { readonly state: S; readonly result: unknown } | null
  /** Equal states have equal keys. Default: the JSON of the state. */
  key?(state: S): string
}

/** Thrown when no order explains a history. Its message shows the history and the longest order that fits. */
export class NotLinearizableError extends Error {
  override readonly name = 'NotLinearizableError'
}

/** More calls than an execution of a check makes, and as many as a bit set of one number holds. */
const CALLS_MAX = 30

/**
 * For the final assertion of a check: `final: () => linearizable(queue, history)`. Throws a
 * NotLinearizableError.
 */
export function linearizable<S>(specification: Specification<S>, history: History): void {
  const { calls } = history
  if (calls.length === 0) {
    throw new TypeError(
      'linearizable: the history is empty; let the threads call the methods of `history.of(object)`',
    )
  }
  if (calls.length > CALLS_MAX) {
    throw new RangeError(
      `linearizable: ${calls.length} calls are too many for one execution; at most ${CALLS_MAX}`,
    )
  }
  const search = new OrderSearch(specification, calls)
  if (!search.explains()) throw new NotLinearizableError(search.report())
}

class OrderSearch<S> {
  private readonly specification: Specification<S>
  private readonly calls: readonly Call[]
  /** The calls that must come before each, as bits. */
  private readonly before: readonly number[]
  /** The calls that have ended, as bits. An order must contain all of these, and may contain others. */
  private readonly required: number
  private readonly visited = new Set<string>()
  private readonly order: number[] = []
  private longest: readonly number[] = []
  private longestState: S

  constructor(specification: Specification<S>, calls: readonly Call[]) {
    this.specification = specification
    this.calls = calls
    this.longestState = specification.initial
    this.before = calls.map(call => bits(calls, earlier => earlier.ended < call.began))
    this.required = bits(calls, call => call.ended !== Infinity)
  }

  explains(): boolean {
    return this.extend(0, this.specification.initial)
  }

  private extend(done: number, state: S): boolean {
    if ((done & this.required) === this.required) return true
    const key = `${done} ${this.specification.key?.(state) ?? JSON.stringify(state)}`
    if (this.visited.has(key)) return false
    this.visited.add(key)
    if (this.order.length > this.longest.length) {
      this.longest = [...this.order]
      this.longestState = state
    }
    for (let at = 0; at < this.calls.length; at++) {
      if (!this.mayCome(at, done)) continue
      const next = this.apply(this.calls[at]!, state)
      if (next === null) continue
      this.order.push(at)
      if (this.extend(done | (1 << at), next.state)) return true
      this.order.pop()
    }
    return false
  }

  private mayCome(at: number, done: number): boolean {
    return (done & (1 << at)) === 0 && (this.before[at]! & ~done) === 0
  }

  /** Null: the specification does not allow the call in this state, or gives another result. */
  private apply(call: Call, state: S): { readonly state: S } | null {
    const step = this.specification.step(state, call.operation, call.args)
    if (step === null || call.ended === Infinity) return step
    return !call.threw && isSame(step.result, call.result) ? step : null
  }

  report(): string {
    const { specification, calls, longest, longestState } = this
    const done = longest.reduce((set, at) => set | (1 << at), 0)
    const lines = [
      `no order of these calls explains their results by the specification of a ${specification.name}:`,
      ...drawing(calls).map(line => `  ${line}`),
    ]
    const known = longest.map(at => textOf(calls[at]!))
    lines.push(
      known.length === 0
        ? 'No call can come first:'
        : `The longest order that fits: ${known.join(', ')}. Then:`,
    )
    for (let at = 0; at < calls.length; at++) {
      if ((done & (1 << at)) !== 0) continue
      const call = calls[at]!
      const missing = calls.filter((_, other) => (this.before[at]! & ~done & (1 << other)) !== 0)
      lines.push(`  ${textOf(call)}: ${this.why(call, missing, longestState)}`)
    }
    return lines.join('\n')
  }

  private why(call: Call, missing: readonly Call[], state: S): string {
    if (missing.length > 0)
      return `comes after ${missing.map(textOf).join(' and ')}, which had ended before it began`
    const step = this.specification.step(state, call.operation, call.args)
    if (step === null) return 'cannot happen in this state'
    if (call.ended === Infinity) return 'has not ended'
    return `would give ${show(step.result)}`
  }
}

function bits(calls: readonly Call[], holds: (call: Call) => boolean): number {
  return calls.reduce((set, call, at) => (holds(call) ? set | (1 << at) : set), 0)
}

function textOf({ operation, args, result, threw, ended }: Call): string {
  const what = `${operation}(${args.map(show).join(', ')})`
  if (ended === Infinity) return `${what} …`
  return threw ? `${what} threw ${show(result)}` : result === undefined ? what : `${what} → ${show(result)}`
}

/** A line for each call: its thread, the call, and a bar from its beginning to its end. */
function drawing(calls: readonly Call[]): string[] {
  const last = Math.max(...calls.map(({ began, ended }) => (ended === Infinity ? began + 1 : ended + 1)))
  const threads = Math.max(...calls.map(({ thread }) => thread.length))
  const texts = calls.map(textOf)
  const width = Math.max(...texts.map(({ length }) => length))
  return calls.map(({ thread, began, ended }, at) => {
    const open = ended === Infinity
    const end = open ? last : ended
    const bar = `${' '.repeat(began * 2)}├${'─'.repeat(Math.max(0, (end - began) * 2))}${open ? '' : '┤'}`
    return `${thread.padEnd(threads)}  ${texts[at]!.padEnd(width)}  ${bar}`.trimEnd()
  })
}

function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'bigint') return `${value}n`
  if (value instanceof Error) return `${value.name}: ${value.message}`
  if (typeof value === 'object' && value !== null) return JSON.stringify(value) ?? String(value)
  return String(value)
}

function isSame(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  const keys = Object.keys(a)
  if (keys.length !== Object.keys(b).length || Array.isArray(a) !== Array.isArray(b)) return false
  return keys.every(key => isSame((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]))
}
