'use task'

/** Eratosthenes: strided writes to a byte array, then a count. */
export const size = 1_500_000
export const small = 2000

export function run(limit: number): number {
  const composite = new Uint8Array(limit)
  for (let n = 2; n * n < limit; n++) {
    if (composite[n] === 1) continue
    for (let multiple = n * n; multiple < limit; multiple += n) composite[multiple] = 1
  }
  let primes = 0
  for (let n = 2; n < limit; n++) if (composite[n] === 0) primes++
  return primes
}
