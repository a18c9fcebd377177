import type { FutexContext } from './context.ts'
import { Waiter } from './records.ts'

/**
 * How a promise or a coroutine sleeps: its thread goes on. A waker on the same thread resumes it directly.
 * Only another thread needs `Atomics.waitAsync`, which costs more than the rest of a wait, and a turn of the
 * event loop for each wakeup. So the sleeper calls it late, in the next turn, if it still sleeps then.
 *
 *   sleeper                                  waker on another thread
 *   -------                                  -----------------------
 *   (A) signal = 0, reads queue              (C) queue = QUEUE_WOKEN
 *   is in `sleepsHere`                       (D) signal = 1, notify
 *   (E) next turn: waitAsync at signal
 *
 * If (D) comes before (E), the notify finds nobody, but (E) finds that the signal is not 0. A waker on this
 * thread finds the sleeper in `sleepsHere`.
 */
export interface SleepHere {
  readonly context: FutexContext
  readonly sleeper: number
  /** Milliseconds. */
  readonly nap: number
  readonly wake: (end: SleepEnd) => void
  /** It sleeps in `Atomics.waitAsync`. */
  isArmed: boolean
}

export type SleepEnd = 'woken' | 'timed-out'

/** Taken before a test or a program replaces it. Missing in browsers. */
const { setImmediate } = globalThis as { setImmediate?: (callback: () => void) => unknown }

/** Sleepers that have not called waitAsync yet, and some that were woken before. */
let asleep: SleepHere[] = []
const SWEEP_LEAST = 1024
/** At this length the list is swept: many sleeps may begin and end before the event loop turns. */
let sweepAt = SWEEP_LEAST
let isArming = false
let port: MessagePort | undefined

/** `wake` is called at most once, and not within this call. The signal is 0. */
export function sleepHere(
  context: FutexContext,
  sleeper: number,
  nap: number,
  wake: (end: SleepEnd) => void,
): void {
  const sleep = { context, sleeper, nap, wake, isArmed: false }
  context.sleepsHere.set(sleeper, sleep)
  const count = asleep.push(sleep)
  if (!isArming) {
    isArming = true
    nextTurn()
  }
  if (count < sweepAt) return
  asleep = asleep.filter(isAsleep)
  sweepAt = Math.max(SWEEP_LEAST, asleep.length * 2)
}

/** The sleeper continues for another reason. */
export function stopSleepHere(context: FutexContext, sleeper: number): void {
  const sleep = context.sleepsHere.get(sleeper)
  if (sleep !== undefined) leave(sleep)
}

/** Resumes a promise or a coroutine of this thread. False: it does not sleep here. */
export function wakeHere(context: FutexContext, sleeper: number): boolean {
  const sleep = context.sleepsHere.get(sleeper)
  if (sleep === undefined) return false
  leave(sleep)
  sleep.wake('woken')
  return true
}

function leave({ context, sleeper, isArmed }: SleepHere): void {
  context.sleepsHere.delete(sleeper)
  // Else the engine keeps the waitAsync.
  if (isArmed) Atomics.notify(context.i32, sleeper + Waiter.signal)
}

function nextTurn(): void {
  if (setImmediate !== undefined) {
    setImmediate(armAll)
    return
  }
  if (port === undefined) {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = armAll
    port = port2
  }
  port.postMessage(null)
}

function armAll(): void {
  const sleeps = asleep
  asleep = []
  sweepAt = SWEEP_LEAST
  isArming = false
  for (const sleep of sleeps) if (isAsleep(sleep)) arm(sleep)
}

function arm(sleep: SleepHere): void {
  const { context, sleeper, nap } = sleep
  // Rounded up to whole milliseconds, as the timer does: a fraction would be spent in turns of the loop.
  const waiting = Atomics.waitAsync(context.i32, sleeper + Waiter.signal, 0, Math.ceil(nap))
  if (!waiting.async) {
    end(sleep, waiting.value === 'timed-out' ? 'timed-out' : 'woken')
    return
  }
  sleep.isArmed = true
  void waiting.value.then(value => {
    if (isAsleep(sleep)) end(sleep, value === 'timed-out' ? 'timed-out' : 'woken')
  })
}

function isAsleep(sleep: SleepHere): boolean {
  return sleep.context.sleepsHere.get(sleep.sleeper) === sleep
}

function end(sleep: SleepHere, how: SleepEnd): void {
  sleep.context.sleepsHere.delete(sleep.sleeper)
  sleep.wake(how)
}
