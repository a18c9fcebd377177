import { EventOrder } from '../../src/trace/collector.ts'
import { unpackEvents } from '../../src/trace/packedevents.ts'
import { readPerfetto } from '../../src/trace/perfetto.ts'
import type { LocksSnapshot } from '../../src/trace/locksnapshot.ts'
import type { CpuSnapshot, TaskSnapshot } from '../../src/trace/snapshot.ts'
import { Timeline } from '../../src/trace/timeline.ts'
import type { RingEvent } from '../../src/arena/rings/eventring.ts'
import type { ViewMessage } from '../../src/view/source.ts'
import { readChrome } from './chrome.ts'
import { TraceModel } from './trace.ts'

/** The page shows this much less than the newest events: those of all rings have arrived by then. */
const BEHIND_MS = 120

/**
 * All that has arrived from the source: the trace, and of a running kernel its present tasks and CPUs. A panel
 * reads it when it draws.
 */
export class ViewData {
  readonly trace: TraceModel = new TraceModel()
  /** By slot. */
  readonly tasks: Map<number, TaskSnapshot> = new Map()
  cpus: readonly CpuSnapshot[] = []
  /** The locks with waiters, and the counts of hand-off locks. */
  locks: LocksSnapshot = { locks: [], handoff: null }
  /** Shares of CPU time since the last message: by CPU, and by slot. */
  cpuShares: readonly number[] = []
  readonly shares: Map<number, number> = new Map()
  /** Milliseconds of the kernel's clock, of the last message about tasks. */
  tasksTime = 0
  /** Counts the messages about tasks. */
  version = 0
  /** Why a trace could not be read. */
  error: string | null = null
  private readonly order = new EventOrder()
  private timeline: Timeline | null = null
  private now = 0
  private arrived = 0
  private shown = 0
  private polls = 0

  /** Takes a message. Returns whether it changed something that is not drawn at each frame. */
  receive(message: ViewMessage): void {
    if (message.kind === 'hello' && message.about.live) {
      const nameOf = (slot: number): string | undefined => this.tasks.get(slot)?.name
      this.timeline = new Timeline(this.trace, { cpus: message.about.cpus, nameOf })
    } else if (message.kind === 'events') this.takeEvents(message)
    else if (message.kind === 'tasks') this.takeTasks(message.changes)
    else if (message.kind === 'trace') this.takeTrace(message)
    else if (message.kind === 'ended') this.end()
  }

  /**
   * The time up to which the time line is drawn, in nanoseconds. While the source is live it advances with the
   * page's own clock, evenly, a little behind the newest events.
   */
  shownUntil(isLive: boolean): number {
    if (!isLive || this.timeline === null) return this.trace.last
    const elapsed = Math.min(performance.now() - this.arrived, 1000)
    this.shown = Math.max(this.shown, (this.now + elapsed - BEHIND_MS) * 1e6)
    return Math.max(0, this.shown)
  }

  private takeEvents({ now, lost, bytes }: Extract<ViewMessage, { kind: 'events' }>): void {
    if (this.timeline === null) return
    let ring: RingEvent[] = []
    for (const event of unpackEvents(bytes)) {
      if (ring.length > 0 && ring[0].ring !== event.ring) {
        this.order.add(ring)
        ring = []
      }
      ring.push(event)
    }
    if (ring.length > 0) this.order.add(ring)
    this.order.drain(this.timeline, now)
    if (lost > 0) this.trace.lost(0, lost)
    if (now > this.now) {
      this.now = now
      this.arrived = performance.now()
    }
    this.trace.reach(now * 1e6)
    if (this.trace.first === Infinity) this.trace.first = now * 1e6
    if (++this.polls % 256 === 0) this.trace.trim()
  }

  private takeTasks({
    time,
    cpus,
    changed,
    gone,
    locks,
  }: Extract<ViewMessage, { kind: 'tasks' }>['changes']): void {
    const span = time - this.tasksTime
    const share = (now: number, then: number): number =>
      span <= 0 ? 0 : Math.min(1, Math.max(0, (now - then) / span))
    this.cpuShares = cpus.map(({ busyTime }, at) => share(busyTime, this.cpus[at]?.busyTime ?? 0))
    this.shares.clear()
    for (const task of changed) {
      const before = this.tasks.get(task.slot)
      const isSame = before !== undefined && before.id === task.id
      this.shares.set(task.slot, share(task.runTime, isSame ? before.runTime : 0))
    }
    for (const slot of gone) this.tasks.delete(slot)
    for (const task of changed) this.tasks.set(task.slot, task)
    this.cpus = cpus
    this.locks = locks
    this.tasksTime = time
    this.version++
  }

  private takeTrace({ name, bytes }: Extract<ViewMessage, { kind: 'trace' }>): void {
    try {
      // JSON begins with a bracket; a packet of Perfetto never does.
      if (bytes[0] === 0x5b || bytes[0] === 0x7b) readChrome(bytes, this.trace)
      else readPerfetto(bytes, this.trace)
    } catch (error) {
      this.error = `${name} is ${(error as Error).message}`
    }
  }

  /** Takes the events that were held back, and ends the open slices. */
  private end(): void {
    if (this.timeline === null) return
    this.order.drain(this.timeline)
    this.timeline.close(this.now)
    this.timeline = null
  }
}
