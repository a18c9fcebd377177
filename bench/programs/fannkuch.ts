'use task'

/** Pancake flips over every permutation: small integer arrays, loops with breaks. */
export const size = 9
export const small = 5

export function run(n: number): number {
  const permutation = new Int32Array(n)
  const flipped = new Int32Array(n)
  const counts = new Int32Array(n)
  for (let i = 0; i < n; i++) permutation[i] = i
  let most = 0
  let checksum = 0
  let turn = 0
  let r = n
  for (;;) {
    while (r !== 1) {
      counts[r - 1] = r
      r--
    }
    for (let i = 0; i < n; i++) flipped[i] = permutation[i]!
    let flips = 0
    for (let first = flipped[0]!; first !== 0; first = flipped[0]!) {
      for (let low = 0, high = first; low < high; low++, high--) {
        const t = flipped[low]!
        flipped[low] = flipped[high]!
        flipped[high] = t
      }
      flips++
    }
    if (flips > most) most = flips
    checksum += turn % 2 === 0 ? flips : -flips
    turn++
    for (;;) {
      if (r === n) return checksum * 100 + most
      const first = permutation[0]!
      for (let i = 0; i < r; i++) permutation[i] = permutation[i + 1]!
      permutation[r] = first
      counts[r]!--
      if (counts[r]! > 0) break
      r++
    }
  }
}
