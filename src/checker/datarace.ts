import { type EventLog, FAILED, WRITES, WRITES_SECOND } from './eventlog.ts'
import {
  AWAIT,
  COMPARE_EXCHANGE,
  CRASH,
  DATAVIEW_READ,
  ITERATE,
  LOAD,
  LOCK,
  NOTIFY,
  RESUME,
  STORE,
  UNLOCK,
  WAIT,
  WAIT_ASYNC,
} from './operations.ts'

/** Two events that touch a common byte, unordered. */
export interface DataRace {
  readonly first: number
  readonly second: number
  readonly cell: number
}

const PLAIN_READS = 0
const PLAIN_WRITES = 1
const ATOMIC_READS = 2
const ATOMIC_WRITES = 3
const CLASSES = 4

/**
 * Data races of one execution, as the language's memory model has them: two accesses of different threads to a common
 * byte, at least one of them a write, that synchronisation does not order, where one of them is plain, or both are
 * atomic but their ranges differ.
 *
 * What orders: an atomic read and the atomic write of the same range that it reads from; a notify and the waking that it
 * causes; unlocking and the next locking; a death and what follows from it. This is less than the happens-before
 * of partial-order reduction, where every conflict orders.
 */
export class DataRaces {
  private readonly log: EventLog
  private readonly threads: number
  /** The vector clock of each thread. */
  private readonly clocks: Int32Array
  /** What the last atomic write, unlock or notify of a cell published, a row for each cell; and its range. */
  private published: Int32Array = new Int32Array(0)
  private publishedFrom: Int32Array = new Int32Array(0)
  private publishedTo: Int32Array = new Int32Array(0)
  /** Per cell and class of access: which threads, and for each its own clock and event then. */
  private masks: Int32Array = new Int32Array(0)
  private epochs: Int32Array = new Int32Array(0)
  private events: Int32Array = new Int32Array(0)
  private stamp: Int32Array = new Int32Array(0)
  private round = 0
  /** Clocks that a notify hands to those it woke, by event. */
  private handed: Int32Array = new Int32Array(0)

  constructor(log: EventLog, threads: number) {
    this.log = log
    this.threads = threads
    this.clocks = new Int32Array(threads * threads)
  }

  /**
   * The first data race of the logged execution, or undefined. `enabledBy[i]` is the event that let the thread of event i
   * go on before it, or -1.
   */
  find(cells: number, enabledBy: Int32Array): DataRace | undefined {
    const { log, threads, clocks } = this
    if (cells > this.stamp.length) this.grow(cells)
    if (this.handed.length < log.capacity * threads) this.handed = new Int32Array(log.capacity * threads)
    this.round++
    clocks.fill(0)
    for (let t = 0; t < threads; t++) clocks[t * threads + t] = 1
    for (let at = 0; at < log.length; at++) {
      const kind = log.kind[at]
      const thread = log.thread[at]
      if (enabledBy[at] >= 0) this.join(thread, this.handed, enabledBy[at] * threads)
      if (kind <= WAIT || kind === WAIT_ASYNC || (kind >= DATAVIEW_READ && kind <= ITERATE)) {
        const race = this.access(at, kind, thread)
        if (race !== undefined) return race
      }
      if (log.to2[at] > 0) this.other(at, kind, thread)
    }
    return undefined
  }

  private access(at: number, kind: number, thread: number): DataRace | undefined {
    const { log } = this
    const atomic = kind >= LOAD && (kind <= WAIT || kind === WAIT_ASYNC)
    const writes = (log.flags[at] & (WRITES | FAILED)) === WRITES
    const from = log.from[at]
    const to = log.to[at]
    for (let cell = from; cell < to; cell++) {
      this.fresh(cell)
      const race = this.conflicts(at, cell, thread, atomic, writes)
      if (race !== undefined) return race
    }
    if (kind > COMPARE_EXCHANGE && log.to2[at] > 0 && !atomic) {
      // The source of a copy is read.
      for (let cell = log.from2[at]; cell < log.to2[at]; cell++) {
        this.fresh(cell)
        const race = this.conflicts(at, cell, thread, false, false)
        if (race !== undefined) return race
        this.remember(cell, PLAIN_READS, thread, at)
      }
    }
    if (atomic && kind !== STORE && this.publishedFrom[from] === from && this.publishedTo[from] === to) {
      this.join(thread, this.published, from * this.threads)
    }
    const kindOfAccess = atomic
      ? writes
        ? ATOMIC_WRITES
        : ATOMIC_READS
      : writes
        ? PLAIN_WRITES
        : PLAIN_READS
    for (let cell = from; cell < to; cell++) {
      this.remember(cell, kindOfAccess, thread, at)
      if (!writes) continue
      if (atomic) {
        this.publishedFrom[cell] = from
        this.publishedTo[cell] = to
      } else {
        this.publishedTo[cell] = -1
      }
    }
    if (atomic && writes) this.publish(from, thread)
    return undefined
  }

