/** Why a coroutine stops before its end. */

/** It reached a safepoint while its CPU's word was up, or yielded: still runnable. */
export const PREEMPTED = 0
/** It has queued itself somewhere and blocks: its waker makes it runnable. */
export const SUSPENDED = 1
