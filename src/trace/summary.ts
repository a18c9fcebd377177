import { CONTENDED, HANDS_OVER } from './timeline.ts'
import type { Arrows, Track, TrackArgs, TrackSink } from './tracks.ts'

/**
 * A trace in a few lines: how long each task ran, which task waited for which, and the longest inversions. In
 * an inversion a task waits for a lock of a less important task.
 */
export interface TaskSummary {
  readonly name: string
  /** Nanoseconds in each state. */
  running: number
  runnable: number
  blocked: number
  stopped: number
  switches: number
  wakeups: number
}

export interface WaitSummary {
  readonly waiter: string
  readonly for: string
  count: number
  /** Nanoseconds: the sum, and the longest. */
  total: number
  longest: number
}

export interface Inversion {
  readonly waiter: string
  readonly owner: string
  readonly waiterPriority: number
  readonly ownerPriority: number
  readonly start: number
  /** Nanoseconds. */
  readonly duration: number
}

/** A contended lock. */
export interface LockSummary {
  readonly lock: number
  contended: number
  /** How often a waiter acquired it. */
  acquired: number
  /** How often its owner handed it over to a yielding waiter. */
  handedOver: number
}

export interface CpuSummary {
  readonly name: string
  busy: number
  slices: number
}

interface OpenSlice {
  readonly name: string
  readonly start: number
  readonly args: TrackArgs | undefined
}

const INVERSIONS = 10

export class Summary implements TrackSink {
  readonly tasks: TaskSummary[] = []
  readonly cpus: CpuSummary[] = []
  readonly waits: WaitSummary[] = []
  readonly inversions: Inversion[] = []
  readonly locks: LockSummary[] = []
  events = 0
  lostEvents = 0
  first: number = Infinity
  last = 0
  private readonly tracks = new Map<number, Track>()
  private readonly taskOf = new Map<number, TaskSummary>()
  private readonly cpuOf = new Map<number, CpuSummary>()
  private readonly open = new Map<number, OpenSlice[]>()
  private readonly waitOf = new Map<string, WaitSummary>()
  private readonly lockOf = new Map<number, LockSummary>()

  track(track: Track): void {
    this.tracks.set(track.id, track)
    if (track.kind === 'task') {
      const { name } = track
      const task = { name, running: 0, runnable: 0, blocked: 0, stopped: 0, switches: 0, wakeups: 0 }
      this.tasks.push(task)
      this.taskOf.set(track.id, task)
    } else if (track.kind === 'cpu') {
      const cpu = { name: track.name, busy: 0, slices: 0 }
      this.cpus.push(cpu)
      this.cpuOf.set(track.id, cpu)
    }
  }

  begin(track: number, time: number, name: string, args?: TrackArgs, _arrows?: Arrows): void {
    this.seen(time)
    const slices = this.open.get(track) ?? []
    this.open.set(track, slices)
    slices.push({ name, start: time, args })
    const task = this.taskOf.get(track)
    if (task === undefined) return
    if (name.startsWith('running')) task.switches++
    if (args?.['woken by'] !== undefined) task.wakeups++
  }

  end(track: number, time: number): void {
    this.seen(time)
    const slice = this.open.get(track)?.pop()
    if (slice === undefined) return
    const duration = time - slice.start
    const cpu = this.cpuOf.get(track)
    if (cpu !== undefined) {
      cpu.busy += duration
      cpu.slices++
    }
    const task = this.taskOf.get(track)
    if (task === undefined) return
    const state = slice.name.split(/[ :]/)[0]
    if (state === 'running' || state === 'runnable' || state === 'blocked' || state === 'stopped') {
      task[state] += duration
    }
    // A task that yields for a lock is runnable, and yet it waits.
    if (state === 'blocked' || state === 'runnable') this.waited(task.name, slice, duration)
  }

  instant(_track: number, time: number, name: string = '', args?: TrackArgs): void {
    this.seen(time)
    if (typeof args?.lock !== 'number') return
    if (name === CONTENDED) this.lockAt(args.lock).contended++
    else if (name === 'lock') this.lockAt(args.lock).acquired++
    else if (name.startsWith(HANDS_OVER)) this.lockAt(args.lock).handedOver++
  }

  counter(_track: number, time: number): void {
    this.seen(time)
  }

  lost(_time: number, count: number): void {
    this.lostEvents = count
  }

  close(): void {
    this.tasks.sort((a, b) => b.running - a.running)
    this.waits.sort((a, b) => b.total - a.total)
    this.inversions.sort((a, b) => b.duration - a.duration)
    this.inversions.splice(INVERSIONS)
    this.locks.sort((a, b) => b.contended - a.contended)
  }

  private lockAt(lock: number): LockSummary {
    let found = this.lockOf.get(lock)
    if (found === undefined) {
      found = { lock, contended: 0, acquired: 0, handedOver: 0 }
      this.lockOf.set(lock, found)
      this.locks.push(found)
    }
    return found
  }

  private seen(time: number): void {
    this.events++
    this.first = Math.min(this.first, time)
    this.last = Math.max(this.last, time)
  }

  private waited(waiter: string, slice: OpenSlice, duration: number): void {
    const owner = slice.args?.['waits for']
    if (typeof owner !== 'string') return
    const key = `${waiter}\n${owner}`
    let wait = this.waitOf.get(key)
    if (wait === undefined) {
      wait = { waiter, for: owner, count: 0, total: 0, longest: 0 }
      this.waitOf.set(key, wait)
      this.waits.push(wait)
    }
    wait.count++
    wait.total += duration
    wait.longest = Math.max(wait.longest, duration)
    const waiterPriority = Number(slice.args?.priority)
    const ownerPriority = Number(slice.args?.['priority of that'])
    // A smaller number is more important.
    if (waiterPriority < ownerPriority) {
      this.inversions.push({ waiter, owner, waiterPriority, ownerPriority, start: slice.start, duration })
    }
  }
}
