/**
 * A deadline is one number, so that a wait carries it without an object:
 *
 *   below WALL   milliseconds of the kernel's monotonic clock
 *   from WALL    WALL plus milliseconds of the wall clock, as in Date.now(): FUTEX_CLOCK_REALTIME
 *   Infinity     never
 *
 * The wall clock may be set without notice. A wait with such a deadline therefore sleeps at most WALL_STEP_MS
 * and compares again: it follows the clock within that time.
 *
 * A `limit` is the caller's value: below WALL a timeout from now on; from WALL a deadline of the wall clock.
 */
const WALL: number = 2 ** 46
export const WALL_STEP_MS = 100

/** The limit of a wait that ends at this time of the wall clock. */
export function wallLimit(ms: number): number {
  return ms === Infinity ? Infinity : WALL + Math.max(0, ms)
}

/** The limit of a wait that ends after so many milliseconds. From WALL on, that is never. */
export function timeoutLimit(ms: number): number {
  return ms >= WALL ? Infinity : ms
}

/** The limit of the rest of a wait, after `elapsed` milliseconds of it. */
export function restOf(limit: number, elapsed: number): number {
  return limit >= WALL ? limit : Math.max(0, limit - elapsed)
}

/** Converts a limit to a deadline. */
export function deadlineOf(now: () => number, limit: number): number {
  if (limit >= WALL) return limit
  const deadline = now() + Math.max(0, limit)
  return deadline < WALL ? deadline : Infinity
}

function isWall(deadline: number): boolean {
  return deadline >= WALL && deadline !== Infinity
}

/** Milliseconds to the deadline, by its own clock; 0 or less: it has passed. */
export function timeLeft(now: () => number, deadline: number): number {
  return isWall(deadline) ? deadline - WALL - Date.now() : deadline - now()
}

/** How long to sleep before the clock is compared again. */
export function sleepMs(deadline: number, left: number): number {
  return isWall(deadline) ? Math.min(left, WALL_STEP_MS) : left
}

/**
 * Whether a sleep with `left` milliseconds left ended before its deadline: platform timers fire up to two
 * milliseconds early. False if the clock did not move during the sleep: a simulated machine's clock stands
 * still while this thread sleeps.
 */
export function wokeEarly(now: () => number, deadline: number, left: number): boolean {
  const rest = timeLeft(now, deadline)
  return rest > 0 && (rest < left || isWall(deadline))
}
