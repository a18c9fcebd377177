import type { ViewData } from '../model/data.ts'
import type { Lane, Slice } from '../model/lane.ts'
import { TimeWindow } from './window.ts'

export const RULER = 26
export const GUTTER = 168
export const CPU_ROW = 30
export const TASK_ROW = 24
export const HEAD_ROW = 24
export const OVERVIEW = 34

/** Without a choice of the user, the first tasks are shown, up to this many. */
const CHOSEN_BY_ITSELF = 14

/** A row of the chart, with its place from the top of the rows. */
export interface Row {
  readonly top: number
  readonly height: number
  /** Null: the heading of the tasks. */
  readonly lane: Lane | null
}

/** What the time line shows: the window, the chosen tasks, the selection. Drawing and input share it. */
export class Chart {
  readonly data: ViewData
  readonly window: TimeWindow = new TimeWindow()
  /** The tracks of the tasks that the user has chosen, in that order. */
  readonly chosen: number[] = []
  selected: Slice | null = null
  pointed: Slice | null = null
  /** Tracks that the search has found. Null: nothing is searched. */
  found: ReadonlySet<number> | null = null
  scroll = 0
  width = 800
  height = 400
  /** Until where the lanes are drawn. */
  until = 0
  isLive = false
  private rows: Row[] = []
  private rowsFor = ''

  constructor(data: ViewData) {
    this.data = data
  }

  get chartWidth(): number {
    return Math.max(1, this.width - GUTTER)
  }

  /** CPUs, threads, and the chosen tasks. */
  layout(): readonly Row[] {
    const { trace } = this.data
    const lanes = this.shownTasks()
    const key = `${trace.cpus.length} ${trace.threads.length} ${lanes.map(({ track }) => track.id).join()}`
    if (key === this.rowsFor) return this.rows
    this.rowsFor = key
    this.rows = []
    let top = 0
    const add = (lane: Lane | null, height: number): void => {
      this.rows.push({ top, height, lane })
      top += height
    }
    for (const lane of trace.cpus) add(lane, CPU_ROW)
    for (const lane of trace.threads) add(lane, TASK_ROW)
    add(null, HEAD_ROW)
    for (const lane of lanes) add(lane, TASK_ROW)
    return this.rows
  }

  get rowsHeight(): number {
    const last = this.layout().at(-1)
    return last === undefined ? 0 : last.top + last.height
  }

  scrollBy(pixels: number): void {
    const room = Math.max(0, this.rowsHeight - (this.height - RULER - OVERVIEW))
    this.scroll = Math.min(room, Math.max(0, this.scroll + pixels))
  }

  shownTasks(): Lane[] {
    const { trace } = this.data
    if (this.chosen.length === 0) return this.firstTasks()
    return this.chosen.flatMap(id => trace.lanes.get(id) ?? [])
  }

  /** The first tasks; those that import modules only where there is room for all. */
  private firstTasks(): Lane[] {
    const { tasks } = this.data.trace
    if (tasks.length <= CHOSEN_BY_ITSELF) return tasks.slice()
    const first: Lane[] = []
    for (let at = 0; at < tasks.length && first.length < CHOSEN_BY_ITSELF; at++) {
      if (!tasks[at].track.name.startsWith('import on CPU')) first.push(tasks[at])
    }
    return first
  }

  /** The first choice of the user replaces those that were shown by themselves. */
  toggle(track: number): void {
    const at = this.chosen.indexOf(track)
    if (at >= 0) this.chosen.splice(at, 1)
    else this.chosen.push(track)
  }

  timeAt(x: number): number {
    return this.window.from + ((x - GUTTER) / this.chartWidth) * this.window.span
  }

  xOf(time: number): number {
    return GUTTER + ((time - this.window.from) / this.window.span) * this.chartWidth
  }

  rowAt(y: number): Row | null {
    const inside = y - RULER + this.scroll
    if (y < RULER || y > this.height - OVERVIEW) return null
    return this.layout().find(({ top, height }) => inside >= top && inside < top + height) ?? null
  }

  /** The slice at a place; a slice that is narrower than a finger's breadth is found beside it. */
  sliceAt(x: number, y: number): Slice | null {
    const lane = this.rowAt(y)?.lane
    if (lane === undefined || lane === null || x < GUTTER) return null
    const time = this.timeAt(x)
    const exact = lane.at(time)
    if (exact !== null) return this.isShown(exact) ? exact : null
    const near = (3 / this.chartWidth) * this.window.span
    const row = lane.rowAfter(time - near)
    const slice = row < lane.count ? lane.slice(row) : null
    return slice !== null && slice.start <= time + near && this.isShown(slice) ? slice : null
  }

  /** Selects a slice, and brings it into sight. */
  reveal(slice: Slice): void {
    this.selected = slice
    const end = Math.min(slice.end, this.until)
    const { window } = this
    const isInside = slice.start >= window.from && end <= window.to
    if (isInside && end - slice.start > window.span / 200) return
    const length = Math.max(1000, end - slice.start)
    window.show(slice.start - length * 2, end + length * 2)
  }

  /** The next slice of the lane of the selection: `step` is 1 or -1. */
  step(step: number): Slice | null {
    const { selected } = this
    if (selected === null) return null
    const next = selected.lane.numbered(selected.number + step)
    if (next === null) return null
    this.selected = next
    const { window } = this
    if (next.start < window.from || next.start > window.to)
      window.pan((next.start - window.from) / window.span - 0.5)
    return next
  }

  /** Puts the selection on the lane above or below. */
  stepLane(step: number): void {
    const lanes = this.layout().flatMap(({ lane }) => (lane === null || lane.count === 0 ? [] : lane))
    if (lanes.length === 0) return
    const { selected, window } = this
    const at = selected === null ? -1 : lanes.indexOf(selected.lane)
    const lane = lanes[Math.min(lanes.length - 1, Math.max(0, at + step))]
    const time =
      selected === null
        ? window.from + window.span / 2
        : (selected.start + Math.min(selected.end, this.until)) / 2
    const row = Math.min(lane.rowAfter(time), lane.count - 1)
    this.selected = lane.slice(row)
    const shown = this.layout().find(one => one.lane === lane)!
    const room = this.height - RULER - OVERVIEW
    if (shown.top < this.scroll) this.scroll = shown.top
    if (shown.top + shown.height > this.scroll + room) this.scroll = shown.top + shown.height - room
  }

  fit(): void {
    const { trace } = this.data
    if (trace.first === Infinity) return
    const length = Math.max(1000, this.until - trace.first)
    this.window.show(trace.first - length * 0.02, this.until + length * 0.02)
  }

  private isShown({ start }: Slice): boolean {
    return start <= this.until
  }
}
