/** The state of a checked thread between events. */
export const RUNNABLE = 0
/** In `Atomics.wait` without a timeout, or awaiting a promise that is not settled. */
export const ASLEEP = 1
export const FINISHED = 2
export const CRASHED = 3
/** Its last turn of a loop changed nothing, and no value that it read has changed since. */
export const SPINNING = 4
/** Waits for a lock that another thread holds. */
export const BLOCKED = 5
/** The recovery thread, before any thread has died. */
export const UNBORN = 6
