/** What the report desk does. Ordinary functions; the one that takes long says so, and can be interrupted. */

export interface Sale {
  readonly product: number
  readonly day: number
  readonly cents: number
}

/**
 * A long report: every sale of a year, made up from a seed, added up by product and day, `years` times over.
 */
export function report(seed: number, years: number): { readonly best: number; readonly total: number } {
  'use task'
  const byProduct = new Float64Array(64)
  let state = seed
  let total = 0
  for (let year = 0; year < years; year++) {
    for (let day = 0; day < 365; day++) {
      for (let sale = 0; sale < 200; sale++) {
        // A small random number generator (xorshift32): the data of an example has to come from somewhere.
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

/** A short request: what a cart costs, and when that was known (for the account). */
export function price(cart: readonly number[]): { readonly cents: number; readonly at: number } {
  let cents = 0
  for (const product of cart) cents += 199 + ((product * 7919) % 3000)
  return { cents, at: performance.timeOrigin + performance.now() }
}

/** As small as work gets. */
export function add(a: number, b: number): number {
  return a + b
}
