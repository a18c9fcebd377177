import { CHANGED, WOKE, WRITES } from '../machine/eventlog.ts'
import type { HappensBefore } from './happensbefore.ts'
import type { Machine } from '../machine/machine.ts'
import {
  ADD,
  ALLOCATE,
  COMPARE_EXCHANGE,
  CRASH,
  DATAVIEW_READ,
  DATAVIEW_WRITE,
  FREE,
  LOAD,
  PLAIN_READ,
  PLAIN_WRITE,
} from '../machine/operations.ts'
import { pending } from '../machine/pending.ts'

/** Nothing is known of an operation that finds a certain value. */
export const UNKNOWN = 0
/** It ends a useless turn of a loop: the thread waits for another value. */
export const WAITS = 1
/** The thread goes on. */
export const GOES_ON = 2

/**
 * Which atomic operations wait, and for which values.
 *
 *     holder                        spinner
 *     ------                        -------
 *     compareExchange(m, 0 → 1)
 *                                   while (compareExchange(m, 0 → 1) !== 0);  finds 1: a useless turn
 *     store(m, 0)
 *                                   finds 0: goes on
 *
 * A turn of a loop that changes nothing can be deleted from an execution: the rest is an execution with the
 * same outcome. So the operation that would end such a turn need not be performed. Its thread is not
 * scheduled while the word holds that value, as with a mutex. A spinner that goes on is then in a race with
 * the locking by the holder, not with the unlocking: see `Optimal.reverse`.
 *
 * Whether an operation ends a useless turn depends only on the state of its thread and on the value found.
 * The code of a thread is deterministic, so its state is the list of the results of its operations. These
 * lists are numbered here, so the answer is exact: an operation is known to wait only where the same thread,
 * in the same state, has taken a useless turn with the same value.
 *
 * Words for which this is not enough are left to spinwatch.ts (`fits`). A plain access to a word may be in a
 * data race with a useless turn only, and so may an access to freed memory. Watched words and partly
 * overlapping ranges conflict in other ways.
 */
export class Awaits {
  /** Sites where a useless turn has ended. At all other sites an operation goes on, with any value. */
  readonly sites: Set<number> = new Set()
  /** Cells of operations that are known to wait. */
  private readonly cells = new Set<number>()
  /** Cells that are touched by other than atomic operations. */
  private readonly unfit = new Set<number>()
  private machine: Machine | undefined = undefined
  private happens: HappensBefore | undefined = undefined
  /** By event: the state of its thread after it; 0 when it has not been computed. */
  private after = new Int32Array(256)
  /** By state and value: UNKNOWN, WAITS or GOES_ON. */
  private readonly turns = new Map<number, number>()
  /** By state and result of an operation: the state after it. */
  private readonly states = new Map<number, number>()
  private readonly values = new Map<unknown, number>()

  /** `unfit`: cells, in the current numbering, that are known not to fit. */
  constructor(unfit: Iterable<number> = [], cells: Iterable<number> = []) {
    for (const cell of unfit) this.unfit.add(cell)
    for (const cell of cells) this.cells.add(cell)
  }

  /** Starts a search of the same threads as before. */
  watch(machine: Machine, happens: HappensBefore): void {
    this.machine = machine
    this.happens = happens
    this.after.fill(0)
  }

  /** Forgets the cells, after they have been numbered in another way. */
  renumbered(): void {
    this.cells.clear()
    this.unfit.clear()
  }

  /** Cells for which the search relied on the fact that an operation waits. */
  get waitCells(): readonly number[] {
    return [...this.cells]
  }

  get unfitCells(): readonly number[] {
    return [...this.unfit]
  }

