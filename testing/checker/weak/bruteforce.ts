/**
 * A second implementation of the memory model, for tests. It follows the text of ECMA-262 and ignores speed:
 * it tries all bytes for each read, all reads-bytes-from relations and all total orders. It shares no code
 * with the search.
 */
import { permutations } from './permutations.ts'

export interface Operation {
  /** rmw: exclusive or. cas: writes `value` if all bytes are 0. */
  readonly does: 'read' | 'write' | 'rmw' | 'cas'
  readonly atomic: boolean
  /** By a DataView: it may tear. */
  readonly data: boolean
  readonly byte: number
  readonly size: number
  readonly value: number
  /** Writes the thread's register instead of `value`. */
  readonly copies: boolean
}

interface Event {
  readonly id: string
  readonly thread: number
  readonly po: number
  readonly op: Operation
  readonly reads: number[] | undefined
  readonly writes: number[] | undefined
}

const DOMAIN = [0, 1, 2, 3]

/** The new value of a thread's register after a read found these bytes. */
export function fold(register: number, found: readonly number[]): number {
  return (found.reduce((sum, byte, i) => sum + byte * (i + 1), register * 2) & 3) >>> 0
}

/** The bytes of a value: each has the same digit, so that a torn value can be recognized. */
export function bytesOf(value: number, size: number): number[] {
  return Array.from({ length: size }, () => value & 3)
}

/** All possible runs of a thread: each of its reads may find any bytes. */
function runsOf(thread: number, operations: readonly Operation[]): { events: Event[]; log: string }[] {
  let runs: { events: Event[]; register: number; log: string }[] = [{ events: [], register: 0, log: '' }]
  operations.forEach((op, po) => {
    runs = runs.flatMap(run => {
      const isRead = op.does !== 'write'
      return (isRead ? lists(op.size) : [undefined]).map(found => {
        const value = op.copies ? run.register : op.value
        const writes =
          op.does === 'write'
            ? bytesOf(value, op.size)
            : op.does === 'rmw'
              ? found!.map(byte => byte ^ (value & 3))
              : op.does === 'cas' && found!.every(byte => byte === 0)
                ? bytesOf(value, op.size)
                : undefined
        const event: Event = { id: `${thread}/${po}`, thread, po, op, reads: found, writes }
        return {
          events: [...run.events, event],
          register: found === undefined ? run.register : fold(run.register, found),
          log: found === undefined ? run.log : `${run.log} ${found.join('')}`,
        }
      })
    })
  })
  return runs.map(({ events, log }) => ({ events, log: log.trim() }))
}

function lists(size: number): number[][] {
  return size === 0 ? [[]] : lists(size - 1).flatMap(list => DOMAIN.map(byte => [...list, byte]))
}

function product<T>(sets: readonly (readonly T[])[]): T[][] {
  return sets.reduce<T[][]>((all, set) => all.flatMap(list => set.map(x => [...list, x])), [[]])
}

interface Execution {
  readonly events: readonly Event[]
  /** Per read, per byte: the write, or undefined for the set-up. */
  readonly rbf: ReadonlyMap<Event, readonly (Event | undefined)[]>
  readonly outcome: string
}

/** A loop that repeats a one-byte read until it finds a value, or a compare-exchange until it finds zero. */
export interface Spin {
  readonly thread: number
  readonly at: number
}

/**
 * The outcomes that the model allows: the bytes that the reads of each thread found. The last thread begins
 * when the others have ended. Of a loop that waits, only the last turn is modelled; or the loop never ends,
 * and its thread has no further events.
 */
export function bruteForce(threads: readonly (readonly Operation[])[], spin?: Spin): string[] {
  if (spin === undefined) return outcomesOf(validOf(threads), [])
  const { thread, at } = spin
  const leaves = ({ events }: Execution): boolean => {
    const last = events.find(event => event.thread === thread && event.po === at)!
    return (last.reads![0] === 0) === (last.op.does === 'cas')
  }
  const endless = threads.map((operations, t) => (t === thread ? operations.slice(0, at) : operations))
  return outcomesOf(validOf(threads).filter(leaves), validOf([...endless.slice(0, -1), []]))
}

/** The outcomes of `valid`, where the values are grounded by executions of either list. */
function outcomesOf(valid: readonly Execution[], others: readonly Execution[]): string[] {
  const kept = new Set(grounded([...valid, ...others]))
  return [...new Set(valid.filter(execution => kept.has(execution)).map(({ outcome }) => outcome))].sort()
}

