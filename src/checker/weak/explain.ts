/**
 * The explanation of an execution in weak memory: its steps in a memory order, and the reason why the model
 * allows each read to find its value.
 */
import type { RecordedStep } from '../report/recording.ts'
import { targetOf } from '../report/recording.ts'
import { KIND_NAMES } from '../machine/operations.ts'
import { pending } from '../machine/pending.ts'
import { positionsOf, type Valid, validate } from './axioms.ts'
import { covers, keyOf, sameRange, SETUP, type WeakEvent } from './event.ts'

export interface Explained {
  readonly steps: readonly RecordedStep[]
  readonly detail: readonly string[]
  /** The thread of each step. */
  readonly threads: readonly number[]
  readonly marked: readonly number[]
}

export function explain(events: readonly WeakEvent[], joiner: number): Explained {
  const valid = validate(events, joiner)!
  const line = lineUp(events, valid)
  const numbers = new Map<number, number>()
  line.forEach((event, n) => numbers.set(keyOf(event.thread, event.at), n + 1))
  const positions = positionsOf(events)
  const detail: string[] = []
  const marked: number[] = []
  for (const [n, event] of line.entries()) {
    const reasons = reasonsOf(event, n, line, numbers, (v, r) =>
      valid.happens.has(positions.get(keyOf(v.thread, v.at))!, positions.get(keyOf(r.thread, r.at))!),
    )
    if (reasons.length > 0) marked.push(n)
    detail.push(...reasons)
  }
  const steps = line.map((event, n) => stepOf(event, numbers, marked.includes(n)))
  return { steps, detail, threads: line.map(({ thread }) => thread), marked }
}

/** Chooses a memory order in which as many reads as possible follow directly the write that they take. */
function lineUp(events: readonly WeakEvent[], { memory }: Valid): WeakEvent[] {
  const line: WeakEvent[] = []
  const left = new Set(events.keys())
  while (left.size > 0) {
    const ready = [...left].filter(b => ![...left].some(a => memory.has(a, b)))
    const next =
      ready.find(b => isLatest(events[b], line)) ??
      ready.find(b => events[b].sources === undefined) ??
      ready[0]!
    line.push(events[next])
    left.delete(next)
  }
  return line
}

/** Whether each byte of a read comes from the latest write of that byte. */
function isLatest({ access, sources }: WeakEvent, line: readonly WeakEvent[]): boolean {
  return sources?.every((source, i) => lastAt(line, access.address + i) === source) === true
}

function lastAt(line: readonly WeakEvent[], byte: number): number {
  const last = line.findLast(event => event.wrote !== undefined && covers(event.access, byte))
  return last === undefined ? SETUP : keyOf(last.thread, last.at)
}

function reasonsOf(
  event: WeakEvent,
  n: number,
  line: readonly WeakEvent[],
  numbers: ReadonlyMap<number, number>,
  happens: (v: WeakEvent, r: WeakEvent) => boolean,
): string[] {
  const { sources, access } = event
  if (sources === undefined) return []
  const name = (source: number): string => (source === SETUP ? 'the set-up' : `step ${numbers.get(source)}`)
  const reasons: string[] = []
  const distinct = [...new Set(sources)]
  if (distinct.length > 1) {
    reasons.push(
      `Step ${n + 1} mixes bytes of ${distinct.map(name).join(' and ')}: ${access.whole ? 'their ranges differ' : 'an access of its kind may be torn'}, so [4] does not forbid it.`,
    )
  }
  for (const source of distinct) {
    const at = source === SETUP ? -1 : numbers.get(source)! - 1
    if (at > n) {
      reasons.push(
        `Step ${n + 1} takes the value that step ${at + 1} writes later: the read does not happen before that write, so [2] does not forbid it.`,
      )
      continue
    }
    const since = line
      .slice(at + 1, n)
      .filter(
        other =>
          other.wrote !== undefined &&
          sources.some((taken, i) => taken === source && covers(other.access, access.address + i)),
      )
    for (const other of since) {
      const step = numbers.get(keyOf(other.thread, other.at))
      const why = happens(other, event)
        ? `step ${step} happens before it, and ${name(source)} does not happen before step ${step}`
        : `step ${step} does not happen before it${whyUnordered(other, event)}`
      reasons.push(
        `Step ${n + 1} takes the value that ${name(source)} wrote, though step ${step} has written since: ${why}, so [3] does not forbid it${other.access.atomic ? ', nor does [5]' : ''}.`,
      )
    }
  }
  return reasons
}

function whyUnordered(write: WeakEvent, read: WeakEvent): string {
  if (!write.access.atomic || !read.access.atomic) return ' (not both are atomic)'
  return sameRange(write.access, read.access) ? '' : ' (their ranges differ)'
}

function stepOf(event: WeakEvent, numbers: ReadonlyMap<number, number>, marked: boolean): RecordedStep {
  const { access, thread } = event
  const { site, kind, index } = access
  const known = site >= 0 && site < pending.siteLine.length
  const text = known ? pending.siteText[site] : ''
  const from = [...new Set(event.sources)].map(source =>
    source === SETUP ? 'the set-up' : `step ${numbers.get(source)}`,
  )
  const show = (value: unknown): string => (typeof value === 'bigint' ? `${value}n` : String(value))
  const read = event.sources === undefined ? '' : `→ ${show(event.value)} of ${from.join(', ')}`
  const wrote = event.wrote === undefined ? '' : `= ${written(event)}`
  const failed = access.reads && access.writes && event.wrote === undefined ? 'failed' : ''
  return {
    thread,
    kind: KIND_NAMES[kind],
    target: targetOf(kind, text, undefined, index),
    index,
    effect: [wrote, read, failed].filter(part => part !== '').join(' '),
    file: known ? pending.files[pending.siteFile[site]] : '',
    line: known ? pending.siteLine[site] : 0,
    column: known ? pending.siteColumn[site] : 0,
    text,
    marked,
  }
}

/** The value that an event wrote: the number that the thread gave, or else an integer of the event's size. */
function written({ access, wrote, value }: WeakEvent): string {
  if (!access.reads && (typeof value === 'number' || typeof value === 'bigint'))
    return typeof value === 'bigint' ? `${value}n` : String(value)
  let bits = 0n
  for (let i = wrote!.length - 1; i >= 0; i--) bits = (bits << 8n) | BigInt(wrote![i])
  return String(BigInt.asIntN(8 * wrote!.length, bits))
}
