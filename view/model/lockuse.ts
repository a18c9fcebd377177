import { Histogram } from './histogram.ts'

/** What the events say about one lock. Times are nanoseconds. */
export class LockUse {
  readonly lock: number
  contended = 0
  /** Acquired after a wait. */
  acquired = 0
  /** The holder gave it to a waiter that yields. */
  handedOver = 0
  /** Tracks of the waiters, with the start of each wait. */
  private readonly waiting = new Map<number, number>()
  private holder = 0
  private heldSince = 0
  readonly holds: Histogram = new Histogram()
  readonly waits: Histogram = new Histogram()
  /** How often each holder was waited for, by name. */
  readonly owners: Map<string, number> = new Map()

  constructor(lock: number) {
    this.lock = lock
  }

  contend(actor: number, time: number, owner: string): void {
    this.contended++
    if (!this.waiting.has(actor)) this.waiting.set(actor, time)
    if (owner !== '') this.owners.set(owner, (this.owners.get(owner) ?? 0) + 1)
  }

  acquire(actor: number, time: number): void {
    const since = this.waiting.get(actor)
    if (since !== undefined) {
      this.waiting.delete(actor)
      this.acquired++
      this.waits.add(time - since)
    }
    this.holder = actor
    this.heldSince = time
  }

  release(time: number): void {
    if (this.holder !== 0) this.holds.add(time - this.heldSince)
    this.holder = 0
  }

  handOver(time: number): void {
    this.handedOver++
    this.release(time)
  }

  /** The track of the present holder, as far as events say; 0: none. */
  get holderTrack(): number {
    return this.holder
  }

  get waiterTracks(): number[] {
    return [...this.waiting.keys()]
  }
}
