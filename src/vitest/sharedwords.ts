/**
 * The words that a test process shares with its watchdog thread. The watchdog writes STOPPING and sets THROW.
 */

/** The earliest deadline of the guarded calls, in milliseconds of `clock`; 0 if none runs. */
export const DUE = 0
/** Incremented with each change of DUE; the watchdog sleeps on it. */
export const CHANGES = 1
/** Incremented while the event loop of the test thread runs. */
export const BEAT = 2
/** 1 from before the watchdog terminates the running JavaScript until it has reported it. */
export const STOPPING = 3
/** 1 while the next safepoint of compiled code must throw; the test thread clears it. */
export const THROW = 4
export const WORDS = 5

const hrtime = process.hrtime.bigint

/** Milliseconds since `base_ms`, the same in each thread, which a test cannot fake. At least 1. */
export function clock(base_ms: number): number {
  return Math.max(1, Math.round(Number(hrtime()) / 1e6 - base_ms))
}

/** The data for the watchdog thread. */
export interface WatchdogData {
  readonly words: Int32Array
  readonly base_ms: number
}

/** The watchdog's report after it stopped a call. */
export interface Stopped {
  /** The stopped call; null for the one with the earliest deadline. */
  readonly id: number | null
  /** The stack, innermost first, as the lines of an error's stack; empty inside native code. */
  readonly stack: readonly string[]
}
