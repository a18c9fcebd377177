import type { ArenaPlan, Region } from '../memory/arena.ts'
import { assert } from '../assert.ts'
import { LINE_WORDS, roundUp } from '../memory/record.ts'

/**
 * A bounded ring with many producers and one consumer. A value is published by the one compare-exchange that
 * also claims its slot, so a producer that dies or is descheduled at any step blocks nobody: there is no
 * "claimed, not yet written" state, and `tail` is advanced by whoever finds it behind.
 *
 * A slot is a value (0 or more) or empty: EMPTY(lap), a negative number that carries the lap in which the
 * slot may be filled next. For the slot that `tail` points at, and a head read before it (so not full):
 *
 *   slot                  | means                                        | a producer
 *   ----------------------+----------------------------------------------+-----------------------------------
 *   EMPTY(lap of tail)    | [1] free                                     | (A) compare-exchanges its value in
 *   a value               | [2] just filled, tail not yet moved          | (B) moves tail, tries the next slot
 *   EMPTY(lap of tail + 1)| [3] filled and consumed, tail not yet moved  | (B) moves tail, tries the next slot
 *
 * Without the lap in EMPTY, a producer that slept between reading tail and (A) could fill a slot that has
 * been around since: its value would overtake or be overtaken.
 *
 * Two checks the order of the reads gives: head is read before the slot, so "not full" was true when the slot
 * was read, and a value found there is from this lap, never an unconsumed one from the last. If tail moved
 * since it was read, full may be stale: then it is read again.
 */
const TAIL = 0
const HEAD = LINE_WORDS
const SLOTS = 2 * LINE_WORDS

export function mpscWords(capacity: number): number {
  return SLOTS + roundUp(capacity, LINE_WORDS)
}

export class MpscRing {
  private readonly i32: Int32Array
  private readonly start: number
  readonly capacity: number
  private readonly mask: number
  private readonly shift: number

  /** A view of a ring at `start`, `mpscWords(capacity)` words long. One thread calls `initialize` first. */
  constructor(i32: Int32Array, start: number, capacity: number) {
    if (!Number.isInteger(capacity) || capacity < 2 || (capacity & (capacity - 1)) !== 0) {
      throw new RangeError(`MpscRing(capacity: ${capacity}): it must be a power of two, 2 or more`)
    }
    assert(start >= 0 && start + mpscWords(capacity) <= i32.length, 'the ring lies inside the memory')
    this.i32 = i32
    this.start = start
    this.capacity = capacity
    this.mask = capacity - 1
    this.shift = 31 - Math.clz32(capacity)
  }

  static reserve(plan: ArenaPlan, name: string, capacity: number): Region {
    return plan.reserve(name, mpscWords(capacity))
  }

  initialize(): void {
    for (let slot = 0; slot < this.capacity; slot++) this.i32[this.start + SLOTS + slot] = emptyMark(0)
    Atomics.store(this.i32, this.start + HEAD, 0)
    Atomics.store(this.i32, this.start + TAIL, 0)
  }

  /** From any thread. `value` is 0 or more. False when the ring is full; nothing has changed then. */
  push(value: number): boolean {
    assert(value >= 0, 'a ring value is not negative')
    const { i32, start, mask, shift } = this
    // Every turn that does not return has seen tail move, so some producer made progress.
    for (;;) {
      const tail = Atomics.load(i32, start + TAIL)
      const head = Atomics.load(i32, start + HEAD)
      if (((tail - head) | 0) >= this.capacity) {
        if (Atomics.load(i32, start + TAIL) === tail) return false
        continue
      }
      const slot = start + SLOTS + (tail & mask)
      const free = emptyMark(tail >>> shift)
      if (Atomics.compareExchange(i32, slot, free, value) === free) {
        Atomics.compareExchange(i32, start + TAIL, tail, (tail + 1) | 0) // (A) done; if this fails, someone did (B)
        return true
      }
      Atomics.compareExchange(i32, start + TAIL, tail, (tail + 1) | 0) // (B)
    }
  }

  /** Consumer only. The oldest value, or -1 when the ring is empty. */
  pop(): number {
    const { i32, start, mask, shift } = this
    const head = i32[start + HEAD]
    const slot = start + SLOTS + (head & mask)
    const value = Atomics.load(i32, slot)
    if (value < 0) return -1
    Atomics.store(i32, slot, emptyMark(((head + this.capacity) | 0) >>> shift))
    Atomics.store(i32, start + HEAD, (head + 1) | 0)
    return value
  }

  /** About how many values wait: exact when nobody pushes or pops meanwhile. */
  get length(): number {
    const head = Atomics.load(this.i32, this.start + HEAD)
    const tail = Atomics.load(this.i32, this.start + TAIL)
    return Math.max(0, Math.min(this.capacity, (tail - head) | 0))
  }
}

/** Negative for every lap; laps are told apart for 2^31 of them. */
function emptyMark(lap: number): number {
  return lap | 0x8000_0000
}
