/** The tasks of the live page. */

/** Computes for about `ms` milliseconds of its own CPU time: `rounds` is measured on the page's machine. */
export function hog(rounds: number): number {
  'use task'
  let x = 1
  for (let i = 0; i < rounds; i++) x = (Math.imul(x, 1664525) + 1013904223) | 0
  return x
}

export function short(): number {
  'use task'
  return hog(1000)
}
