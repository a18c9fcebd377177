'use task'

/** A tight integer loop: xorshift, counting set low bits. */
export const size = 3_000_000
export const small = 1000

export function run(turns: number): number {
  let x = 0x12345678
  let count = 0
  for (let i = 0; i < turns; i++) {
    x ^= x << 13
    x ^= x >>> 17
    x ^= x << 5
    count = (count + (x & 7)) | 0
  }
  return count
}
