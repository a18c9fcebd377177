import { startAlarm } from '../../machine/timekeeper/alarm.ts'
import type { CloseSettings } from './close.ts'

/**
 * Until when a closing kernel lets its tasks end by themselves. `close` may be called several times: the call
 * that allows the least time decides.
 */
export class CloseDeadline {
  /** Resolves when the time is over. */
  readonly over: Promise<void>
  /** Why the tasks are killed, if the aborting call gave a reason. */
  reason: unknown
  private ring: () => void = () => undefined
  private due = Infinity
  private cancel: () => void = () => undefined

  constructor() {
    this.over = new Promise(resolve => (this.ring = resolve))
  }

  /** Applies another call of `close`. */
  apply({ aborts, reason, deadline }: CloseSettings): void {
    const wait = aborts ? 0 : deadline
    const due = performance.now() + wait
    if (aborts) this.reason ??= reason
    if (due >= this.due) return
    this.due = due
    this.cancel()
    if (aborts) this.ring()
    else this.cancel = startAlarm(wait, this.ring)
  }

  /** The tasks have ended. */
  stop(): void {
    this.cancel()
  }
}
