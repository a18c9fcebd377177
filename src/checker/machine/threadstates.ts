/** What a checked thread does between events. */
export const RUNNABLE = 0
/** In `Atomics.wait` without a timeout, or awaiting a promise that is not settled. */
export const ASLEEP = 1
export const FINISHED = 2
export const CRASHED = 3
/** Its last turn of a loop changed nothing: nothing it read has changed since. */
export const SPINNING = 4
/** At a lock that another thread holds. */
export const BLOCKED = 5
/** The recovery thread, before a thread has died. */
export const UNBORN = 6
