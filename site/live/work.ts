/** The tasks of the live page. */

/** Computes. A tick preempts it at the next safepoint of its loop. */
export function hog(rounds: number): number {
  'use task'
  let x = 1
  for (let i = 0; i < rounds; i++) x = (Math.imul(x, 1664525) + 1013904223) | 0
  return x
}

/** The same without the directive: it has no safepoints, and keeps its CPU until it ends. */
export function plainHog(rounds: number): number {
  let x = 1
  for (let i = 0; i < rounds; i++) x = (Math.imul(x, 1664525) + 1013904223) | 0
  return x
}

export function short(): number {
  'use task'
  return hog(1000)
}
