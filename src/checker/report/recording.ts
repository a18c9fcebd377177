import { FAILED, WRITES } from '../machine/eventlog.ts'
import type { Machine } from '../machine/machine.ts'
import type { Setup } from '../machine/program.ts'
import {
  AWAIT,
  COMPARE_EXCHANGE,
  CRASH,
  DATAVIEW_READ,
  FREE,
  KIND_NAMES,
  LOAD,
  LOCK,
  PLAIN_READ,
  PLAIN_WRITE,
  RESUME,
  STORE,
  UNLOCK,
  WAIT,
  WAIT_ASYNC,
} from '../machine/operations.ts'
import { pending } from '../machine/pending.ts'
import type { Schedule } from '../machine/schedule.ts'

/** One step of a recorded execution, as a report shows it. */
export interface RecordedStep {
  readonly thread: number
  /** "load", "compareExchange", "wait" … */
  readonly kind: string
  /** The word that it accessed, as the source names it: "i32[start + HEAD]". */
  readonly target: string
  readonly index: number
  /** Its effect, with values: "= 1", "→ 0", "0 ⇒ 1, done". */
  readonly effect: string
  readonly file: string
  readonly line: number
  readonly column: number
  readonly text: string
  readonly marked: boolean
}

/** Called around each step of a recording. */
export interface StepObserver {
  /** The thread stands before its operation. */
  before(thread: number): void
  /** The operation is event `at` of the log. */
  after(at: number): void
}

/** Runs a schedule once more and records the effect of each step. The machine's guards must be in place. */
export function record(
  machine: Machine,
  setup: Setup,
  schedule: Schedule,
  marked: readonly number[],
  observer?: StepObserver,
): RecordedStep[] {
  machine.crashAt.fill(-1)
  for (const { thread, step } of schedule.crashes) machine.crashAt[thread] = step
  machine.values = []
  machine.spin.stopsForGood = false
  const steps: RecordedStep[] = []
  const points = new Set(marked)
  machine.begin(setup)
  for (const [at, thread] of schedule.threads.entries()) {
    if (((machine.enabled >>> thread) & 1) === 0) break
    const kind = pending.kind[thread]
    const site = pending.site[thread]
    const view = pending.view[thread]
    const { a, b } = { a: pending.a[thread], b: pending.b[thread] }
    observer?.before(thread)
    machine.step(thread)
    observer?.after(at)
    const known = site >= 0 && site < pending.siteLine.length && kind !== CRASH
    const index = machine.log.index[at]
    const text = known ? pending.siteText[site] : ''
    steps.push({
      thread,
      kind: KIND_NAMES[kind],
      target: kind === CRASH || kind === RESUME ? '' : targetOf(kind, text, view, index),
      index,
      effect: effectOf(kind, a, b, machine.values[at], machine.log.before[at], machine.log.flags[at]),
      file: known ? pending.files[pending.siteFile[site]] : '',
      line: known ? pending.siteLine[site] : 0,
      column: known ? pending.siteColumn[site] : 0,
      text,
      marked: points.has(at),
    })
  }
  machine.values = undefined
  return steps
}

/** The location as the source names it, with the index if that adds information. */
export function targetOf(kind: number, text: string, view: unknown, index: number): string {
  if (kind === LOCK || kind === UNLOCK) return 'mutex'
  const named = text.replaceAll(/\s+/g, ' ').trim()
  const call = /^Atomics\.\w+\(\s*([^,]+?)\s*,\s*(.+?)\s*(?:,|\)$)/.exec(named)
  const access = /^(.+?)\[(.+?)\]/.exec(named)
  const [object, key] = call?.slice(1) ??
    access?.slice(1) ?? [view?.constructor?.name ?? 'memory', `${index}`]
  if (index < 0 || key === `${index}`) return `${object}[${key}]`
  return `${object}[${key} = ${index}]`
}

function effectOf(
  kind: number,
  a: unknown,
  b: unknown,
  value: unknown,
  before: unknown,
  flags: number,
): string {
  const show = (x: unknown): string =>
    typeof x === 'bigint' ? `${x}n` : typeof x === 'object' && x !== null ? summary(x) : String(x)
  if (kind === PLAIN_READ || kind === LOAD || kind === DATAVIEW_READ) return `→ ${show(value)}`
  if (kind === PLAIN_WRITE || kind === STORE) return `= ${show(a)}`
  if (kind === COMPARE_EXCHANGE) {
    return (flags & (WRITES | FAILED)) === WRITES
      ? `${show(a)} ⇒ ${show(b)}, done`
      : `${show(a)} ⇒ ${show(b)}, failed: it is ${show(value)}`
  }
  if (kind === WAIT || kind === WAIT_ASYNC) {
    const result = typeof value === 'symbol' ? 'sleeps' : show(value)
    return `while ${show(a)}${b === undefined ? '' : ` for ${show(b)} ms`} → ${result}`
  }
  if (kind === RESUME || kind === AWAIT) return `→ ${show(value)}`
  if (kind === CRASH || kind === LOCK || kind === UNLOCK) return ''
  if (kind >= FREE) return `${show(a)} elements`
  if (typeof before !== 'undefined' && kind < WAIT) return `${show(a)}: ${show(before)} before`
  return `${a === undefined ? '' : show(a)} → ${show(value)}`.trim()
}

function summary(x: object): string {
  const text = ArrayBuffer.isView(x)
    ? `[${Array.from(x as unknown as number[]).join(', ')}]`
    : JSON.stringify(x)
  return text === undefined ? 'object' : text.length > 40 ? `${text.slice(0, 39)}…` : text
}
