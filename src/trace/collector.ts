import { NAME, NAME_REST, SPAWN, SWITCH, WAKEUP } from '../arena/rings/events.ts'
import type { Arena } from '../arena/memory/arena.ts'
import { EventReader, type EventRingsPlan, ringCount, type RingEvent } from '../arena/rings/eventring.ts'
import type { Timeline } from './timeline.ts'

/**
 * Polls all rings and passes their events to the timeline in the order of time. A ring may be ahead of
 * another by the events between two polls. So the newest events are held back until the next poll; the last
 * poll takes all.
 */
const HOLD_BACK_MS = 5

/** Events of one ring with the same clock reading are spread over this time at most (see spread). */
const SPREAD_MS = 0.0005

/** Puts the events of several rings into the order of time. */
export class EventOrder {
  private held: RingEvent[] = []

  /** Takes new events of one ring, in their order. They are kept. */
  add(events: RingEvent[]): void {
    spread(events)
    for (const event of events) this.held.push(event)
  }

  /** Passes on the events before `until`, in milliseconds of the kernel's clock. Returns their count. */
  drain(timeline: Timeline, until: number = Infinity): number {
    const events = this.held
    events.sort((x, y) => x.time - lead(x.kind) - (y.time - lead(y.kind)))
    const limit = until - HOLD_BACK_MS
    let taken = 0
    while (taken < events.length && events[taken].time <= limit) timeline.event(events[taken++])
    this.held = events.slice(taken)
    return taken
  }
}

export class Collector {
  private readonly readers: EventReader[]
  private readonly order = new EventOrder()

  constructor(arena: Arena, plan: EventRingsPlan) {
    this.readers = Array.from({ length: ringCount(plan) }, (_, ring) => new EventReader(arena, plan, ring))
  }

  /** Lost events: overwritten or refused, in all rings. */
  get lost(): number {
    return this.readers.reduce((sum, { lost }) => sum + lost, 0)
  }

  /** Passes on the events before `until`, in milliseconds of the kernel's clock. Returns their count. */
  drain(timeline: Timeline, until: number = Infinity): number {
    for (const reader of this.readers) {
      const events: RingEvent[] = []
      reader.read(event => events.push({ ...event }))
      this.order.add(events)
    }
    const taken = this.order.drain(timeline, until)
    if (this.lost > 0) timeline.lost(this.lost)
    return taken
  }
}

/**
 * The clocks of two threads differ by a microsecond or two, but a task must not run before it is made and
 * woken. So those events are dated a little earlier than their thread's clock.
 */
function lead(kind: number): number {
  if (kind === SPAWN || kind === NAME || kind === NAME_REST) return 0.005
  return kind === WAKEUP ? 0.002 : 0
}

/**
 * While switches are faster than a clock reading, the CPU reads the clock only now and then, and the events
 * in between carry the same time. Such switches are spread evenly up to the next event, so that each slice
 * has a width.
 */
function spread(events: readonly RingEvent[]): void {
  for (let start = 0; start < events.length; ) {
    let end = start + 1
    if (events[start].kind === SWITCH)
      while (end < events.length && isTurn(events[end], events[start].time)) end++
    const count = end - start
    const room = end < events.length ? events[end].time - events[start].time : count * SPREAD_MS
    const step = Math.min(SPREAD_MS, room / count)
    for (let at = start + 1; at < end; at++) events[at].time += step * (at - start)
    start = end
  }
}

function isTurn(event: RingEvent, time: number): boolean {
  return event.kind === SWITCH && event.time === time
}
