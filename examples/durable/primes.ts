'use task movable'
import { progress } from '../../src/durable/index.ts'

/** Counts the primes below `limit`, one after the other. Nothing here knows that it may be interrupted. */
export function countPrimes(limit: number): number {
  let count = 0
  for (let n = 2; n < limit; n++) {
    if (isPrime(n)) count++
    if (n % 1000 === 0) progress({ done: n, total: limit })
  }
  return count
}

function isPrime(n: number): boolean {
  for (let divisor = 2; divisor * divisor <= n; divisor++) if (n % divisor === 0) return false
  return true
}
