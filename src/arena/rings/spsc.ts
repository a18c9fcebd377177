import type { ArenaPlan, Region } from '../memory/arena.ts'
import { assert } from '../assert.ts'
import { LINE_WORDS, roundUp } from '../memory/record.ts'

/**
 * The single-producer single-consumer ring of the coroutine design: `head` is where the producer writes next,
 * `tail` where the consumer reads next, and one slot stays empty, so that head === tail means empty and
 * head + 1 === tail means full. A push on a full ring fails and changes nothing.
 *
 *   producer                                consumer
 *   --------                                --------
 *   slot[head] = value        (plain)
 *   (A) store(head, head + 1)
 *                                           (B) load(head): sees (A), so it also sees the value
 *                                           value = slot[tail]   (plain)
 *                                           (C) store(tail, tail + 1)
 *   (D) load(tail): sees (C), so the slot may be written again
 *
 * With (A) before the value is written, the consumer reads what the slot held a lap ago.
 */
const HEAD = 0
const TAIL = LINE_WORDS
const SLOTS = 2 * LINE_WORDS

/** Words that a ring of this capacity takes, head and tail on lines of their own. */
export function spscWords(capacity: number): number {
  return SLOTS + roundUp(capacity, LINE_WORDS)
}

export class SpscRing {
  private readonly i32: Int32Array
  private readonly start: number
  /** Slots. The ring holds at most `capacity - 1` values. */
  readonly capacity: number

  /** A view of a ring at `start` (zeroed memory is an empty ring), `spscWords(capacity)` words long. */
  constructor(i32: Int32Array, start: number, capacity: number) {
    if (!Number.isInteger(capacity) || capacity < 2) {
      throw new RangeError(
        `SpscRing(capacity: ${capacity}): one slot stays empty, so it must be an integer of at least 2`,
      )
    }
    assert(start >= 0 && start + spscWords(capacity) <= i32.length, 'the ring lies inside the memory')
    this.i32 = i32
    this.start = start
    this.capacity = capacity
  }

  static reserve(plan: ArenaPlan, name: string, capacity: number): Region {
    return plan.reserve(name, spscWords(capacity))
  }

  /** Producer only. False: the ring is full, and nothing has changed. */
  push(value: number): boolean {
    const { i32, start, capacity } = this
    const head = i32[start + HEAD]
    const next = head + 1 === capacity ? 0 : head + 1
    if (next === Atomics.load(i32, start + TAIL)) return false // (D)
    i32[start + SLOTS + head] = value
    Atomics.store(i32, start + HEAD, next) // (A)
    return true
  }

  /** Consumer only. The oldest value, or `empty` when the ring is empty. */
  pop(empty = 0): number {
    const { i32, start, capacity } = this
    const tail = i32[start + TAIL]
    if (tail === Atomics.load(i32, start + HEAD)) return empty // (B)
    const value = i32[start + SLOTS + tail]
    Atomics.store(i32, start + TAIL, tail + 1 === capacity ? 0 : tail + 1) // (C)
    return value
  }

  /**
   * How many values are in the ring: exact for the next step of either side, a snapshot for other threads.
   */
  get length(): number {
    const head = Atomics.load(this.i32, this.start + HEAD)
    const tail = Atomics.load(this.i32, this.start + TAIL)
    return head >= tail ? head - tail : head - tail + this.capacity
  }
}