  /** Records the new event `at`. False when it shows that a word does not fit that was assumed to fit. */
  note(at: number): boolean {
    const { log } = this.machine as Machine
    if (at >= this.after.length) {
      const bigger = new Int32Array(log.capacity)
      bigger.set(this.after)
      this.after = bigger
    }
    this.after[at] = 0
    const kind = log.kind[at]
    if (kind >= LOAD && kind < DATAVIEW_READ) return true
    if (!UNFIT.has(kind)) return true
    let fine = true
    for (let cell = log.from[at]; cell < log.to[at]; cell++) {
      if (this.unfit.has(cell)) continue
      this.unfit.add(cell)
      if (this.cells.has(cell)) fine = false
    }
    return fine
  }

  /** The threads among these that are known to wait for a change of the word that they read next. */
  waiting(threads: number): number {
    if (this.sites.size === 0) return 0
    let found = 0
    for (let rest = threads; rest !== 0; rest &= rest - 1) {
      const t = 31 - Math.clz32(rest & -rest)
      if (!this.sites.has(pending.site[t]) || !this.standsBeforeFit(t)) continue
      const view = pending.view[t] as ArrayLike<number | bigint>
      const value = view[pending.index[t] as number]
      const machine = this.machine as Machine
      if (this.known(this.stateOf(t), value, machine.to[t] - machine.from[t]) === WAITS) found |= 1 << t
    }
    return found
  }

  /**
   * The last event, `at`, ended a useless turn and has not been added to `happens`. Records that its
   * operation waits. Null when the word does not fit: the turn has to stay in the execution. False when the
   * site is new: the search so far did not know that operations may wait there.
   */
  learn(at: number): boolean | null {
    if (!this.fits(at)) return null
    const { log } = this.machine as Machine
    if (!this.set(at, this.stateOf(log.thread[at]), WAITS)) return null
    this.cells.add(log.from[at])
    if (this.sites.has(log.site[at])) return true
    this.sites.add(log.site[at])
    return false
  }

  /** The same for a machine without a search: whether the operation waits. */
  leaveOut(machine: Machine): boolean {
    this.machine = machine
    const at = machine.log.length - 1
    if (!this.fits(at)) return false
    this.cells.add(machine.log.from[at])
    return true
  }

  /** Records that the last event, `at`, ended no useless turn. */
  wentOn(at: number): void {
    if (this.mayWait(at)) this.set(at, this.stateBefore(at), GOES_ON)
  }

  /** The knowledge about the event `later`, had it come before `earlier`, with which it is in a race. */
  before(earlier: number, later: number): number {
    const { log } = this.machine as Machine
    if (!this.mayWait(later)) return GOES_ON
    if (log.from[earlier] !== log.from[later] || log.to[earlier] !== log.to[later]) return GOES_ON
    const found = (log.flags[earlier] & WRITES) === 0 ? log.result[later] : log.before[earlier]
    return this.known(this.stateBefore(later), found, log.to[later] - log.from[later])
  }

  /** Whether an event would perhaps wait with another value. */
  mayWait(at: number): boolean {
    return this.sites.has((this.machine as Machine).log.site[at]) && this.fits(at)
  }

  private known(state: number, value: unknown, cells: number): number {
    const key = this.turnKey(state, value, cells)
    return key < 0 ? UNKNOWN : (this.turns.get(key) ?? UNKNOWN)
  }

  /** False when there are too many states to record this one. */
  private set(at: number, state: number, what: number): boolean {
    const { log } = this.machine as Machine
    const key = this.turnKey(state, log.result[at], log.to[at] - log.from[at])
    if (key < 0) return false
    this.turns.set(key, what)
    return true
  }

  private turnKey(state: number, value: unknown, cells: number): number {
    const id = this.valueId(bits(value, cells << (this.machine as Machine).memory.shift))
    return state < 0 || id < 0 ? -1 : state * VALUES_MAX + id
  }

  /** Whether an event is an atomic operation on a word that only atomic operations touch. */
  private fits(at: number): boolean {
    const { log } = this.machine as Machine
    return log.to2[at] === 0 && this.fitsAt(log.kind[at], log.from[at], log.to[at])
  }

