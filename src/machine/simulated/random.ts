/** A small, fast, seeded generator (xoshiro128**): the only source of randomness on a simulated machine. */
export class SeededRandom {
  private a: number
  private b: number
  private c: number
  private d: number

  constructor(seed: number) {
    if (!Number.isSafeInteger(seed)) {
      throw new RangeError(
        `seed: ${typeof seed === 'string' ? `'${seed}'` : String(seed)} is not an integer; give an integer as seed`,
      )
    }
    // splitmix32 over both halves of the seed, so that the sequences of seeds 1 and 2 are unrelated.
    let state = (seed | 0) ^ Math.imul(Math.floor(seed / 0x1_0000_0000) | 0, 0x9e37_79b9)
    const next = (): number => {
      state = (state + 0x9e37_79b9) | 0
      let z = state
      z = Math.imul(z ^ (z >>> 16), 0x85eb_ca6b)
      z = Math.imul(z ^ (z >>> 13), 0xc2b2_ae35)
      return z ^ (z >>> 16)
    }
    this.a = next()
    this.b = next()
    this.c = next()
    this.d = next() | 1
  }

  /** 32 random bits. */
  bits(): number {
    const product = Math.imul(this.b, 5)
    const result = Math.imul((product << 7) | (product >>> 25), 9)
    const t = this.b << 9
    this.c ^= this.a
    this.d ^= this.b
    this.b ^= this.c
    this.a ^= this.d
    this.c ^= t
    this.d = (this.d << 11) | (this.d >>> 21)
    return result >>> 0
  }

  /** An integer from 0 to `limit - 1`. */
  below(limit: number): number {
    return Math.floor((this.bits() / 0x1_0000_0000) * limit)
  }

  /** A float from 0 (included) to 1 (excluded). */
  unit(): number {
    return this.bits() / 0x1_0000_0000
  }
}
