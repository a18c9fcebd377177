import { type EventLog, FAILED, WRITES } from '../machine/eventlog.ts'
import {
  AWAIT,
  COMPARE_EXCHANGE,
  DATAVIEW_READ,
  DATAVIEW_WRITE,
  GROW,
  LENGTH,
  LOAD,
  LOCK,
  RESUME,
  STORE,
  UNLOCK,
  WAIT,
  WAIT_ASYNC,
} from '../machine/operations.ts'

/** Two unordered events that touch a common byte. */
export interface DataRace {
  readonly first: number
  readonly second: number
}

const PLAIN_READS = 0
const PLAIN_WRITES = 1
const ATOMIC_READS = 2
const ATOMIC_WRITES = 3
const CLASSES = 4

/**
 * Finds the data races of an execution, in the sense of the language's memory model. A data race is two
 * accesses of different threads to a common byte, at least one of them a write, that are not ordered by
 * synchronisation. One of them is plain, or both are atomic and their ranges differ.
 *
 * Synchronisation is: an atomic read and the atomic write of the same range that it reads from; a notify and
 * the wakeup that it causes; an unlock and the next lock; a death and its consequences. This orders less than
 * the happens-before of partial-order reduction, where each conflict orders.
 *
 * Each event has a vector clock: component t is the number of events of thread t that are ordered before it,
 * or are it. If an execution has a common prefix with the one before, only the rest is analysed.
 */
export class DataRaces {
  private readonly log: EventLog
  private readonly threads: number
  private length = 0
  private rows: Int32Array
  private readonly lastOf: Int32Array
  private previousOf: Int32Array
  private cells = 0
  /** Per cell: the last write, if it was atomic (or an unlock), else -1. */
  private published = new Int32Array(0)
  /** Per cell and class of access: the threads, and the last such event of each. */
  private masks = new Int32Array(0)
  private last = new Int32Array(0)
  /** For `shrink`: the index, the array (of the three before this) and the old value of each change. */
  private undo = new Int32Array(1024)
  private undoEnd = 0
  private undoStart: Int32Array

  constructor(log: EventLog, threads: number) {
    this.log = log
    this.threads = threads
    this.rows = new Int32Array(log.capacity * threads)
    this.lastOf = new Int32Array(threads).fill(-1)
    this.previousOf = new Int32Array(log.capacity)
    this.undoStart = new Int32Array(log.capacity)
  }

  /**
   * The first data race of the logged execution, or undefined. `common`: the number of events at its start
   * that are the same as in the execution analysed before. `cells`: the number of cells.
   */
  find(cells: number, common: number): DataRace | undefined {
    const { log } = this
    if (cells > this.cells) this.growCells(cells)
    if (log.capacity > this.previousOf.length) this.growRows()
    this.shrink(common)
    for (let at = this.length; at < log.length; at++) {
      const race = this.add(at)
      if (race !== undefined) return race
    }
    return undefined
  }

  private add(at: number): DataRace | undefined {
    const { log, threads, rows } = this
    const thread = log.thread[at]
    const kind = log.kind[at]
    const row = at * threads
    const last = this.lastOf[thread]
    if (last >= 0) for (let t = 0, from = last * threads; t < threads; t++) rows[row + t] = rows[from + t]
    else for (let t = 0; t < threads; t++) rows[row + t] = 0
    this.previousOf[at] = last
    this.lastOf[thread] = at
    this.undoStart[at] = this.undoEnd
    this.length = at + 1
    if (log.enabledBy[at] >= 0) this.join(row, log.enabledBy[at])
    rows[row + thread] = log.ordinal[at]
    if (kind <= COMPARE_EXCHANGE) return this.access(at, row, thread, kind >= LOAD, kind !== STORE)
    if (kind === WAIT || kind === WAIT_ASYNC) return this.access(at, row, thread, true, true)
    if (kind === LENGTH || kind === GROW) return this.access(at, row, thread, true, true)
    if (kind === DATAVIEW_READ || kind === DATAVIEW_WRITE) return this.access(at, row, thread, false, false)
    if (kind === LOCK || kind === UNLOCK) {
      const cell = log.from2[at]
      if (kind === UNLOCK) this.set(PUBLISHED, cell, at)
      else if (this.published[cell] >= 0) this.join(row, this.published[cell])
    } else if (kind === RESUME || kind === AWAIT) {
      const waker = log.expected[at] as number
      if (waker >= 0) this.join(row, waker)
    }
    return undefined
  }

  private access(
    at: number,
    row: number,
    thread: number,
    atomic: boolean,
    reads: boolean,
  ): DataRace | undefined {
    const { log } = this
    const from = log.from[at]
    const to = log.to[at]
    const writes = (log.flags[at] & (WRITES | FAILED)) === WRITES
    if (atomic && reads) {
      const wrote = this.published[from]
      if (wrote >= 0 && log.from[wrote] === from && log.to[wrote] === to) this.join(row, wrote)
    }
    const kindOfAccess = (atomic ? ATOMIC_READS : PLAIN_READS) + (writes ? 1 : 0)
    for (let cell = from; cell < to; cell++) {
      const earlier = this.conflict(at, row, cell, thread, atomic, writes)
      if (earlier >= 0) return { first: earlier, second: at }
      this.remember(cell, kindOfAccess, thread, at)
      if (writes) this.set(PUBLISHED, cell, atomic ? at : -1)
    }
    return undefined
  }

