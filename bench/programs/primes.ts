/** The work of the server benches: how many primes there are below a limit, the slow way. */
export function countPrimes(limit: number): number {
  'use task'
  let count = 0
  for (let candidate = 2; candidate < limit; candidate++) {
    let isPrime = true
    for (let divisor = 2; divisor * divisor <= candidate; divisor++) {
      if (candidate % divisor === 0) {
        isPrime = false
        break
      }
    }
    if (isPrime) count++
  }
  return count
}

/** The same with the event loop let through by hand, as often as people do it. */
export async function countPrimesYielding(limit: number): Promise<number> {
  let count = 0
  for (let candidate = 2; candidate < limit; candidate++) {
    if (candidate % 1000 === 0) await new Promise(resolve => setImmediate(resolve))
    let isPrime = true
    for (let divisor = 2; divisor * divisor <= candidate; divisor++) {
      if (candidate % divisor === 0) {
        isPrime = false
        break
      }
    }
    if (isPrime) count++
  }
  return count
}
