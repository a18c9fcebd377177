/** A small pseudo-random number generator (mulberry32): one seed gives one schedule on every platform. */
export class Random {
  private state: number

  constructor(seed: number) {
    this.state = seed >>> 0
  }

  /** An integer from 0 to `bound` - 1. */
  below(bound: number): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0
    let x = this.state
    x = Math.imul(x ^ (x >>> 15), x | 1)
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61)
    return Math.floor((((x ^ (x >>> 14)) >>> 0) / 4294967296) * bound)
  }
}

/** The n-th thread of a mask, counted from the lowest. */
export function nthThread(mask: number, n: number): number {
  let rest = mask
  for (let i = 0; i < n; i++) rest &= rest - 1
  return 31 - Math.clz32(rest & -rest)
}

export function countThreads(mask: number): number {
  let count = 0
  for (let rest = mask; rest !== 0; rest &= rest - 1) count++
  return count
}
