/**
 * A channel that has not left its thread: nobody but coroutines and promises of this thread can be at its other end, so it needs neither
 * locks nor copies. Values pass as they are. It becomes a SharedPipe when the channel is sent to another thread.
 */

/** One wait at one or several local channels: served at one of them. */
export class Selection {
  /** Which case was served; -1: none yet. */
  index = -1
  closed = false
  value: unknown = undefined
  /** The channel has left the thread meanwhile: to be done again, there. */
  moved = false
  /** Nobody may serve it any more. */
  over = false
  wake: (() => void) | null = null

  /** True: it was this one that served it. */
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

/** First in, first out, without moving what is in it. */
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

  unshift(item: T): void {
    if (this.first > 0) this.items[--this.first] = item
    else this.items.unshift(item)
  }

  replaceLast(item: T): void {
    this.items[this.items.length - 1] = item
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

export class LocalPipe {
  readonly capacity: number
  readonly latest: boolean
  closed = false
  /** What `take` took. */
  taken: unknown = undefined
  private readonly items = new Line<unknown>()
  private readonly senders = new Line<LocalWaiter>()
  private readonly receivers = new Line<LocalWaiter>()

  constructor(capacity: number, latest: boolean) {
    this.capacity = capacity
    this.latest = latest
  }

  get count(): number {
    return this.items.length
  }

  /** True: sent. False: full. The channel is not closed. */
  put(value: unknown): boolean {
    while (this.receivers.length > 0) {
      const { selection, index } = this.receivers.shift()
      if (selection.serve(index, value, false)) return true
    }
    if (this.items.length < this.capacity) this.items.push(value)
    else if (this.latest) this.items.replaceLast(value)
    else return false
    return true
  }

  /** True: `taken` is what was received. False: empty. */
  take(): boolean {
    if (this.items.length > 0) {
      this.taken = this.items.shift()
      const next = this.nextSender()
      if (next !== null) this.items.push(next.value)
      return true
    }
    const sender = this.nextSender()
    if (sender === null) return false
    this.taken = sender.value
    return true
  }

  /** A value that was received comes back, to the head of the line. */
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
  }

  /** It does not wait any more. */
  forget(gone: Selection): void {
    this.senders.remove(({ selection }) => selection === gone)
    this.receivers.remove(({ selection }) => selection === gone)
  }

  close(): void {
    this.closed = true
    for (const line of [this.senders, this.receivers]) {
      for (const { selection, index } of line.clear()) selection.serve(index, undefined, true)
    }
  }

  /** What is in it, without taking it out. */
  contents(): unknown[] {
    const all = this.items.clear()
    for (const value of all) this.items.push(value)
    return all
  }

  /** The channel leaves the thread: whoever waits here begins anew. */
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
    return null
  }
}
