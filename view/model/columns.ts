/**
 * Growing columns of numbers, with the oldest rows dropped from the front: what a lane of the time line is made
 * of. Rows are numbered from `first`, and a number stays the same as long as its row is there.
 */
export class Columns {
  readonly times: Float64Array[] = []
  readonly words: Uint32Array[] = []
  private readonly timeColumns: number
  private readonly wordColumns: number
  private capacity = 16
  /** Rows in the arrays, from 0. */
  length = 0
  /** Rows that were dropped. */
  dropped = 0

  constructor(timeColumns: number, wordColumns: number) {
    this.timeColumns = timeColumns
    this.wordColumns = wordColumns
    for (let at = 0; at < timeColumns; at++) this.times.push(new Float64Array(this.capacity))
    for (let at = 0; at < wordColumns; at++) this.words.push(new Uint32Array(this.capacity))
  }

  /** Makes room for one more row, and returns its index. */
  push(): number {
    if (this.length === this.capacity) this.resize(this.capacity * 2)
    return this.length++
  }

  /** Drops the first rows. */
  drop(count: number): void {
    for (let at = 0; at < this.timeColumns; at++) this.times[at].copyWithin(0, count, this.length)
    for (let at = 0; at < this.wordColumns; at++) this.words[at].copyWithin(0, count, this.length)
    this.length -= count
    this.dropped += count
  }

  private resize(capacity: number): void {
    this.capacity = capacity
    for (let at = 0; at < this.timeColumns; at++) {
      const grown = new Float64Array(capacity)
      grown.set(this.times[at])
      this.times[at] = grown
    }
    for (let at = 0; at < this.wordColumns; at++) {
      const grown = new Uint32Array(capacity)
      grown.set(this.words[at])
      this.words[at] = grown
    }
  }
}

/** The first row of a sorted column whose value is more than `value`; `length` if there is none. */
export function upperBound(column: Float64Array, length: number, value: number): number {
  let low = 0
  let high = length
  while (low < high) {
    const middle = (low + high) >> 1
    if (column[middle] <= value) low = middle + 1
    else high = middle
  }
  return low
}
