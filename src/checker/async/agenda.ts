import { type Due, TimeOrder } from './timeorder.ts'

export type EventKind = 'start' | 'io' | 'timeout' | 'interval' | 'immediate' | 'message'

/** Something that will happen, and has not yet. */
export interface AsyncEvent extends Due {
  readonly kind: EventKind
  /** What a report calls it: "load user:1", "timeout 100 ms". */
  readonly name: string
  /** The task in which it was made. */
  readonly task: number
  /** Free: at any time. Exact: `delay` ms after `from`. Bounded: at the latest then. */
  readonly time: 'free' | 'exact' | 'bounded'
  /** Events of one line come in the order in which they were made. */
  readonly line: unknown
  /** Whether an execution goes on for it when all tasks have ended. */
  keeps: boolean
  readonly happen: () => void
  /** Its place in the order in which events were made. */
  readonly id: number
  /** As two executions of one schedule must agree on it. */
  readonly signature: string
}

export type NewEvent = Omit<AsyncEvent, 'id' | 'from' | 'delay' | 'signature'> & { readonly delay?: number }

/**
 * What is pending in one execution, and what of it may come next. Events come in any order, except:
 *   - timers come in the order of their deadlines, as far as these are known (`TimeOrder`); timers of the same length in that of their making;
 *   - events of one line (the messages of a port, immediates, operations that say so) come in the order of their making;
 *   - an event does not overtake another more than `turns` times with others of its name and task: a loop that polls would go on for ever.
 */
export class Agenda {
  readonly time: TimeOrder = new TimeOrder()
  /** In the order of their making. */
  readonly pending: AsyncEvent[] = []
  /** What has happened, as names. */
  readonly happened: string[] = []
  private readonly counts = new Map<string, number>()
  private readonly turns: number
  private made = 0
  /** Whether an event had to come because others overtook it too often. */
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

  /** What may come next: first what can come at any time, the oldest first, then timers. */
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

  /** The event happens now. */
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

  /** Whether events like `by` have overtaken this one as often as they may. */
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
