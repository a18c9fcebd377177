import { progress } from '../../src/coroutine/index.ts'

/** Ordinary functions: no yield, no await, no callbacks. Only the directive makes them preemptible. */
export function countPrimes(below: number): number {
  'use task'
  let count = 0
  for (let candidate = 2; candidate < below; candidate++) {
    if (isPrime(candidate)) count++
    if (candidate % 1000 === 0) progress(candidate / below)
  }
  return count
}

function isPrime(candidate: number): boolean {
  'use task'
  for (let divisor = 2; divisor * divisor <= candidate; divisor++) {
    if (candidate % divisor === 0) return false
  }
  return true
}
