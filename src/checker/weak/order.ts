/** A strict partial order of the numbers less than `size`. It is kept transitively closed. */
export class Order {
  readonly size: number
  private readonly words: number
  /** Row i: the set of the numbers that come after i. */
  private readonly after: Int32Array

  constructor(size: number, after?: Int32Array) {
    this.size = size
    this.words = (size + 31) >>> 5
    this.after = after ?? new Int32Array(size * this.words)
  }

  copy(): Order {
    return new Order(this.size, this.after.slice())
  }

  has(first: number, second: number): boolean {
    return ((this.after[first * this.words + (second >>> 5)] >>> (second & 31)) & 1) !== 0
  }

  /** Puts `first` before `second`. False when that makes a cycle; then the order is no longer usable. */
  add(first: number, second: number): boolean {
    if (first === second || this.has(second, first)) return false
    if (this.has(first, second)) return true
    const { words, after, size } = this
    for (let x = 0; x < size; x++) {
      if (x !== first && !this.has(x, first)) continue
      for (let word = 0; word < words; word++) after[x * words + word] |= after[second * words + word]
      after[x * words + (second >>> 5)] |= 1 << (second & 31)
    }
    return true
  }
}
