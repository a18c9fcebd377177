/** Computes for about this long. */
export function job(ms: number): number {
  'use task'
  const end = performance.now() + ms
  let turns = 0
  while (performance.now() < end) turns++
  return turns
}

/** Uses this many milliseconds of CPU time. The time of other tasks does not count. */
export function burn(ms: number): void {
  'use task'
  let last = performance.now()
  let left = ms
  while (left > 0) {
    const now = performance.now()
    left -= Math.min(now - last, 0.2)
    last = now
  }
}
