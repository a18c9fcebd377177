import { type Decision, STOP, WAKE } from '../../futex/core/decision.ts'

/** Wakes the first `limit` waiters of a queue. */
export class WakeCount implements Decision {
  woken = 0
  private readonly limit: number

  constructor(limit: number) {
    this.limit = limit
  }

  decide(): typeof STOP | typeof WAKE {
    if (this.woken >= this.limit) return STOP
    this.woken++
    return WAKE
  }
}
