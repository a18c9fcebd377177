/** The work of the report desk: ordinary functions. The long one is marked, so it can be preempted. */

export interface Sale {
  readonly product: number
  readonly day: number
  readonly cents: number
}

/**
 * A long report: generates the sales of a year from a seed and adds them up by product and day, `years`
 * times.
 */
export function report(seed: number, years: number): { readonly best: number; readonly total: number } {
  'use task'
  const byProduct = new Float64Array(64)
  let state = seed
  let total = 0
  for (let year = 0; year < years; year++) {
    for (let day = 0; day < 365; day++) {
      for (let sale = 0; sale < 200; sale++) {
        // A small random number generator (xorshift32) for the data of the example.
        state ^= state << 13
        state ^= state >>> 17
        state ^= state << 5
        const cents = (state >>> 0) % 10_000
        byProduct[(state >>> 8) & 63] += cents
        total += cents
      }
    }
  }
  let best = 0
  for (let product = 1; product < 64; product++) if (byProduct[product] > byProduct[best]) best = product
  return { best, total }
}

/** A short request: the price of a cart, and the time of the answer (for the figures). */
export function price(cart: readonly number[]): { readonly cents: number; readonly at: number } {
  let cents = 0
  for (const product of cart) cents += 199 + ((product * 7919) % 3000)
  return { cents, at: performance.timeOrigin + performance.now() }
}

/** The smallest possible work. */
export function add(a: number, b: number): number {
  return a + b
}
