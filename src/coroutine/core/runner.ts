import { CoroutineError } from './errors.ts'
import { here } from '../../thread/context.ts'
import type { Runner, Waker } from '../../thread/runner.ts'
import { preemptionOff, preemptionOn } from './safepoint.ts'
import { traceStop } from './stoptrace.ts'

/** A wait is resumed with this when its time has passed. */
export const TIMED_OUT: unique symbol = Symbol('heddle.timedOut')

/** The runner of the coroutine that is running; throws where none is. */
export function currentRunner(what: string): Runner {
  if (here.runner === null) {
    throw new CoroutineError(
      'ERR_HEDDLE_RUNNING_CO_NULL',
      `${what} needs a coroutine, and none is running here: call it from a function that runs as a task, by kernel.spawn or schedule.run`,
    )
  }
  return here.runner
}

/** Reports the progress of the running coroutine to its runner, if one runs. */
export function reportProgress(value: unknown): void {
  here.runner?.progress(value)
}

/**
 * The running coroutine begins to wait: preemption is off until `endWait`, which it calls when it continues.
 * Suspend against the tick:
 *
 *   coroutine                                   interrupt, at a safepoint
 *   ---------                                   -------------------------
 *   (A) preemption off
 *   state = SUSPEND, a waker may wake it
 *                                               without (A): it runs, so it is preempted
 *   yields SUSPENDED                            the loop makes it ready, although no waker woke it
 *   (B) preemption on
 */
export function beginWait(waiting: Runner, ms: number, wakeable = true): Waker {
  traceStop(beginWait)
  preemptionOff() // (A)
  try {
    return waiting.park(ms, wakeable)
  } catch (error) {
    preemptionOn()
    throw error
  }
}

/**
 * Ends what `beginWait` began: the coroutine continues, because it was woken or cancelled, or never stopped.
 */
export function endWait(): void {
  preemptionOn() // (B)
}
