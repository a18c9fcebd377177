import type { FutexContext } from '../../futex/core/context.ts'
import { type Decision, SKIP, STOP, WAKE } from '../../futex/core/decision.ts'
import { Waiter } from '../../futex/core/records.ts'
import { CLOSED, copyValue, TAKEN } from '../wait/value.ts'
import type { SharedPipe } from './sharedpipe.ts'

/** How a waiter of a channel is served, under the lock of its queue (sharedpipe.ts). */

/** Serves the first waiter that was not served at another channel meanwhile. */
export abstract class Serving implements Decision {
  served = false

  decide(i32: Int32Array, waiter: number): typeof SKIP | typeof STOP | typeof WAKE {
    if (this.served && !this.all) return STOP
    const claim = i32[waiter + Waiter.sleeper] + Waiter.claim
    if (Atomics.compareExchange(i32, claim, 0, i32[waiter + Waiter.bitset]) !== 0) return SKIP
    this.served = true
    this.hand(i32, waiter)
    return WAKE
  }

  protected get all(): boolean {
    return false
  }

  protected abstract hand(i32: Int32Array, waiter: number): void
}

export class Handing extends Serving {
  private readonly from: Int32Array
  private readonly at: number

  constructor(from: Int32Array, at: number) {
    super()
    this.from = from
    this.at = at
  }

  protected hand(i32: Int32Array, waiter: number): void {
    copyValue(this.from, this.at, i32, waiter + Waiter.handover)
  }
}

export class Fetching extends Serving {
  private readonly pipe: SharedPipe
  private readonly context: FutexContext
  private readonly to: Int32Array
  private readonly at: number

  constructor(pipe: SharedPipe, context: FutexContext, to: Int32Array, at: number) {
    super()
    this.pipe = pipe
    this.context = context
    this.to = to
    this.at = at
  }

  protected hand(i32: Int32Array, waiter: number): void {
    const { pipe, context } = this
    const block = pipe.takes(context, i32, waiter + Waiter.handover)
    copyValue(i32, waiter + Waiter.handover, this.to, this.at)
    i32[waiter + Waiter.handover] = TAKEN // (H)
    pipe.taken(context, block)
  }
}

export class Refilling extends Serving {
  private readonly pipe: SharedPipe
  private readonly context: FutexContext
  private readonly tail: number

  constructor(pipe: SharedPipe, context: FutexContext, tail: number) {
    super()
    this.pipe = pipe
    this.context = context
    this.tail = tail
  }

  protected hand(_: Int32Array, waiter: number): void {
    this.pipe.refill(this.context, waiter, this.tail)
  }
}

export class Closing extends Serving {
  protected override get all(): boolean {
    return true
  }

  protected hand(i32: Int32Array, waiter: number): void {
    i32[waiter + Waiter.handover] = CLOSED
  }
}
