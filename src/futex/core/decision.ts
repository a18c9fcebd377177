import { EINVAL } from './errno.ts'
import { Waiter } from './records.ts'

/** The decision of a queue walk about one waiter: the same walk serves wake, bitset and requeue. */
export const SKIP = 0
export const STOP = 1
export const WAKE = 2
export const MOVE = 3

export interface Decision {
  decide(i32: Int32Array, waiter: number): typeof SKIP | typeof STOP | typeof WAKE | typeof MOVE
}

/**
 * Wakes the waiters whose bitset has a bit in common with `bitset`. Stops at a pi waiter with an error, as
 * Linux does.
 */
export class WakeDecision implements Decision {
  limit = 0
  bitset = 0
  woken = 0
  error = 0

  begin(limit: number, bitset: number): this {
    this.limit = limit
    this.bitset = bitset
    this.woken = 0
    this.error = 0
    return this
  }

  decide(i32: Int32Array, waiter: number): typeof SKIP | typeof STOP | typeof WAKE {
    // As on Linux, a limit of 0 or less wakes one waiter.
    if (this.woken > 0 && this.woken >= this.limit) return STOP
    if (i32[waiter + Waiter.pi] !== 0) {
      this.error = -EINVAL
      return STOP
    }
    if ((i32[waiter + Waiter.bitset] & this.bitset) === 0) return SKIP
    this.woken++
    return WAKE
  }
}

/** Wakes the first waiters and moves others, counted as on Linux. */
export class RequeueDecision implements Decision {
  wakeLimit = 0
  moveLimit = 0
  seen = 0
  error = 0
  /** Both words are the same: a waiter that would move stays in its queue, and counts. */
  inPlace = false

  begin(wakeLimit: number, moveLimit: number, inPlace: boolean): this {
    this.wakeLimit = wakeLimit
    this.moveLimit = moveLimit
    this.seen = 0
    this.error = 0
    this.inPlace = inPlace
    return this
  }

  decide(i32: Int32Array, waiter: number): typeof SKIP | typeof STOP | typeof WAKE | typeof MOVE {
    if (this.seen - this.wakeLimit >= this.moveLimit) return STOP
    if (i32[waiter + Waiter.pi] !== 0) {
      this.error = -EINVAL
      return STOP
    }
    this.seen++
    if (this.seen <= this.wakeLimit) return WAKE
    return this.inPlace ? SKIP : MOVE
  }
}
