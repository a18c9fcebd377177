'use task'

/** Recursion and nothing else. */
export const size = 29
export const small = 8

export function run(n: number): number {
  return n < 2 ? n : run(n - 1) + run(n - 2)
}
