/** Computes for about so long. */
export function job(ms: number): number {
  'use task'
  const end = performance.now() + ms
  let turns = 0
  while (performance.now() < end) turns++
  return turns
}
