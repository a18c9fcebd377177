/** Flags of an event. */
/** Writes its first range. */
export const WRITES = 1
/** Writes its second range. */
export const WRITES_SECOND = 2
/** Changed the value of memory. */
export const CHANGED = 4
/** Woke at least one sleeper. */
export const WOKE = 8

/** Counts as a write and did not write: a compare-exchange that failed, where accesses overlap in part. */
export const FAILED = 16
/** Accesses overlap in part: the writes of an operation must not depend on values, see `Memory.mixed`. */
export const MIXED = 32
/** Its first range lies on a word that `always` watches. */
export const WATCHED = 64
/** Writes a watched word: in conflict with every other such event, whichever words the two write. */
export const WRITES_WATCHED: number = WATCHED | WRITES

/**
 * One execution, event by event, in arrays that are reused: an explorer runs millions of executions and must
 * not allocate in any of them.
 *
 * An event touches at most two ranges of cells: `[from, to)` and `[from2, to2)`. A range is empty when its
 * end is not greater than its start. The second range is the waiter list of a wait or notify, or the source
 * of a copy.
 */
export class EventLog {
  length: number = 0
  capacity: number
  thread: Int32Array
  kind: Int32Array
  site: Int32Array
  from: Int32Array
  to: Int32Array
  from2: Int32Array
  to2: Int32Array
  flags: Int32Array
  /** Index into the view, for operations on a view. */
  index: Int32Array
  /** The position of this event among the events of its thread, from 1. */
  ordinal: Int32Array
  /** The event of another thread that unblocked this thread before this event; -1 for none. */
  enabledBy: Int32Array
  /** For a write: the value of the location before. On a waiter list: the number of sleepers. */
  before: unknown[]
  /** The expected value of a compare-exchange or a wait. */
  expected: unknown[]
  /** The result that the operation returned to its thread, or threw. */
  result: unknown[]
  /** The value written, as a number: a second run must write the same. */
  wrote: Float64Array

  constructor(capacity = 256) {
    this.capacity = capacity
    this.thread = new Int32Array(capacity)
    this.kind = new Int32Array(capacity)
    this.site = new Int32Array(capacity)
    this.from = new Int32Array(capacity)
    this.to = new Int32Array(capacity)
    this.from2 = new Int32Array(capacity)
    this.to2 = new Int32Array(capacity)
    this.flags = new Int32Array(capacity)
    this.index = new Int32Array(capacity)
    this.ordinal = new Int32Array(capacity)
    this.enabledBy = new Int32Array(capacity)
    this.before = Array.from({ length: capacity }, () => 0)
    this.expected = Array.from({ length: capacity }, () => 0)
    this.result = Array.from({ length: capacity }, () => 0)
    this.wrote = new Float64Array(capacity)
  }

  grow(): void {
    const bigger = new EventLog(this.capacity * 2)
    for (const name of INT32_FIELDS) {
      bigger[name].set(this[name])
      this[name] = bigger[name]
    }
    bigger.wrote.set(this.wrote)
    this.wrote = bigger.wrote
    for (let i = this.capacity; i < bigger.capacity; i++) {
      this.before.push(0)
      this.expected.push(0)
      this.result.push(0)
    }
    this.capacity = bigger.capacity
  }

  /** Whether two events of one log touch a common cell and at least one of them writes it. */
  conflict(a: number, b: number): boolean {
    return conflict(
      this.from[a],
      this.to[a],
      this.from2[a],
      this.to2[a],
      this.flags[a],
      this.from[b],
      this.to[b],
      this.from2[b],
      this.to2[b],
      this.flags[b],
    )
  }
}

const INT32_FIELDS = [
  'thread',
  'kind',
  'site',
  'from',
  'to',
  'from2',
  'to2',
  'flags',
  'index',
  'ordinal',
  'enabledBy',
] as const

/** Whether two footprints share a cell that at least one of them writes, or both write watched words. */
export function conflict(
  from: number,
  to: number,
  from2: number,
  to2: number,
  flags: number,
  otherFrom: number,
  otherTo: number,
  otherFrom2: number,
  otherTo2: number,
  otherFlags: number,
): boolean {
  if (from < otherTo && otherFrom < to && ((flags | otherFlags) & WRITES) !== 0) return true
  if ((flags & otherFlags & WRITES_WATCHED) === WRITES_WATCHED) return true
  if (to2 !== 0) {
    const second = flags & WRITES_SECOND
    if (from2 < otherTo && otherFrom < to2 && (second | (otherFlags & WRITES)) !== 0) return true
    if (from2 < otherTo2 && otherFrom2 < to2 && (second | (otherFlags & WRITES_SECOND)) !== 0) return true
  }
  return (
    otherTo2 !== 0 &&
    from < otherTo2 &&
    otherFrom2 < to &&
    ((flags & WRITES) | (otherFlags & WRITES_SECOND)) !== 0
  )
}
