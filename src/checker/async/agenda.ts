import { type Due, TimeOrder } from './timeorder.ts'

export type EventKind = 'start' | 'io' | 'timeout' | 'interval' | 'immediate' | 'message'

/** A pending event. */
export interface AsyncEvent extends Due {
  readonly kind: EventKind
  /** Its name in a report: "load user:1", "timeout 100 ms". */
  readonly name: string
  /** The task that created it. */
  readonly task: number
  /** Free: it happens at any time. Exact: `delay` ms after `from`. Bounded: not later than that. */
  readonly time: 'free' | 'exact' | 'bounded'
  /** Events of one line happen in the order of their creation. */
  readonly line: unknown
  /** Whether an execution continues for it when all tasks have ended. */
  keeps: boolean
  readonly happen: () => void
  /** Its position in the order of creation. */
  readonly id: number
  /** Two executions of one schedule must agree on it. */
  readonly signature: string
}

export type NewEvent = Omit<AsyncEvent, 'id' | 'from' | 'delay' | 'signature'> & { readonly delay?: number }

/**
 * The pending events of one execution, and which of them may happen next. Events happen in any order, except:
 *   - timers happen in the order of their deadlines, as far as these are known (`TimeOrder`); timers of the
 *     same length in the order of their creation;
 *   - events of one line (the messages of a port, immediates, operations with `line`) happen in the order of
 *     their creation;
 *   - events of one name and task overtake another event at most `turns` times: otherwise a loop that polls
 *     would never end.
 */
export class Agenda {
  readonly time: TimeOrder = new TimeOrder()
  /** In the order of creation. */
  readonly pending: AsyncEvent[] = []
  /** The names of the events that have happened. */
  readonly happened: string[] = []
  private readonly counts = new Map<string, number>()
  private readonly turns: number
  private made = 0
  /** Whether an event was forced because others had overtaken it too often. */
  held = false

  constructor(turns: number) {
    this.turns = turns
  }

  add(event: NewEvent): AsyncEvent {
    const from = this.time.now
    const { delay = 0 } = event
    const signature = `${event.task} ${event.name}`
    const added: AsyncEvent = { ...event, id: this.made++, from, delay, signature }
    if (added.time !== 'free') from.uses++
    this.pending.push(added)
    this.bornAt.set(added, this.happened.length)
    return added
  }

  private readonly bornAt = new Map<AsyncEvent, number>()

  remove(event: AsyncEvent): boolean {
    const at = this.pending.indexOf(event)
    if (at < 0) return false
    this.pending.splice(at, 1)
    this.bornAt.delete(event)
    if (event.time !== 'free') event.from.uses--
    return true
  }

  /**
   * The events that may happen next: first those that can happen at any time, the oldest first, then timers.
   */
  next(): AsyncEvent[] {
    const { pending } = this
    const able = pending.filter(event => this.mayBeNext(event))
    const sorted = able.filter(({ time }) => time !== 'exact')
    if (sorted.length < able.length) sorted.push(...able.filter(({ time }) => time === 'exact'))
    if (sorted.length < 2) return sorted
    const fair = sorted.filter(
      event => !sorted.some(other => other !== event && this.isStarved(other, event)),
    )
    if (fair.length === sorted.length) return sorted
    this.held = true
    return fair.length > 0 ? fair : [able[0]]
  }

  take(event: AsyncEvent): void {
    this.remove(event)
    const bounds = this.pending.filter(({ time }) => time !== 'free')
    if (event.time === 'exact') this.time.happenAt(event.from, event.delay, bounds)
    else this.time.happen(event.time === 'free' ? bounds : [...bounds, event])
    const { signature } = event
    this.happened.push(signature)
    this.counts.set(signature, (this.counts.get(signature) ?? 0) + 1)
  }

  private mayBeNext(event: AsyncEvent): boolean {
    const { pending } = this
    for (const other of pending) {
      if (other === event) break
      if (event.line !== undefined && other.line === event.line) return false
      // Node keeps timers of one length in one list.
      if (isTimer(event) && isTimer(other) && other.delay === event.delay) return false
    }
    if (event.time !== 'exact') return true
    return this.time.mayPrecede(
      event.from,
      event.delay,
      pending.filter(other => other.time !== 'free' && other !== event),
    )
  }

  /** Whether events like the second one have overtaken the first as often as they may. */
  private isStarved(event: AsyncEvent, { signature }: AsyncEvent): boolean {
    if ((this.counts.get(signature) ?? 0) < this.turns) return false
    let overtakes = 0
    for (let at = this.bornAt.get(event) ?? 0; at < this.happened.length; at++) {
      if (this.happened[at] === signature) overtakes++
    }
    return overtakes >= this.turns
  }
}

function isTimer({ kind }: AsyncEvent): boolean {
  return kind === 'timeout' || kind === 'interval'
}
