/**
 * How the length of the turn that ends at a switch is known (`Scheduler.turn`). turnclock.ts decides it, and
 * the fair class charges the turn by it.
 */

/** The clock was read at the start and at the end of the turn: the clock says how long it was. */
export const TURN_MEASURED = 0
/** The clock was not read at the end of the turn. */
export const TURN_ESTIMATED = 1
/** The clock was read at the end of the turn, and not at its start. */
export const TURN_WINDOW_END = 2
/** The turn is charged already: rotatefair.ts did, and then left the switch to the slow path. */
export const TURN_CHARGED = 3

/** Turns are short below this time. */
export const SHORT_TURN_MS = 0.003

/** A single turn is long from this time on: shorter ones may have been disturbed. */
export const LONG_TURN_MS = 0.016