  /** An earlier access to the cell that is in a data race with this one, or -1. */
  private conflict(
    at: number,
    row: number,
    cell: number,
    thread: number,
    atomic: boolean,
    writes: boolean,
  ): number {
    const { masks } = this
    const others = ~(1 << thread)
    const base = cell * CLASSES
    let earlier = -1
    if ((masks[base + PLAIN_WRITES] & others) !== 0)
      earlier = this.unordered(row, base + PLAIN_WRITES, thread, -1)
    if (earlier < 0 && writes && (masks[base + PLAIN_READS] & others) !== 0) {
      earlier = this.unordered(row, base + PLAIN_READS, thread, -1)
    }
    // Two atomic accesses are a race only when their ranges differ.
    const range = atomic ? at : -1
    if (earlier < 0 && (masks[base + ATOMIC_WRITES] & others) !== 0) {
      earlier = this.unordered(row, base + ATOMIC_WRITES, thread, range)
    }
    if (earlier < 0 && writes && (masks[base + ATOMIC_READS] & others) !== 0) {
      earlier = this.unordered(row, base + ATOMIC_READS, thread, range)
    }
    return earlier
  }

  private unordered(row: number, base: number, thread: number, sameRangeAs: number): number {
    const { threads, rows, log } = this
    for (let rest = this.masks[base] & ~(1 << thread); rest !== 0; rest &= rest - 1) {
      const other = 31 - Math.clz32(rest & -rest)
      const event = this.last[base * threads + other]
      if (rows[row + other] >= log.ordinal[event]) continue
      if (
        sameRangeAs >= 0 &&
        log.from[event] === log.from[sameRangeAs] &&
        log.to[event] === log.to[sameRangeAs]
      ) {
        continue
      }
      return event
    }
    return -1
  }

  private remember(cell: number, kindOfAccess: number, thread: number, at: number): void {
    const base = cell * CLASSES + kindOfAccess
    const mask = this.masks[base]
    if (((mask >>> thread) & 1) === 0) this.set(MASKS, base, mask | (1 << thread))
    this.set(LAST, base * this.threads + thread, at)
  }

  /** Writes an element of one of the arrays, and records how to undo it. */
  private set(which: number, index: number, value: number): void {
    if (this.undoEnd + UNDO_WORDS > this.undo.length) {
      const bigger = new Int32Array(this.undo.length * 2)
      bigger.set(this.undo)
      this.undo = bigger
    }
    const array = which === PUBLISHED ? this.published : which === MASKS ? this.masks : this.last
    const { undo, undoEnd } = this
    undo[undoEnd] = which
    undo[undoEnd + 1] = index
    undo[undoEnd + 2] = array[index]
    this.undoEnd = undoEnd + UNDO_WORDS
    array[index] = value
  }

  private shrink(length: number): void {
    const { undo } = this
    while (this.length > length) {
      const at = --this.length
      const start = this.undoStart[at]
      while (this.undoEnd > start) {
        const entry = (this.undoEnd -= UNDO_WORDS)
        const which = undo[entry]
        const array = which === PUBLISHED ? this.published : which === MASKS ? this.masks : this.last
        array[undo[entry + 1]] = undo[entry + 2]
      }
      // The log already contains the next execution: find the thread of this event by the chain of each
      // thread.
      for (let t = 0; t < this.threads; t++) if (this.lastOf[t] === at) this.lastOf[t] = this.previousOf[at]
    }
  }

  private join(row: number, earlier: number): void {
    const { threads, rows } = this
    const from = earlier * threads
    for (let t = 0; t < threads; t++) if (rows[from + t] > rows[row + t]) rows[row + t] = rows[from + t]
  }

  private growRows(): void {
    const { capacity } = this.log
    this.rows = grown(this.rows, capacity * this.threads, 0)
    this.previousOf = grown(this.previousOf, capacity, 0)
    this.undoStart = grown(this.undoStart, capacity, 0)
  }

  private growCells(cells: number): void {
    const size = Math.max(64, cells * 2)
    this.published = grown(this.published, size, -1)
    this.masks = grown(this.masks, size * CLASSES, 0)
    this.last = grown(this.last, size * CLASSES * this.threads, 0)
    this.cells = size
  }
}

const PUBLISHED = 0
const MASKS = 1
const LAST = 2
const UNDO_WORDS = 3

function grown(old: Int32Array, length: number, value: number): Int32Array<ArrayBuffer> {
  const bigger = new Int32Array(length).fill(value)
  bigger.set(old)
  return bigger
}
