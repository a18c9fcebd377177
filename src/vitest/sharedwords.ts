/**
 * The words that a test process shares with its watchdog thread. The watchdog writes STOPPING and raises
 * THROW.
 */

/** When the first of the guarded calls has to have ended, in milliseconds of `clock`; 0: none runs. */
export const DUE = 0
/** Grows with each change of DUE; the watchdog sleeps on it. */
export const CHANGES = 1
/** Grows while the event loop of the test thread turns. */
export const BEAT = 2
/** 1 from before the watchdog ends the JavaScript that runs until it has said so. */
export const STOPPING = 3
/** 1 while the next safepoint of compiled code has to throw; the test thread clears it. */
export const THROW = 4
export const WORDS = 5

const hrtime = process.hrtime.bigint

/** Milliseconds since `base_ms`, the same in each thread, and not to be faked by a test. At least 1. */
export function clock(base_ms: number): number {
  return Math.max(1, Math.round(Number(hrtime()) / 1e6 - base_ms))
}

/** What the watchdog thread is started with. */
export interface WatchdogData {
  readonly words: Int32Array
  readonly base_ms: number
}

/** What the watchdog says after it has stopped a call. */
export interface Stopped {
  /** The guarded call that was stopped; null: the one that was due first. */
  readonly id: number | null
  /** Where it stood, innermost first, as the lines of an error's stack; none inside native code. */
  readonly stack: readonly string[]
}
