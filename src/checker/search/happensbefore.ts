import { type Awaits, GOES_ON } from './awaits.ts'
import type { EventLog } from '../machine/eventlog.ts'
import { MIXED, WATCHED, WRITES, WRITES_SECOND, WRITES_WATCHED } from '../machine/eventlog.ts'
import { AWAIT, COMPARE_EXCHANGE, LOCK, NOTIFY, RESUME, WAIT, WAIT_ASYNC } from '../machine/operations.ts'

/**
 * The happens-before of one execution in the sense of partial-order reduction: the order of each thread, the
 * order of conflicting events, and the events that unblocked a thread. Each event has a vector clock:
 * component t is the number of events of thread t that happen before it or are it.
 *
 * A race is a pair (e, e') of conflicting events of different threads, with nothing between them in
 * happens-before, where e' could also have come first. A lock is not in a race with the unlock that made it
 * possible, but with the lock before that.
 */
export class HappensBefore {
  readonly threads: number
  private readonly log: EventLog
  rows: Int32Array
  /** The races of event i: `raceWith[raceStart[i]]` up to `raceWith[raceStart[i + 1]]`, events before it. */
  raceStart: Int32Array
  raceWith: Int32Array = new Int32Array(256)

  private readonly lastOf: Int32Array
  /** The number of events added. */
  private length = 0
  private cells = 0
  private lastWrite = new Int32Array(0)
  private lastLock = new Int32Array(0)
  private readers = new Int32Array(0)
  private lastRead = new Int32Array(0)
  private candidates = new Int32Array(64)
  private candidateCount = 0
  private previousOf: Int32Array
  /** By event: the last earlier write of the first cell that it touches; -1 for none. */
  private writeBefore: Int32Array
  private undoStart: Int32Array
  private undo = new Int32Array(256 * UNDO_WORDS)
  private undoEnd = 0

  constructor(log: EventLog, threads: number) {
    this.log = log
    this.threads = threads
    this.rows = new Int32Array(log.capacity * threads)
    this.raceStart = new Int32Array(log.capacity + 1)
    this.lastOf = new Int32Array(threads).fill(-1)
    this.previousOf = new Int32Array(log.capacity)
    this.writeBefore = new Int32Array(log.capacity)
    this.undoStart = new Int32Array(log.capacity)
  }

  /** Removes all events but the first `length`: the next execution begins with these. */
  shrink(length: number): void {
    const { log, threads } = this
    while (this.length > length) {
      const at = --this.length
      this.lastOf[log.thread[at]] = this.previousOf[at]
      const start = this.undoStart[at]
      while (this.undoEnd > start) {
        const entry = (this.undoEnd -= UNDO_WORDS)
        const cell = this.undo[entry]
        this.lastWrite[cell] = this.undo[entry + 1]
        this.readers[cell] = this.undo[entry + 2]
        this.lastLock[cell] = this.undo[entry + 3]
        const reader = this.undo[entry + 4]
        if (reader >= 0) this.lastRead[cell * threads + reader] = this.undo[entry + 5]
      }
    }
  }

  /**
   * Computes the clock and the races of a new event. `cells`: the current number of cells. `unseen`: later
   * events are not in a race with it.
   */
  add(at: number, cells: number, unseen: boolean = false): void {
    const { log, threads } = this
    if (cells > this.cells) this.growCells(cells)
    if ((at + 1) * threads > this.rows.length) this.growRows()
    const { rows } = this
    const thread = log.thread[at]
    const row = at * threads
    const last = this.lastOf[thread]
    if (last >= 0) {
      const from = last * threads
      for (let t = 0; t < threads; t++) rows[row + t] = rows[from + t]
    } else {
      for (let t = 0; t < threads; t++) rows[row + t] = 0
    }
    if (log.enabledBy[at] >= 0) this.join(row, log.enabledBy[at])

    this.candidateCount = 0
    const flags = log.flags[at]
    if (log.to[at] > 0) this.gather(log.from[at], log.to[at], (flags & WRITES) !== 0)
    if (log.to2[at] > 0) this.gather(log.from2[at], log.to2[at], (flags & WRITES_SECOND) !== 0)
    if ((flags & WRITES_WATCHED) === WRITES_WATCHED) this.gather(WATCH_CELL, WATCH_CELL + 1, true)
    let end = this.raceStart[at]
    if (log.kind[at] === LOCK) {
      const lock = this.lastLock[log.from2[at]]
      if (lock >= 0 && rows[row + log.thread[lock]] < log.ordinal[lock]) end = this.addRace(end, lock)
      for (let c = 0; c < this.candidateCount; c++) this.join(row, this.candidates[c])
    } else {
      if (this.candidateCount > 1) this.sortCandidates()
      for (let c = 0; c < this.candidateCount; c++) {
        const earlier = this.candidates[c]
        const other = log.thread[earlier]
        if (rows[row + other] >= log.ordinal[earlier]) continue
        end = this.addRace(end, earlier)
        this.join(row, earlier)
      }
    }
    this.raceStart[at + 1] = end
    rows[row + thread] = log.ordinal[at]
    this.touch(at, unseen)
  }

