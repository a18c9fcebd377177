/**
 * A channel that has not left its thread. Only coroutines and promises of this thread use it, so it needs
 * neither locks nor copies: a receiver gets the sent object itself. It becomes a SharedPipe when the channel
 * is sent to another thread.
 */

/** A wait at one or several local channels, which is served at one of them. */
export class Selection {
  /** Which case was served; -1: none yet. */
  index = -1
  closed = false
  value: unknown = undefined
  /** The channel has left the thread: the wait begins again at the shared channel. */
  moved = false
  /** It must not be served any more. */
  over = false
  wake: (() => void) | null = null

  /** True: this call served it. */
  serve(index: number, value: unknown, closed: boolean): boolean {
    if (this.over) return false
    this.over = true
    this.index = index
    this.value = value
    this.closed = closed
    this.wake?.()
    return true
  }

  move(): void {
    if (this.over) return
    this.over = true
    this.moved = true
    this.wake?.()
  }
}

interface LocalWaiter {
  readonly selection: Selection
  readonly index: number
  readonly value: unknown
}

/** A first-in-first-out queue that does not move its items at each shift. */
class Line<T> {
  private items: T[] = []
  private first = 0

  get length(): number {
    return this.items.length - this.first
  }

  push(item: T): void {
    this.items.push(item)
  }

  shift(): T {
    const item = this.items[this.first]
    this.items[this.first] = undefined as T
    this.first++
    if (this.first > 64 && this.first * 2 > this.items.length) {
      this.items = this.items.slice(this.first)
      this.first = 0
    }
    return item
  }

  remove(unwanted: (item: T) => boolean): void {
    this.items = this.items.slice(this.first).filter(item => !unwanted(item))
    this.first = 0
  }

  clear(): T[] {
    const all = this.items.slice(this.first)
    this.items = []
    this.first = 0
    return all
  }
}

/** The values in a channel: a ring, which grows as needed. */
class Ring {
  length = 0
  slots: unknown[] = [undefined, undefined, undefined, undefined]
  head = 0
  mask = 3

  push(value: unknown): void {
    if (this.length > this.mask) this.grow()
    this.slots[(this.head + this.length) & this.mask] = value
    this.length++
  }

  shift(): unknown {
    const { slots, head } = this
    const value = slots[head]
    slots[head] = undefined
    this.head = (head + 1) & this.mask
    this.length--
    return value
  }

  unshift(value: unknown): void {
    if (this.length > this.mask) this.grow()
    this.head = (this.head - 1) & this.mask
    this.slots[this.head] = value
    this.length++
  }

  replaceLast(value: unknown): void {
    this.slots[(this.head + this.length - 1) & this.mask] = value
  }

  all(): unknown[] {
    return Array.from({ length: this.length }, (_, at) => this.slots[(this.head + at) & this.mask])
  }

  private grow(): void {
    const all = this.all()
    this.mask = this.mask * 2 + 1
    this.slots = [...all, ...Array.from({ length: this.mask + 1 - all.length }, () => undefined)]
    this.head = 0
  }
}

export class LocalPipe {
  readonly capacity: number
  readonly latest: boolean
  closed = false
  /** What `take` took. */
  taken: unknown = undefined
  private readonly items = new Ring()
  private readonly senders = new Line<LocalWaiter>()
  private readonly receivers = new Line<LocalWaiter>()
  /** It is open and has no waiters: a send or a receive only changes the ring. */
  private quiet = true

  constructor(capacity: number, latest: boolean) {
    this.capacity = capacity
    this.latest = latest
  }

  get count(): number {
    return this.items.length
  }

  /** The short way of a send. False: take the long one. */
  putQuietly(value: unknown): boolean {
    const { items } = this
    const { length, mask } = items
    if (!this.quiet || length >= this.capacity || length > mask) return false
    items.slots[(items.head + length) & mask] = value
    items.length = length + 1
    return true
  }

  /** The short way of a receive: whether `takeQuietly` may be called. */
  hasQuietly(): boolean {
    return this.quiet && this.items.length > 0
  }

  takeQuietly(): unknown {
    const { items } = this
    const { slots, head } = items
    const value = slots[head]
    slots[head] = undefined
    items.head = (head + 1) & items.mask
    items.length--
    return value
  }

  /** True: sent. False: full. The channel is not closed. */
  put(value: unknown): boolean {
    while (this.receivers.length > 0) {
      const { selection, index } = this.receivers.shift()
      if (selection.serve(index, value, false)) return true
    }
    this.settle()
    if (this.items.length < this.capacity) this.items.push(value)
    else if (this.latest) this.items.replaceLast(value)
    else return false
    return true
  }

  /** True: `taken` is what was received. False: empty. */
  take(): boolean {
    if (this.items.length > 0) {
      this.taken = this.items.shift()
      // A value that was put back may have exceeded the capacity.
      const next = this.items.length < this.capacity ? this.nextSender() : null
      if (next !== null) this.items.push(next.value)
      return true
    }
    const sender = this.nextSender()
    if (sender === null) return false
    this.taken = sender.value
    return true
  }

  /** Puts a received value back, before all others. */
  putBack(value: unknown): void {
    while (this.receivers.length > 0) {
      const { selection, index } = this.receivers.shift()
      if (selection.serve(index, value, false)) return
    }
    if (!this.latest || this.items.length === 0) this.items.unshift(value)
  }

  add(sends: boolean, waiter: LocalWaiter): void {
    const line = sends ? this.senders : this.receivers
    line.push(waiter)
    this.quiet = false
  }

  /** Removes its waiters. */
  forget(gone: Selection): void {
    this.senders.remove(({ selection }) => selection === gone)
    this.receivers.remove(({ selection }) => selection === gone)
  }

  close(): void {
    this.closed = true
    this.quiet = false
    for (const line of [this.senders, this.receivers]) {
      for (const { selection, index } of line.clear()) selection.serve(index, undefined, true)
    }
  }

  /** The values in it, which stay there. */
  contents(): unknown[] {
    return this.items.all()
  }

  /** The channel leaves the thread: its waiters begin again at the shared one. */
  moveWaiters(): void {
    for (const line of [this.senders, this.receivers]) {
      for (const { selection } of line.clear()) selection.move()
    }
  }

  private nextSender(): LocalWaiter | null {
    while (this.senders.length > 0) {
      const waiter = this.senders.shift()
      if (waiter.selection.serve(waiter.index, undefined, false)) return waiter
    }
    this.settle()
    return null
  }

  private settle(): void {
    this.quiet = !this.closed && this.senders.length === 0 && this.receivers.length === 0
  }
}
