import type { Track, TrackArgs } from '../../src/trace/tracks.ts'
import { Columns, upperBound } from './columns.ts'

/** The state of a task during a slice. On the lane of a CPU every slice is RUNNING. */
export const RUNNING = 1
export const RUNNABLE = 2
export const PREEMPTED = 3
export const SLEEPING = 4
export const WAITS_LOCK = 5
export const STOPPED = 6
export const YIELDS_LOCK = 7

export const stateNames: readonly string[] = [
  '',
  'running',
  'runnable',
  'preempted',
  'asleep',
  'waiting for a lock',
  'stopped',
  'yielding for a lock',
]

/** How a task ended, by the code of its mark `exit`: an outcome of src/kernel/spawn/job.ts. */
export const exitNames: readonly string[] = [
  'ended',
  'returned',
  'threw an error',
  'was killed',
  'was killed, and its CPU was replaced',
  'was lost with its CPU',
]

/** The states in which a task has no CPU although it wants one or waits for something. */
export function isWait(state: number): boolean {
  return state !== RUNNING && state !== 0
}

/** The state that a slice's name on the track of a task stands for (src/trace/timeline.ts). */
export function stateOf(name: string): number {
  if (name.startsWith('running')) return RUNNING
  if (name === 'runnable (preempted)') return PREEMPTED
  if (name === 'runnable (yields for a lock)') return YIELDS_LOCK
  if (name.startsWith('runnable')) return RUNNABLE
  if (name === 'blocked: lock') return WAITS_LOCK
  if (name.startsWith('blocked')) return SLEEPING
  return name === 'stopped' ? STOPPED : 0
}

/** An open slice ends here. */
const OPEN: number = Infinity

export interface Slice {
  readonly lane: Lane
  /** The number of the row, which stays when older rows are dropped. */
  readonly number: number
  readonly start: number
  /** Infinity: it has not ended. */
  readonly end: number
  readonly state: number
  readonly name: string
  /** On a CPU: the track of the task. On a task: the CPU's number plus 1, while it runs. */
  readonly other: number
  readonly args: TrackArgs | undefined
  readonly endArgs: TrackArgs | undefined
}

export interface Instant {
  readonly time: number
  readonly name: string
  readonly args: TrackArgs | undefined
}

/** The slices and instants of one track, in order of time. Times are nanoseconds. */
export class Lane {
  readonly track: Track
  private readonly strings: StringTable
  /** start, end, time in slices before this one; name, state, other, arguments */
  private readonly slices = new Columns(3, 3)
  private readonly marks = new Columns(1, 1)
  private args: (TrackArgs | undefined)[] = []
  private endArgs: (TrackArgs | undefined)[] = []
  private markArgs: (TrackArgs | undefined)[] = []
  private isOpen = false

  constructor(track: Track, strings: StringTable) {
    this.track = track
    this.strings = strings
  }

  get count(): number {
    return this.slices.length
  }

  get markCount(): number {
    return this.marks.length
  }

  get firstTime(): number {
    return this.slices.length === 0 ? Infinity : this.slices.times[0][0]
  }

  /** The state of its last slice, if that is open. */
  get openState(): number {
    return this.isOpen ? this.slices.words[1][this.slices.length - 1] : 0
  }

  begin(time: number, name: string, state: number, other: number, args: TrackArgs | undefined): void {
    if (this.isOpen) this.end(time, undefined)
    const { slices } = this
    const row = slices.push()
    const [start, end, before] = slices.times
    start[row] = time
    end[row] = OPEN
    before[row] = row === 0 ? 0 : before[row - 1] + (end[row - 1] - start[row - 1])
    slices.words[0][row] = this.strings.id(name)
    slices.words[1][row] = state
    slices.words[2][row] = other
    this.args.push(args)
    this.endArgs.push(undefined)
    this.isOpen = true
  }

