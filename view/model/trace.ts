import { CONTENDED, HANDS_OVER } from '../../src/trace/timeline.ts'
import type { Arrows, Track, TrackArgs, TrackSink } from '../../src/trace/tracks.ts'
import { Columns, upperBound } from './columns.ts'
import { isWait, Lane, RUNNING, stateOf, StringTable } from './lane.ts'
import { LockUse } from './lockuse.ts'

export const WAKES = 1
export const UNLOCKS = 2
export const HANDS = 3
export const MOVES = 4
export const arrowNames: readonly string[] = ['', 'woke', 'unlocked for', 'handed over to', 'moved']

export interface Arrow {
  readonly kind: number
  readonly fromTrack: number
  readonly fromTime: number
  readonly toTrack: number
  readonly toTime: number
  /** The tracks of the tasks at its ends; 0: not known. */
  readonly fromTask: number
  readonly toTask: number
}

/** A wait that has ended. */
export interface LongWait {
  readonly lane: Lane
  readonly number: number
  readonly start: number
  readonly duration: number
  readonly state: number
  readonly args: TrackArgs | undefined
}

interface ArrowStart {
  readonly kind: number
  readonly track: number
  readonly time: number
  readonly task: number
}

const LONGEST = 50
/** Slices and instants that a live view keeps. Beyond that, the oldest tenth goes. */
const KEPT_MAX = 3_000_000

/**
 * A trace in memory, for drawing: a lane for each track, and the arrows between them. It is filled through the
 * same interface as a trace file is written, from a file or from live events.
 */
export class TraceModel implements TrackSink {
  readonly lanes: Map<number, Lane> = new Map()
  readonly cpus: Lane[] = []
  readonly threads: Lane[] = []
  readonly tasks: Lane[] = []
  readonly locks: Map<number, LockUse> = new Map()
  /** The longest waits, the longest first. */
  readonly longest: LongWait[] = []
  private readonly strings = new StringTable()
  private readonly arrows = new Columns(2, 5)
  private readonly open = new Map<number, ArrowStart>()
  /** By CPU number: the track of the task that runs there. */
  private readonly runsOn: number[] = []
  private readonly cpuNumbers = new Map<number, number>()
  /** The last lane that ran in a slot of the kernel's task table. */
  private readonly bySlot = new Map<number, Lane>()
  events = 0
  lostEvents = 0
  first: number = Infinity
  last = 0

  track(track: Track): void {
    if (track.kind === 'process' || track.kind === 'counter') return
    const lane = new Lane(track, this.strings)
    this.lanes.set(track.id, lane)
    if (track.kind === 'cpu') {
      this.cpuNumbers.set(track.id, this.cpus.length)
      this.cpus.push(lane)
    } else if (track.kind === 'thread') this.threads.push(lane)
    else this.tasks.push(lane)
  }

  begin(track: number, time: number, name: string, args?: TrackArgs, arrows?: Arrows): void {
    this.seen(time)
    const lane = this.lanes.get(track)
    if (lane === undefined) return
    const cpu = this.cpuNumbers.get(track)
    if (cpu !== undefined) this.beginRun(lane, time, name, this.runsOn[cpu] ?? 0, args)
    else this.beginState(lane, time, name, args)
    if (arrows?.ends !== undefined) this.arrive(track, time, arrows.ends)
  }

  end(track: number, time: number, args?: TrackArgs): void {
    this.seen(time)
    const lane = this.lanes.get(track)
    const row = lane?.end(time, args) ?? -1
    if (lane !== undefined && row >= 0 && lane.track.kind === 'task') this.noteWait(lane, row)
  }

  instant(track: number, time: number, name: string, args?: TrackArgs, arrows?: Arrows): void {
    this.seen(time)
    const lane = this.lanes.get(track)
    if (lane === undefined) return
    lane.mark(time, name, args)
    if (arrows?.starts !== undefined) {
      const kind = name.startsWith('wakes') ? WAKES : name.startsWith(HANDS_OVER) ? HANDS : UNLOCKS
      for (const arrow of arrows.starts) {
        this.open.set(arrow, { kind, track, time, task: this.taskAt(track) })
      }
    }
    if (arrows?.ends !== undefined) this.arrive(track, time, arrows.ends)
    if (name === 'migrates') this.move(lane, time, args)
    if (typeof args?.lock === 'number') this.useLock(args.lock, time, name, this.taskAt(track) || track, args)
  }

  counter(): void {
    this.events++
  }

  lost(_time: number, count: number): void {
    this.lostEvents = count
  }

  /** Later than the last event: an open slice has lasted until here. */
  reach(time: number): void {
    this.last = Math.max(this.last, time)
  }

  close(time: number): void {
    this.seen(time)
    this.events--
  }

  /** The track of the task that runs on a CPU's track, or the track itself if it is a task's. */
  taskAt(track: number): number {
    const cpu = this.cpuNumbers.get(track)
    if (cpu === undefined) return this.lanes.get(track)?.track.kind === 'task' ? track : 0
    const lane = this.cpus[cpu]
    return lane.openState === 0 ? 0 : lane.otherOf(lane.count - 1)
  }

  /** The lane of the task with this slot and name; undefined: it has not run since the trace began. */
  laneOfSlot(slot: number, name: string): Lane | undefined {
    const lane = this.bySlot.get(slot)
    return lane?.track.name === name ? lane : undefined
  }