function validOf(threads: readonly (readonly Operation[])[]): Execution[] {
  const joiner = threads.length - 1
  const valid: Execution[] = []
  for (const runs of product(threads.map((operations, thread) => runsOf(thread, operations)))) {
    const events = runs.flatMap(run => run.events)
    const reads = events.filter(event => event.reads !== undefined)
    const choices = reads.map(read =>
      product(
        read.reads!.map((byte, i) => [
          ...(byte === 0 ? [undefined] : []),
          ...events.filter(w => w !== read && w.writes?.[read.op.byte + i - w.op.byte] === byte),
        ]),
      ),
    )
    if (choices.some(list => list.length === 0)) continue
    for (const chosen of product(choices)) {
      const rbf = new Map(reads.map((read, n) => [read, chosen[n]!]))
      if (isValid(events, rbf, joiner))
        valid.push({ events, rbf, outcome: runs.map(run => `(${run.log})`).join('') })
    }
  }
  return valid
}

const equal = (a: Operation, b: Operation): boolean => a.byte === b.byte && a.size === b.size
const noTear = ({ data }: Operation): boolean => !data

function isValid(
  events: readonly Event[],
  rbf: ReadonlyMap<Event, readonly (Event | undefined)[]>,
  joiner: number,
): boolean {
  const rf = [...rbf].flatMap(([r, ws]) => [...new Set(ws)].map(w => [r, w] as const))
  const sw = (w: Event | undefined, r: Event): boolean =>
    w !== undefined &&
    rf.some(([a, b]) => a === r && b === w) &&
    w.op.atomic &&
    r.op.atomic &&
    equal(w.op, r.op)
  const n = events.length
  const hbm = events.map(a =>
    events.map(
      b => (a.thread === b.thread && a.po < b.po) || (a.thread !== joiner && b.thread === joiner) || sw(a, b),
    ),
  )
  for (let k = 0; k < n; k++)
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) hbm[i]![j] ||= hbm[i]![k]! && hbm[k]![j]!
  if (hbm.some((row, i) => row[i])) return false
  // The set-up happens before all events.
  const hb = (a: Event | undefined, b: Event | undefined): boolean =>
    a === undefined ? b !== undefined : b !== undefined && hbm[events.indexOf(a)]![events.indexOf(b)]!
  for (const [r, ws] of rbf) {
    for (const [i, w] of ws.entries()) {
      if (hb(r, w)) return false
      const at = r.op.byte + i
      const hides = (v: Event): boolean => v.writes?.[at - v.op.byte] !== undefined && hb(w, v) && hb(v, r)
      if (events.some(hides)) return false
    }
    // The set-up is a write of every range.
    const alike = new Set(ws.filter(w => w === undefined || (noTear(w.op) && equal(w.op, r.op))))
    if (noTear(r.op) && alike.size > 1) return false
  }
  const atomicWrites = events.filter(v => v.writes !== undefined && v.op.atomic)
  return permutations(n).some(order => {
    const at = (e: Event | undefined): number => (e === undefined ? -1 : order[events.indexOf(e)]!)
    const before = (a: Event | undefined, b: Event | undefined): boolean => at(a) < at(b)
    if (events.some(a => events.some(b => hb(a, b) && !before(a, b)))) return false
    return rf.every(([r, w]) =>
      atomicWrites.every(v => {
        if (v === w || v === r || !before(w, v) || !before(v, r)) return true
        const isAtomic = w?.op.atomic === true
        return !(
          (sw(w, r) && equal(v.op, r.op)) ||
          (hb(w, r) && hb(v, r) && isAtomic && equal(w!.op, v.op)) ||
          (hb(w, r) && hb(w, v) && r.op.atomic && equal(v.op, r.op))
        )
      }),
    )
  })
}

/**
 * The executions whose values are grounded. Leave out the reads from writes that a grounded execution has: in
 * the remaining relation no event depends on itself.
 */
function grounded(valid: readonly Execution[]): Execution[] {
  const pair = ({ id, writes }: Event): string => `${id} ${writes?.join()}`
  const known = new Set<string>()
  let found: Execution[] = []
  for (;;) {
    const before = known.size
    const now = valid.filter(execution => isAcyclic(execution, w => known.has(pair(w))))
    for (const { events } of now)
      for (const event of events) if (event.writes !== undefined) known.add(pair(event))
    if (known.size === before && now.length === found.length) return now
    found = now
  }
}

function isAcyclic({ events, rbf }: Execution, isKnown: (write: Event) => boolean): boolean {
  const left = new Set(events)
  for (;;) {
    const next = [...left].find(event => {
      const hasEarlier = [...left].some(other => other.thread === event.thread && other.po < event.po)
      const waits = rbf.get(event)?.some(w => w !== undefined && left.has(w) && !isKnown(w)) === true
      return !hasEarlier && !waits
    })
    if (next === undefined) return left.size === 0
    left.delete(next)
  }
}
