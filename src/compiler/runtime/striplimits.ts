/** The bounds of strips: how far a loop may run before its next safepoint. */

/**
 * The bound of the next strip of a loop that counts from `at` to `end`: `reach` away, or `end` itself. A
 * value that is no number, or that no step changes (Infinity), stays as it is: then the loop runs as usual.
 */
export function limit(at: unknown, end: any, reach: number): any {
  if (typeof at !== 'number' || typeof end !== 'number') return limitOfOthers(at, end, reach)
  const far = at + reach
  if (far === at) return end
  return reach > 0 ? (far < end ? far : end) : far > end ? far : end
}

/** The same if both are known to be numbers, so that the engine knows the type of the result. */
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

/** The counter after this many steps up; NaN if it never gets there: then the strip has no end. */
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
  // `i++` adds a one of the counter's own type.
  return step === 1 ? at + BigInt(turns) : Number.NaN
}

/** True if a loop from `low` to `high` by `step` has few turns. */
export function isShort(low: unknown, high: unknown, step: unknown, turns: number): boolean {
  if (typeof low !== 'number' || typeof high !== 'number' || typeof step !== 'number') return false
  return high - low <= turns * step
}

/** True for an array of few elements. */
export function isShortList(list: unknown, most: number): boolean {
  return (Array.isArray(list) || ArrayBuffer.isView(list)) && (list as ArrayLike<unknown>).length <= most
}
