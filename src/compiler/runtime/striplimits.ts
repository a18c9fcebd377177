/** How far a loop may run before it looks at its safepoint. */

/**
 * The bound of the next strip of a loop that counts from `at` to `end`: `reach` away, or `end` itself. What
 * is no number is left as it is, and what no step takes further (Infinity): the loop then runs as it always
 * did.
 */
export function limit(at: unknown, end: any, reach: number): any {
  if (typeof at !== 'number' || typeof end !== 'number') return limitOfOthers(at, end, reach)
  const far = at + reach
  if (far === at) return end
  return reach > 0 ? (far < end ? far : end) : far > end ? far : end
}

/** The same where both are known to be numbers: the engine then knows that it is one. */
export function near(at: number, end: number, reach: number): number {
  const from = +at
  const to = +end
  const far = from + reach
  if (far === from) return to
  return reach > 0 ? (far < to ? far : to) : far > to ? far : to
}

function limitOfOthers(at: unknown, end: any, reach: number): any {
  if (typeof at !== 'bigint' || typeof end !== 'bigint' || !Number.isInteger(reach)) return end
  const far = at + BigInt(reach)
  return reach > 0 ? (far < end ? far : end) : far > end ? far : end
}

/**
 * Where a counter is after so many steps up; NaN where that leads nowhere: then there is no end on the way.
 */
export function above(at: any, step: any, turns: number): any {
  if (typeof at !== 'number' || typeof step !== 'number') return aboveOther(at, step, turns)
  const end = at + step * turns
  return end > at ? end : Number.NaN
}

/** The same for steps down. */
export function below(at: any, step: any, turns: number): any {
  if (typeof at !== 'number' || typeof step !== 'number') return aboveOther(at, step, -turns)
  const end = at - step * turns
  return end < at ? end : Number.NaN
}

function aboveOther(at: unknown, step: unknown, turns: number): bigint | number {
  if (typeof at !== 'bigint') return Number.NaN
  if (typeof step === 'bigint') return step > 0n ? at + step * BigInt(turns) : Number.NaN
  // `i++` adds one of whatever kind the counter is.
  return step === 1 ? at + BigInt(turns) : Number.NaN
}

/** True when a loop from `low` to `high` by `step` has few turns. */
export function isShort(low: unknown, high: unknown, step: unknown, turns: number): boolean {
  if (typeof low !== 'number' || typeof high !== 'number' || typeof step !== 'number') return false
  return high - low <= turns * step
}

/** True for an array of few elements. */
export function isShortList(list: unknown, most: number): boolean {
  return (Array.isArray(list) || ArrayBuffer.isView(list)) && (list as ArrayLike<unknown>).length <= most
}