  /** Arrows that are inside a time, at least in part. Null: there are more than `most`. */
  arrowsIn(from: number, to: number, most: number): Arrow[] | null {
    const found: Arrow[] = []
    for (
      let row = upperBound(this.arrows.times[1], this.arrows.length, from);
      row < this.arrows.length;
      row++
    ) {
      const arrow = this.arrowAt(row)
      // They are in the order of their ends, and few are longer than the window.
      if (arrow.fromTime > to && arrow.toTime > to + (to - from)) break
      if (arrow.fromTime > to) continue
      if (found.length === most) return null
      found.push(arrow)
    }
    return found
  }

  /** The arrow that ends at a time on the lane of a task or CPU: why it runs. */
  arrowTo(task: number, time: number): Arrow | null {
    const row = upperBound(this.arrows.times[1], this.arrows.length, time - 1)
    for (let at = row; at < this.arrows.length && this.arrows.times[1][at] <= time + 1; at++) {
      const arrow = this.arrowAt(at)
      if (arrow.toTask === task) return arrow
    }
    return null
  }

  /** Drops the oldest tenth when there is more than a live view keeps. */
  trim(): void {
    let kept = this.arrows.length
    for (const lane of this.lanes.values()) kept += lane.count + lane.markCount
    if (kept < KEPT_MAX) return
    const time = this.first + (this.last - this.first) / 10
    for (const lane of this.lanes.values()) lane.dropBefore(time)
    this.arrows.drop(upperBound(this.arrows.times[1], this.arrows.length, time))
    this.first = time
    this.forgetEnded()
  }

  private arrowAt(row: number): Arrow {
    const { times, words } = this.arrows
    return {
      kind: words[0][row],
      fromTrack: words[1][row],
      fromTime: times[0][row],
      toTrack: words[2][row],
      toTime: times[1][row],
      fromTask: words[3][row],
      toTask: words[4][row],
    }
  }

  private beginRun(cpu: Lane, time: number, name: string, task: number, args: TrackArgs | undefined): void {
    cpu.begin(time, name, RUNNING, task, args)
    const lane = this.lanes.get(task)
    if (lane !== undefined && typeof args?.slot === 'number') this.bySlot.set(args.slot, lane)
  }

  private beginState(lane: Lane, time: number, name: string, args: TrackArgs | undefined): void {
    const state = stateOf(name)
    let other = 0
    if (state === RUNNING) {
      const cpu = Number(name.slice(name.lastIndexOf(' ') + 1))
      other = cpu + 1
      this.runsOn[cpu] = lane.track.id
    }
    lane.begin(time, name, state, other, args)
  }

  private arrive(track: number, time: number, ends: readonly number[]): void {
    for (const id of ends) {
      const start = this.open.get(id)
      if (start === undefined) continue
      this.open.delete(id)
      this.addArrow(start.kind, start.track, start.time, start.task, track, time, this.taskAt(track))
    }
  }

  private move(lane: Lane, time: number, args: TrackArgs | undefined): void {
    const from = this.cpus[Number(args?.from)]
    const to = this.cpus[Number(args?.to)]
    if (from === undefined || to === undefined || from === to) return
    this.addArrow(MOVES, from.track.id, time, lane.track.id, to.track.id, time, lane.track.id)
  }

  private addArrow(
    kind: number,
    fromTrack: number,
    fromTime: number,
    fromTask: number,
    toTrack: number,
    toTime: number,
    toTask: number,
  ): void {
    const { arrows } = this
    const row = arrows.push()
    const { times, words } = arrows
    times[0][row] = fromTime
    times[1][row] = row === 0 ? toTime : Math.max(toTime, times[1][row - 1])
    words[0][row] = kind
    words[1][row] = fromTrack
    words[2][row] = toTrack
    words[3][row] = fromTask
    words[4][row] = toTask
  }

  private useLock(lock: number, time: number, name: string, actor: number, args: TrackArgs): void {
    let use = this.locks.get(lock)
    if (use === undefined) {
      use = new LockUse(lock)
      this.locks.set(lock, use)
    }
    if (name === CONTENDED) use.contend(actor, time, String(args.owner ?? ''))
    else if (name === 'lock') use.acquire(actor, time)
    else if (name === 'unlock') use.release(time)
    else if (name.startsWith(HANDS_OVER)) use.handOver(time)
  }

  private noteWait(lane: Lane, row: number): void {
    const state = lane.stateOf(row)
    const duration = lane.endOf(row) - lane.startOf(row)
    const { longest } = this
    if (!isWait(state)) return
    if (longest.length === LONGEST && duration <= longest[LONGEST - 1].duration) return
    const { number, start, args } = lane.slice(row)
    let at = longest.length
    while (at > 0 && longest[at - 1].duration < duration) at--
    longest.splice(at, 0, { lane, number, start, duration, state, args })
    if (longest.length > LONGEST) longest.pop()
  }

  /** The lanes of tasks that have ended and whose slices were all dropped. */
  private forgetEnded(): void {
    const gone = this.tasks.filter(lane => lane.count === 0 && lane.markCount === 0)
    if (gone.length === 0) return
    const ids = new Set(gone.map(({ track }) => track.id))
    for (const id of ids) this.lanes.delete(id)
    this.tasks.splice(0, this.tasks.length, ...this.tasks.filter(({ track }) => !ids.has(track.id)))
  }

  private seen(time: number): void {
    this.events++
    if (time < this.first) this.first = time
    if (time > this.last) this.last = time
  }
}