  private standsBeforeFit(thread: number): boolean {
    const { from, to, to2 } = this.machine as Machine
    return to2[thread] === 0 && this.fitsAt(pending.kind[thread], from[thread], to[thread])
  }

  private fitsAt(kind: number, from: number, to: number): boolean {
    if (kind !== LOAD && (kind < ADD || kind > COMPARE_EXCHANGE)) return false
    const { memory, watch } = this.machine as Machine
    return to > from && !this.unfit.has(from) && !memory.mixed.has(from) && watch?.covers(from, to) !== true
  }

  private stateBefore(at: number): number {
    const { log } = this.machine as Machine
    return this.stateAfter((this.happens as HappensBefore).eventBefore(at), log.thread[at])
  }

  private stateOf(thread: number): number {
    return this.stateAfter((this.happens as HappensBefore).lastEvent(thread), thread)
  }

  /** The state of a thread after its event `at`, or at its start. -1 when there are too many states. */
  private stateAfter(at: number, thread: number): number {
    if (at < 0) return this.start(thread)
    if (this.after[at] !== 0) return this.after[at]
    const { log } = this.machine as Machine
    const happens = this.happens as HappensBefore
    const list: number[] = []
    let from = at
    for (; from >= 0 && this.after[from] === 0; from = happens.eventBefore(from)) list.push(from)
    let state = from < 0 ? this.start(thread) : this.after[from]
    for (let i = list.length - 1; i >= 0; i--) {
      const event = list[i]
      if (state >= 0) {
        // The result of a write does not tell whether the write changed anything, but that decides whether a
        // turn is useless.
        const changed = (log.flags[event] & (CHANGED | WOKE)) === 0 ? 0 : 1
        const id = this.valueId(log.result[event])
        state = id < 0 ? -1 : this.stateFrom(state, id * 2 + changed)
      }
      this.after[event] = state
    }
    return state
  }

  /** The start state of a thread. The state of the recovery thread includes which thread died. */
  private start(thread: number): number {
    const machine = this.machine as Machine
    const { log } = machine
    let dead = 0
    if (machine.names[thread] === 'recovery')
      for (let at = log.length - 1; at >= 0; at--) if (log.kind[at] === CRASH) dead = log.thread[at] + 1
    return this.stateFrom(0, thread * 32 + dead)
  }

  private stateFrom(state: number, input: number): number {
    const key = state * VALUES_MAX * 2 + input
    const known = this.states.get(key)
    if (known !== undefined) return known
    if (this.states.size >= STATES_MAX) return -1
    const made = this.states.size + 1
    this.states.set(key, made)
    return made
  }

  /** A number for a value; -1 when there are too many values. */
  private valueId(value: unknown): number {
    const key = keyOf(value)
    const known = this.values.get(key)
    if (known !== undefined) return known
    const made = this.values.size
    if (made >= VALUES_MAX) return -1
    this.values.set(key, made)
    return made
  }
}

/** A key that distinguishes the values that an operation can return or throw. */
function keyOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? 'negative zero' : value
  if (value instanceof Error) return `${value.name}: ${value.message}`
  const { async, value: inner } = value as { async?: unknown; value?: unknown }
  if (typeof async === 'boolean') return `${async} ${typeof inner === 'string' ? inner : ''}`
  return value
}

/** An integer of this number of bytes, the same for signed and unsigned reads. */
function bits(value: unknown, bytes: number): unknown {
  if (typeof value === 'bigint') return BigInt.asIntN(64, value)
  if (typeof value !== 'number') return value
  return bytes === 1 ? (value << 24) >> 24 : bytes === 2 ? (value << 16) >> 16 : value | 0
}

const UNFIT: ReadonlySet<number> = new Set([
  PLAIN_READ,
  PLAIN_WRITE,
  DATAVIEW_READ,
  DATAVIEW_WRITE,
  FREE,
  ALLOCATE,
])

const VALUES_MAX = 1 << 18
const STATES_MAX = 1 << 22
