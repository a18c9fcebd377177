import type { Platform } from '../../machine/core/platform.ts'
import { CoroutineError } from '../core/errors.ts'

/** The longest that a platform's timer can be set for. */
const TIMER_MS_MAX = 0x7fff_ffff

/**
 * The wait of the loop while no coroutine is ready: the event loop has the thread until one is, or until a
 * time.
 */
export class Rest {
  readonly #platform: Platform
  #end: (() => void) | null = null

  constructor(platform: Platform) {
    this.#platform = platform
  }

  /** Ends the wait, if the loop waits. */
  rouse(): void {
    this.#end?.()
  }

  /** Resolves at `due`, or when the wait is ended; a timer may be early, so the caller checks again. */
  async until(due: number): Promise<void> {
    const platform = this.#platform
    const ms = due - platform.now()
    if (ms <= 0) return
    const { timerGrain = 1 } = platform
    if (ms < timerGrain) {
      await platform.turn()
      return
    }
    const whole = timerGrain === 0 ? ms : Math.ceil(ms / timerGrain) * timerGrain
    let timer: unknown
    await new Promise<void>(resolve => {
      this.#end = resolve
      if (ms !== Infinity) timer = platform.setTimer(resolve, Math.min(whole, TIMER_MS_MAX))
    })
    this.#end = null
    if (timer !== undefined) platform.clearTimer(timer)
  }

  /** The same with the thread blocked: only time can end it. */
  blockUntil(due: number): void {
    const { block } = this.#platform
    if (due === Infinity) {
      throw new CoroutineError(
        'ERR_HEDDLE_DEADLOCK',
        'runSync: every coroutine waits for something that cannot arrive while the thread is blocked; use `await schedule.run()`',
      )
    }
    if (block === undefined) {
      throw new CoroutineError(
        'ERR_HEDDLE_DEADLOCK',
        'runSync: this thread may not block; use `await schedule.run()`',
      )
    }
    const ms = due - this.#platform.now()
    if (ms > 0) block.call(this.#platform, ms)
  }
}
