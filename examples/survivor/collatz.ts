'use task movable'

/** The number below `limit` whose Collatz sequence is the longest, and the length of that sequence. */
export function longestCollatz(limit: number): { readonly start: number; readonly length: number } {
  let best = { start: 1, length: 1 }
  for (let start = 1; start < limit; start++) {
    const length = collatzLength(start)
    if (length > best.length) best = { start, length }
  }
  return best
}

function collatzLength(start: number): number {
  let length = 1
  for (let n = start; n !== 1; n = n % 2 === 0 ? n / 2 : 3 * n + 1) length++
  return length
}

/** Ends the worker thread that runs it, in the middle of everything. */
export function killCpu(): never {
  process.exit(1)
}
