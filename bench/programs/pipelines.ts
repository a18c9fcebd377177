'use task'

/** Array methods with small callbacks, one after the other. */
export const size = 100_000
export const small = 200

export function run(count: number): number {
  return Array.from({ length: count }, (_, i) => (i * 7919) % 1009)
    .map(x => x * 2 + 1)
    .filter(x => x % 3 !== 0)
    .map(x => ({ x, square: (x * x) % 1009 }))
    .filter(({ square }) => square > 100)
    .reduce((sum, { x, square }) => (sum + x * square) | 0, 0)
}
