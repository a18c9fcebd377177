'use task'

/** Eratosthenes: strided writes to a byte array. */
export const size = 1_500_000

export function run(limit: number): number {
  const composite = new Uint8Array(limit)
  let primes = 0
  for (let n = 2; n < limit; n++) {
    if (composite[n] === 1) continue
    primes++
    for (let multiple = n * n; multiple < limit; multiple += n) composite[multiple] = 1
  }
  return primes
}
