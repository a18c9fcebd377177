/** Strips of counted loops. */

const turns = 512

/**
 * How far a loop from `at` towards `end` may count by `step` before it looks at its safepoint. What is not a number
 * is left as it is: the loop then runs as it always did.
 */
export function limit(at: unknown, end: any, step: number): any {
  if (typeof at !== 'number' || typeof end !== 'number') return end
  const far = at + step * turns
  return step > 0 ? (far < end ? far : end) : far > end ? far : end
}
