import { EventReader, isRecording, ringCount, type RingEvent } from '../arena/rings/eventring.ts'
import type { KernelView } from '../kernel/boot/view.ts'
import { type LocksSnapshot, takeLocks } from './locksnapshot.ts'
import { packEvents } from './packedevents.ts'
import { shareRecording } from './sharedrecording.ts'
import { type CpuSnapshot, takeSnapshot, type TaskSnapshot } from './snapshot.ts'

/**
 * A kernel's events and tasks for a viewer, as they change. The viewer polls; each poll returns only what is
 * new since the poll before. A viewer that falls behind loses the oldest events, and their number is part of
 * the reply.
 */

/** A poll returns at most this many events, the newest: a page must be able to draw between two polls. */
const POLL_EVENTS_MAX = 8192

export interface EventPoll {
  /** Milliseconds of the kernel's clock. */
  readonly now: number
  /** Missing events since the feed began. */
  readonly lost: number
  readonly bytes: Uint8Array<ArrayBuffer>
}

export interface TaskChanges {
  readonly time: number
  readonly cpus: readonly CpuSnapshot[]
  /** New tasks, and those with a change. */
  readonly changed: readonly TaskSnapshot[]
  /** The slots of tasks that have gone. */
  readonly gone: readonly number[]
  readonly locks: LocksSnapshot
}

export class KernelFeed {
  private readonly view: KernelView
  private readonly readers: EventReader[]
  private readonly leave: () => void
  /** By slot: the last state that was sent, as text. */
  private sent = new Map<number, string>()
  private dropped = 0

  constructor(view: KernelView) {
    this.view = view
    const { events } = view.plan.scheduler
    this.leave = shareRecording(view)
    this.readers =
      events === null
        ? []
        : Array.from({ length: ringCount(events) }, (_, ring) => new EventReader(view.arena, events, ring))
  }

  /** Whether the kernel records events: not if it was booted with `events: 0`. */
  get hasEvents(): boolean {
    const { events } = this.view.plan.scheduler
    return events !== null && isRecording(this.view.i32, events)
  }

  events(): EventPoll {
    const found: RingEvent[] = []
    const share = Math.floor(POLL_EVENTS_MAX / Math.max(1, this.view.s.cpus))
    for (const reader of this.readers) {
      const from = found.length
      const count = reader.read(event => found.push({ ...event }))
      if (count > share) {
        this.dropped += count - share
        found.splice(from, count - share)
      }
    }
    const now = this.view.s.now()
    const lost = this.readers.reduce((sum, reader) => sum + reader.lost, this.dropped)
    return { now, lost, bytes: packEvents(found) }
  }

  tasks(): TaskChanges {
    const { time, cpus, tasks } = takeSnapshot(this.view)
    const changed: TaskSnapshot[] = []
    const sent = new Map<number, string>()
    for (const task of tasks) {
      const text = JSON.stringify(task)
      if (this.sent.get(task.slot) !== text) changed.push(task)
      sent.set(task.slot, text)
    }
    const gone = [...this.sent.keys()].filter(slot => !sent.has(slot))
    this.sent = sent
    return { time, cpus, changed, gone, locks: takeLocks(this.view) }
  }

  /** The last viewer that leaves ends the recording that the first one began. */
  close(): void {
    this.leave()
  }
}
