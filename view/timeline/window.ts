const SPAN_MIN = 200
const SPAN_MAX = 3600e9
const FIRST_SPAN = 500e6

/** The part of the time line that is shown, in nanoseconds. */
export class TimeWindow {
  from = 0
  span: number = FIRST_SPAN
  /** The right edge follows the newest events. */
  isFollowing = true

  get to(): number {
    return this.from + this.span
  }

  follow(until: number): void {
    if (this.isFollowing) this.from = Math.max(0, until - this.span)
  }

  /** Zooms by a factor; the time at `share` of the width, 0 to 1, stays where it is. */
  zoom(factor: number, share: number): void {
    const at = this.from + this.span * share
    this.span = Math.min(SPAN_MAX, Math.max(SPAN_MIN, this.span * factor))
    this.from = at - this.span * share
  }

  /** Moves by a share of its width. Following ends. */
  pan(share: number): void {
    this.isFollowing = false
    this.from += this.span * share
  }

  show(from: number, to: number): void {
    this.isFollowing = false
    this.span = Math.min(SPAN_MAX, Math.max(SPAN_MIN, to - from))
    this.from = from
  }

  /** Keeps some of the trace in sight. */
  clamp(first: number, last: number): void {
    if (!Number.isFinite(first)) return
    const slack = this.span * 0.9
    this.from = Math.min(Math.max(this.from, first - slack), Math.max(first, last - this.span + slack))
  }
}