  /**
   * The last event, `at`, would wait with other values than the one that it found. It cannot come before a
   * write that replaced such a value, but it can come before the write that stored that value. So it is in a
   * race with the writes of its word, latest first, up to a write before which it certainly goes on. `waits`:
   * it waits with this value too, so its place could also be right after the last write.
   */
  addAwait(at: number, awaits: Awaits, waits: boolean): void {
    let end = this.raceStart[at + 1]
    let write = this.writeBefore[at]
    if (this.raceWith.subarray(this.raceStart[at], end).indexOf(write) < 0) {
      if (!waits || !this.mayComeBefore(write, at)) return
      end = this.addRace(end, write)
    }
    while (awaits.before(write, at) !== GOES_ON) {
      write = this.writeBefore[write]
      if (!this.mayComeBefore(write, at)) break
      end = this.addRace(end, write)
    }
    this.raceStart[at + 1] = end
  }

  /** Whether no event that the event `at` depends on happens after this write of its word. */
  private mayComeBefore(write: number, at: number): boolean {
    if (write < 0) return false
    const previous = this.previousOf[at]
    const enabledBy = this.log.enabledBy[at]
    return (
      !(previous >= 0 && this.before(write, previous)) && !(enabledBy >= 0 && this.before(write, enabledBy))
    )
  }

  /** The last event of a thread, or -1. */
  lastEvent(thread: number): number {
    return this.lastOf[thread]
  }

  /** The previous event of the same thread, or -1. */
  eventBefore(at: number): number {
    return this.previousOf[at]
  }

  /** Whether the event `earlier` happens before the event `later`, or is it. */
  before(earlier: number, later: number): boolean {
    return this.rows[later * this.threads + this.log.thread[earlier]] >= this.log.ordinal[earlier]
  }

  /** The flags that the event `later` would have if it came before `earlier`, with which it is in a race. */
  flagsBefore(earlier: number, later: number): number {
    const { log } = this
    const kind = log.kind[later]
    const flags = log.flags[later]
    // Two writes of different watched words are in a race, but neither changes the value that the other
    // finds.
    const overlaps = log.from[earlier] < log.to[later] && log.from[later] < log.to[earlier]
    const changesValue =
      overlaps && (log.flags[earlier] & WRITES) !== 0 && log.kind[earlier] <= COMPARE_EXCHANGE
    const watched = flags & WATCHED
    if (kind === COMPARE_EXCHANGE) {
      if ((flags & MIXED) !== 0) return WRITES | watched
      return changesValue ? (expects(log, earlier, later) ? WRITES : 0) | watched : flags
    }
    if (kind === WAIT || kind === WAIT_ASYNC) {
      if ((flags & MIXED) !== 0) return WRITES_SECOND | watched
      return changesValue ? (expects(log, earlier, later) ? WRITES_SECOND : 0) | watched : flags
    }
    if (kind === NOTIFY) return (log.before[earlier] as number) > 0 ? WRITES_SECOND : 0
    // A sleeper that comes before the notify that woke it finds that its timeout has passed.
    if (kind === RESUME || kind === AWAIT) return log.expected[later] === earlier ? WRITES_SECOND : flags
    return flags
  }

  private addRace(end: number, earlier: number): number {
    if (end === this.raceWith.length) {
      const bigger = new Int32Array(end * 2)
      bigger.set(this.raceWith)
      this.raceWith = bigger
    }
    this.raceWith[end] = earlier
    return end + 1
  }

  private join(row: number, earlier: number): void {
    const { rows, threads } = this
    const from = earlier * threads
    for (let t = 0; t < threads; t++) {
      const value = rows[from + t]
      if (value > rows[row + t]) rows[row + t] = value
    }
  }

  /** Collects the latest events that conflict with a read or a write of these cells. */
  private gather(from: number, to: number, writes: boolean): void {
    const { threads } = this
    for (let cell = from; cell < to; cell++) {
      const readers = writes ? this.readers[cell] : 0
      if (readers === 0) {
        const write = this.lastWrite[cell]
        if (write >= 0) this.addCandidate(write)
        continue
      }
      // The last write happens before each read since, so the reads are enough.
      for (let rest = readers; rest !== 0; rest &= rest - 1) {
        this.addCandidate(this.lastRead[cell * threads + (31 - Math.clz32(rest & -rest))])
      }
    }
  }

