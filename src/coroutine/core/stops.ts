/** Why a coroutine hands control back before its end. */

/** It stood at a safepoint while its CPU's word was up, or gave way: still runnable. */
export const PREEMPTED = 0
/** It has queued itself somewhere and blocks: who finds it there makes it runnable. */
export const SUSPENDED = 1
