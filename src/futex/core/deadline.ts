/**
 * A deadline is one number, so that a wait carries it without an object:
 *
 *   below WALL   milliseconds of the kernel's monotonic clock
 *   from WALL    WALL plus milliseconds of the wall clock, as Date.now() counts them: FUTEX_CLOCK_REALTIME
 *   Infinity     never
 *
 * The wall clock may be set, and nothing tells a program so. A wait with such a deadline therefore sleeps
 * WALL_STEP_MS at the most, and compares again: it follows the clock within that time, whichever way the
 * clock was set.
 *
 * A `limit` is what callers give: below WALL a timeout, from now on; from WALL a deadline of the wall clock.
 */
const WALL: number = 2 ** 46
export const WALL_STEP_MS = 100

/** The limit of a wait that ends at this moment of the wall clock. */
export function wallLimit(ms: number): number {
  return ms === Infinity ? Infinity : WALL + Math.max(0, ms)
}

/** The deadline that a limit means now. */
export function deadlineOf(now: () => number, limit: number): number {
  if (limit >= WALL) return limit
  const deadline = now() + Math.max(0, limit)
  return deadline < WALL ? deadline : Infinity
}

export function isWall(deadline: number): boolean {
  return deadline >= WALL && deadline !== Infinity
}

/** Milliseconds to the deadline, by the clock that names it; 0 or less: it has passed. */
export function timeLeft(now: () => number, deadline: number): number {
  return isWall(deadline) ? deadline - WALL - Date.now() : deadline - now()
}

/** How long to sleep before the clock is compared again. */
export function napOf(deadline: number, left: number): number {
  return isWall(deadline) ? Math.min(left, WALL_STEP_MS) : left
}

/**
 * Whether a sleep of which `left` was left ended before its deadline: timers of the platform fire up to two
 * milliseconds early. Where the clock has not moved during the sleep it never will: that of a simulated
 * machine, which stands still while this thread waits for real.
 */
export function wokeEarly(now: () => number, deadline: number, left: number): boolean {
  const rest = timeLeft(now, deadline)
  return rest > 0 && (rest < left || isWall(deadline))
}
