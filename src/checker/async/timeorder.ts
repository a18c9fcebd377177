/**
 * The orders of events that virtual time allows, without deciding the time of any event.
 *
 * An outside operation takes any time, a timer exactly its delay. So the time of an event is an unknown T:
 *
 *     event                               constraint on its time
 *     -----                               ----------------------
 *     k comes after k - 1                 T(k - 1) ≤ T(k)
 *     a timer of d ms, made in event c    T(k) = T(c) + d
 *     an immediate, made in event c       T(k) ≤ T(c) + 1
 *     a timer that is still pending       T(k) ≤ T(c) + d
 *
 * An event may be next if and only if these constraints have a solution. They are differences, so the matrix
 * `most[a][b]`, the largest T(b) - T(a) that they allow, is enough. It is kept closed (no path is shorter
 * than its edge), so events that nothing refers to can be removed.
 */
export class TimeOrder {
  /**
   * The events that something refers to. The first is the set-up, at time 0; the last is the running event.
   */
  private moments: Moment[] = [new Moment(0)]
  private most: number[][] = [[0]]

  /** The running event. */
  get now(): Moment {
    return this.moments[this.moments.length - 1]
  }

  /** Whether an event that is due `delay` after `from` may happen before all of these. */
  mayPrecede(from: Moment, delay: number, others: readonly Due[]): boolean {
    const row = this.most[from.at]
    // Each of the others gives one bound on T(from): together they have a solution if each has one.
    return others.every(other => row[other.from.at] + other.delay - delay >= 0)
  }

  /** An event with an exact time happens. `others` stay pending; `mayPrecede` has allowed it. */
  happenAt(from: Moment, delay: number, others: readonly Due[]): void {
    const { most } = this
    const size = most.length
    for (const other of others) {
      const bound = other.delay - delay
      for (let a = 0; a < size; a++) {
        const through = most[a][other.from.at] + bound
        for (let b = 0; b < size; b++) {
          const length = through + most[from.at][b]
          if (length < most[a][b]) most[a][b] = length
        }
      }
    }
    this.add(
      most.map(row => row[from.at] + delay),
      most[from.at].map(length => length - delay),
    )
  }

  /**
   * An event happens of which at most the latest time is known. `bounds` are the pending events, including
   * itself if it has a bound.
   */
  happen(bounds: readonly Due[]): void {
    const { most } = this
    const upper = most.map(row => {
      let least = Number.POSITIVE_INFINITY
      for (const { from, delay } of bounds) least = Math.min(least, row[from.at] + delay)
      return least
    })
    this.add(upper, [...most[this.now.at]])
  }

  /**
   * Reads the clock: the earliest time that the running event can have. From this call on that is its time.
   */
  read(): { time: number; exact: boolean } {
    const { most } = this
    const { at } = this.now
    const time = -most[at][0]
    const exact = most[0][at] <= time
    if (exact) return { time, exact }
    for (let a = 0; a < most.length; a++) {
      for (let b = 0; b < most.length; b++) {
        most[a][b] = Math.min(most[a][b], most[a][0] + time + most[at][b])
      }
    }
    return { time, exact }
  }

  private add(upper: readonly number[], lower: readonly number[]): void {
    const { most, moments } = this
    const moment = new Moment(most.length)
    most.forEach((row, a) => row.push(upper[a]))
    most.push([...lower, 0])
    moments.push(moment)
    this.forget()
  }

  /** Removes events that no pending event refers to; `most` already contains their constraints. */
  private forget(): void {
    const last = this.moments.length - 1
    const kept = this.moments.filter((moment, at) => at === 0 || at === last || moment.uses > 0)
    if (kept.length === this.moments.length) return
    this.most = kept.map(({ at: a }) => kept.map(({ at: b }) => this.most[a][b]))
    kept.forEach((moment, at) => {
      moment.at = at
    })
    this.moments = kept
  }
}

/** An event as `TimeOrder` knows it. */
class Moment {
  /** Its row in `most`. */
  at: number
  /** How many pending events are due relative to it. */
  uses = 0

  constructor(at: number) {
    this.at = at
  }
}

/** An event that is due `delay` ms after another one, or not later than that. */
export interface Due {
  readonly from: Moment
  readonly delay: number
}