  /** What is on a list or an object: these are the language's own critical sections. */
  private other(at: number, kind: number, thread: number): void {
    const { threads, clocks } = this
    if (kind === NOTIFY || kind === CRASH) {
      for (let t = 0; t < threads; t++) this.handed[at * threads + t] = clocks[thread * threads + t]
      clocks[thread * threads + thread]++
    } else if (kind === LOCK || kind === UNLOCK) {
      const cell = this.log.from2[at]
      this.fresh(cell)
      if (kind === LOCK && this.publishedTo[cell] > 0) this.join(thread, this.published, cell * threads)
      if (kind === UNLOCK) {
        this.publishedTo[cell] = cell + 1
        this.publish(cell, thread)
      }
    } else if ((kind === RESUME || kind === AWAIT) && (this.log.flags[at] & WRITES_SECOND) === 0) {
      const waker = this.wakerOf(at)
      if (waker >= 0) this.join(thread, this.handed, waker * threads)
    }
  }

  /** The notify that a sleeper with a timeout found itself woken by: the last one on its list that woke anyone. */
  private wakerOf(at: number): number {
    const { log } = this
    for (let earlier = at - 1; earlier >= 0; earlier--) {
      if (
        log.kind[earlier] === NOTIFY &&
        log.from2[earlier] === log.from2[at] &&
        (log.flags[earlier] & WRITES_SECOND) !== 0
      ) {
        return earlier
      }
    }
    return -1
  }

  private conflicts(
    at: number,
    cell: number,
    thread: number,
    atomic: boolean,
    writes: boolean,
  ): DataRace | undefined {
    const others = ~(1 << thread)
    const masks = cell * CLASSES
    let earlier = -1
    if ((this.masks[masks + PLAIN_WRITES] & others) !== 0)
      earlier = this.unordered(cell, PLAIN_WRITES, thread, -1)
    if (earlier < 0 && writes && (this.masks[masks + PLAIN_READS] & others) !== 0) {
      earlier = this.unordered(cell, PLAIN_READS, thread, -1)
    }
    // Atomic against atomic is a race only when the ranges differ.
    const range = atomic ? at : -1
    if (earlier < 0 && (this.masks[masks + ATOMIC_WRITES] & others) !== 0) {
      earlier = this.unordered(cell, ATOMIC_WRITES, thread, range)
    }
    if (earlier < 0 && writes && (this.masks[masks + ATOMIC_READS] & others) !== 0) {
      earlier = this.unordered(cell, ATOMIC_READS, thread, range)
    }
    return earlier < 0 ? undefined : { first: earlier, second: at, cell }
  }

  /** An access of this class to the cell by another thread that is not ordered before now, or -1. */
  private unordered(cell: number, kindOfAccess: number, thread: number, sameRangeAs: number): number {
    const { threads, clocks, log } = this
    const mask = this.masks[cell * CLASSES + kindOfAccess] & ~(1 << thread)
    for (let rest = mask; rest !== 0; rest &= rest - 1) {
      const other = 31 - Math.clz32(rest & -rest)
      const slot = (cell * CLASSES + kindOfAccess) * threads + other
      if (clocks[thread * threads + other] >= this.epochs[slot]) continue
      const event = this.events[slot]
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
    const { threads } = this
    const slot = (cell * CLASSES + kindOfAccess) * threads + thread
    this.masks[cell * CLASSES + kindOfAccess] |= 1 << thread
    this.epochs[slot] = this.clocks[thread * threads + thread]
    this.events[slot] = at
  }

  private join(thread: number, rows: Int32Array, from: number): void {
    const { threads, clocks } = this
    const to = thread * threads
    for (let t = 0; t < threads; t++) if (rows[from + t] > clocks[to + t]) clocks[to + t] = rows[from + t]
  }

  private publish(cell: number, thread: number): void {
    const { threads, clocks } = this
    const from = thread * threads
    for (let t = 0; t < threads; t++) this.published[cell * threads + t] = clocks[from + t]
    clocks[from + thread]++
  }

  private fresh(cell: number): void {
    if (this.stamp[cell] === this.round) return
    this.stamp[cell] = this.round
    this.publishedTo[cell] = -1
    const masks = cell * CLASSES
    this.masks[masks] = 0
    this.masks[masks + 1] = 0
    this.masks[masks + 2] = 0
    this.masks[masks + 3] = 0
  }

  private grow(cells: number): void {
    const size = Math.max(64, cells * 2)
    this.published = new Int32Array(size * this.threads)
    this.publishedFrom = new Int32Array(size)
    this.publishedTo = new Int32Array(size)
    this.masks = new Int32Array(size * CLASSES)
    this.epochs = new Int32Array(size * CLASSES * this.threads)
    this.events = new Int32Array(size * CLASSES * this.threads)
    this.stamp = new Int32Array(size)
    this.round = 0
  }
}
