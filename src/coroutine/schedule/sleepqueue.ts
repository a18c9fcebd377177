import { assert } from '../../arena/assert.ts'

/** A deadline of a coroutine. It is on at most one queue. */
export class Timer<T> {
  readonly owner: T
  due = 0
  /** Order of arrival: decides among equal deadlines. */
  order = 0
  /** Index in the heap; -1: on no queue. */
  place = -1

  constructor(owner: T) {
    this.owner = owner
  }

  get isQueued(): boolean {
    return this.place >= 0
  }
}

/** Timers by deadline, then by arrival: a binary heap in which each timer knows its index. */
export class SleepQueue<T> {
  readonly #heap: Timer<T>[] = []
  #order = 0

  get count(): number {
    return this.#heap.length
  }

  /** The earliest deadline, or Infinity. */
  get next(): number {
    return this.#heap.length === 0 ? Infinity : this.#heap[0].due
  }

  add(timer: Timer<T>, due: number): void {
    assert(timer.place < 0, 'the timer is on a sleep queue already')
    assert(due === due, 'a deadline is a number')
    timer.due = due
    timer.order = this.#order++
    timer.place = this.#heap.length
    this.#heap.push(timer)
    this.#rise(timer)
  }

  remove(timer: Timer<T>): void {
    assert(this.#heap[timer.place] === timer, 'removed a timer that is not on this sleep queue')
    const last = this.#heap.pop()!
    if (last !== timer) {
      last.place = timer.place
      this.#heap[last.place] = last
      this.#rise(last)
      this.#sink(last)
    }
    timer.place = -1
  }

  /** Takes off and returns the earliest timer that is due at `now`, or undefined. */
  expire(now: number): Timer<T> | undefined {
    const first = this.#heap[0]
    if (first === undefined || first.due > now) return undefined
    this.remove(first)
    return first
  }

  #rise(timer: Timer<T>): void {
    const heap = this.#heap
    let place = timer.place
    while (place > 0) {
      const above = (place - 1) >> 1
      if (!before(timer, heap[above])) break
      heap[place] = heap[above]
      heap[place].place = place
      place = above
    }
    heap[place] = timer
    timer.place = place
  }

  #sink(timer: Timer<T>): void {
    const heap = this.#heap
    let place = timer.place
    for (;;) {
      let below = 2 * place + 1
      if (below >= heap.length) break
      if (below + 1 < heap.length && before(heap[below + 1], heap[below])) below++
      if (!before(heap[below], timer)) break
      heap[place] = heap[below]
      heap[place].place = place
      place = below
    }
    heap[place] = timer
    timer.place = place
  }
}

function before<T>(a: Timer<T>, b: Timer<T>): boolean {
  return a.due !== b.due ? a.due < b.due : a.order < b.order
}