  /** Returns the row of the slice that ended, or -1. */
  end(time: number, args: TrackArgs | undefined): number {
    if (!this.isOpen) return -1
    const row = this.slices.length - 1
    this.slices.times[1][row] = Math.max(time, this.slices.times[0][row])
    this.endArgs[row] = args
    this.isOpen = false
    return row
  }

  mark(time: number, name: string, args: TrackArgs | undefined): void {
    const row = this.marks.push()
    this.marks.times[0][row] = time
    this.marks.words[0][row] = this.strings.id(name)
    this.markArgs.push(args)
  }

  /** Drops what ended before `time`. */
  dropBefore(time: number): void {
    const rows = Math.max(0, upperBound(this.slices.times[1], this.slices.length, time))
    if (rows > 0) {
      this.slices.drop(rows)
      this.args = this.args.slice(rows)
      this.endArgs = this.endArgs.slice(rows)
    }
    const marks = upperBound(this.marks.times[0], this.marks.length, time)
    if (marks > 0) {
      this.marks.drop(marks)
      this.markArgs = this.markArgs.slice(marks)
    }
  }

  /** The first row that ends after `time`. */
  rowAfter(time: number): number {
    return upperBound(this.slices.times[1], this.slices.length, time)
  }

  startOf(row: number): number {
    return this.slices.times[0][row]
  }

  endOf(row: number): number {
    return this.slices.times[1][row]
  }

  stateOf(row: number): number {
    return this.slices.words[1][row]
  }

  otherOf(row: number): number {
    return this.slices.words[2][row]
  }

  nameOf(row: number): string {
    return this.strings.text(this.slices.words[0][row])
  }

  argsOf(row: number): TrackArgs | undefined {
    return this.args[row]
  }

  /** The slice at a time, or null. */
  at(time: number): Slice | null {
    const row = this.rowAfter(time)
    return row < this.count && this.startOf(row) <= time ? this.slice(row) : null
  }

  slice(row: number): Slice {
    return {
      lane: this,
      number: row + this.slices.dropped,
      start: this.startOf(row),
      end: this.endOf(row),
      state: this.stateOf(row),
      name: this.nameOf(row),
      other: this.otherOf(row),
      args: this.args[row],
      endArgs: this.endArgs[row],
    }
  }

  /** The slice with this number, or null: it was dropped, or has not begun. */
  numbered(number: number): Slice | null {
    const row = number - this.slices.dropped
    return row >= 0 && row < this.count ? this.slice(row) : null
  }

  /** How much of the time from `from` to `to` is inside slices; an open slice lasts until `now`. */
  covered(from: number, to: number, now: number): number {
    return this.coveredUntil(to, now) - this.coveredUntil(from, now)
  }

  /** The marks from one time to another. */
  marksIn(from: number, to: number, most: number): Instant[] {
    const found: Instant[] = []
    let row = upperBound(this.marks.times[0], this.marks.length, from)
    for (; row < this.marks.length && this.marks.times[0][row] <= to && found.length < most; row++) {
      found.push(this.markAt(row))
    }
    return found
  }

  private markAt(row: number): Instant {
    return {
      time: this.marks.times[0][row],
      name: this.strings.text(this.marks.words[0][row]),
      args: this.markArgs[row],
    }
  }

  private coveredUntil(time: number, now: number): number {
    const [start, end, before] = this.slices.times
    const row = upperBound(start, this.slices.length, time) - 1
    if (row < 0) return 0
    return before[row] + Math.min(Math.min(time, end[row], Math.max(now, start[row])) - start[row], Infinity)
  }
}

/** Each text once, by number. */
export class StringTable {
  private readonly ids = new Map<string, number>()
  private readonly texts: string[] = []

  id(text: string): number {
    let id = this.ids.get(text)
    if (id === undefined) {
      id = this.texts.length
      this.texts.push(text)
      this.ids.set(text, id)
    }
    return id
  }

  text(id: number): string {
    return this.texts[id]
  }
}
