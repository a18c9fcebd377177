/** Durations in nanoseconds, by powers of two. */
export class Histogram {
  readonly counts: number[] = []
  count = 0
  total = 0
  longest = 0

  add(duration: number): void {
    const bucket = duration < 1 ? 0 : Math.floor(Math.log2(duration))
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1
    this.count++
    this.total += duration
    if (duration > this.longest) this.longest = duration
  }

  get mean(): number {
    return this.count === 0 ? 0 : this.total / this.count
  }
}