  private addCandidate(at: number): void {
    for (let c = 0; c < this.candidateCount; c++) if (this.candidates[c] === at) return
    if (this.candidateCount === this.candidates.length) {
      const bigger = new Int32Array(this.candidates.length * 2)
      bigger.set(this.candidates)
      this.candidates = bigger
    }
    this.candidates[this.candidateCount++] = at
  }

  /** Sorts the candidates, latest first: an event that happens before a later candidate is covered by it. */
  private sortCandidates(): void {
    const { candidates, candidateCount } = this
    for (let i = 1; i < candidateCount; i++) {
      const value = candidates[i]
      let at = i - 1
      for (; at >= 0 && candidates[at] < value; at--) candidates[at + 1] = candidates[at]
      candidates[at + 1] = value
    }
  }

  private touch(at: number, unseen: boolean): void {
    const { log } = this
    const flags = log.flags[at]
    const thread = log.thread[at]
    this.previousOf[at] = this.lastOf[thread]
    this.lastOf[thread] = at
    this.length = at + 1
    this.undoStart[at] = this.undoEnd
    this.writeBefore[at] = log.to[at] > 0 ? this.lastWrite[log.from[at]] : -1
    if (unseen) return
    if (log.to[at] > 0) this.touchCells(log.from[at], log.to[at], (flags & WRITES) !== 0, at)
    if (log.to2[at] > 0) {
      this.touchCells(log.from2[at], log.to2[at], (flags & WRITES_SECOND) !== 0, at)
      if (log.kind[at] === LOCK) this.lastLock[log.from2[at]] = at
    }
    if ((flags & WRITES_WATCHED) === WRITES_WATCHED) this.touchCells(WATCH_CELL, WATCH_CELL + 1, true, at)
  }

  private touchCells(from: number, to: number, writes: boolean, at: number): void {
    const { threads } = this
    const thread = this.log.thread[at]
    for (let cell = from; cell < to; cell++) {
      if (this.undoEnd + UNDO_WORDS > this.undo.length) {
        const bigger = new Int32Array(this.undo.length * 2)
        bigger.set(this.undo)
        this.undo = bigger
      }
      const { undo, undoEnd } = this
      this.undoEnd = undoEnd + UNDO_WORDS
      undo[undoEnd] = cell
      undo[undoEnd + 1] = this.lastWrite[cell]
      undo[undoEnd + 2] = this.readers[cell]
      undo[undoEnd + 3] = this.lastLock[cell]
      if (writes) {
        undo[undoEnd + 4] = -1
        this.lastWrite[cell] = at
        this.readers[cell] = 0
      } else {
        const slot = cell * threads + thread
        undo[undoEnd + 4] = thread
        undo[undoEnd + 5] = this.lastRead[slot]
        this.readers[cell] |= 1 << thread
        this.lastRead[slot] = at
      }
    }
  }

  private growRows(): void {
    const capacity = this.log.capacity
    const grown = (old: Int32Array, size: number): Int32Array<ArrayBuffer> => {
      const bigger = new Int32Array(size)
      bigger.set(old)
      return bigger
    }
    this.rows = grown(this.rows, capacity * this.threads)
    this.raceStart = grown(this.raceStart, capacity + 1)
    this.previousOf = grown(this.previousOf, capacity)
    this.writeBefore = grown(this.writeBefore, capacity)
    this.undoStart = grown(this.undoStart, capacity)
  }

  private growCells(cells: number): void {
    const size = Math.max(64, cells * 2)
    const grown = (old: Int32Array, length: number, value: number): Int32Array<ArrayBuffer> => {
      const bigger = new Int32Array(length).fill(value)
      bigger.set(old)
      return bigger
    }
    this.lastWrite = grown(this.lastWrite, size, -1)
    this.lastLock = grown(this.lastLock, size, -1)
    this.readers = grown(this.readers, size, 0)
    this.lastRead = grown(this.lastRead, size * this.threads, -1)
    this.cells = size
  }
}

/**
 * Whether `later` finds its expected value in the word that `earlier` is about to write: both have one range.
 */
function expects(log: EventLog, earlier: number, later: number): boolean {
  const before = log.before[earlier]
  const expected = log.expected[later]
  if (typeof before !== 'number' || typeof expected !== 'number') return before === expected
  // Modulo 2^32: one of them may come from a signed view and the other from an unsigned one.
  return (before | 0) === (expected | 0)
}

/** One cell for all watched words: each write of one of them is a write here. No memory lies at cell 0. */
const WATCH_CELL = 0

/** Per cell of an event: the cell, and its previous write, readers, lock, and reader with its last read. */
const UNDO_WORDS = 6
