import { CHANGED, WRITES } from '../machine/eventlog.ts'
import type { Machine } from '../machine/machine.ts'
import { RUNNABLE, SPINNING } from '../machine/threadstates.ts'
import { COMPARE_EXCHANGE } from '../machine/operations.ts'
import { pending } from '../machine/pending.ts'

/**
 * A turn of a loop that only read, and left its thread as it was, can only be repeated until something that
 * it read changes. So the thread is stopped after one such turn.
 *
 * What an exhaustive search does when it changes: nothing more. The turn had no effect, so everything that
 * can still happen in this execution also happens in one where the thread did not take that turn yet; such a
 * one is explored, because the read and the change are a race. The execution is `redundant` from here on.
 * Other explorers let the thread go on.
 *
 * A turn that changed something of the thread's own (it counts, it makes an object) is another matter: each
 * is an execution of its own, and there is no end to them. A thread that took `turns` of them in a row, in
 * which it wrote nothing shared, rests: the others come first, until something that it read has changed, or
 * none of them is left. So every execution ends that ends when threads get their turns (Musuvathi and
 * Qadeer's fair scheduling); what lies beyond is not explored, and the search says so (`rested`).
 */
export class SpinWatch {
  /** Whether a thread is stopped. */
  any = false
  /** Set for an exhaustive search. */
  stopsForGood = false
  /** Something that a stopped thread read has changed. */
  redundant = false
  /** A thread rested while others could move: it might have gone on. */
  rested = false
  /** None but threads at rest was left: from here on no thread rests. */
  private restless = false
  private readonly machine: Machine
  private ranges: {
    readonly thread: number
    readonly from: number
    readonly to: number
    readonly at: number
    readonly rests: boolean
  }[] = []

  constructor(machine: Machine) {
    this.machine = machine
  }

  clear(): void {
    this.any = false
    this.redundant = false
    this.rested = false
    this.restless = false
    if (this.ranges.length > 0) this.ranges = []
  }

  /**
   * The thread begins another turn of a loop, and the last one, from its step `spunFrom` on, changed nothing.
   */
  cut(thread: number): void {
    const { machine } = this
    const spunFrom = pending.spunFrom[thread]
    pending.spunFrom[thread] = -1
    pending.idleFrom[thread] = -1
    if (machine.status[thread] !== RUNNABLE) return
    const { read, stale } = this.readSince(thread, spunFrom, false)
    if (read.length === 0) return
    if (stale) {
      if (!this.stopsForGood) return
      this.redundant = true
    }
    machine.setEnabled(thread, SPINNING)
    this.any = true
    this.ranges.push(...read)
  }

  /**
   * The thread begins another turn, and has taken as many as it may that changed nothing shared; the last
   * from its step `idleFrom` on.
   */
  rest(thread: number): void {
    const { machine } = this
    const idleFrom = pending.idleFrom[thread]
    pending.idleFrom[thread] = -1
    if (machine.status[thread] !== RUNNABLE || this.restless) return
    const { read, stale } = this.readSince(thread, idleFrom, true)
    // A loop over many places is not one that waits.
    if (stale || read.length === 0 || !this.repeats(thread, idleFrom)) {
      pending.idleEpoch[thread]++
      return
    }
    machine.setEnabled(thread, SPINNING)
    if (machine.enabled !== 0) this.rested = true
    this.any = true
    this.ranges.push(...read)
  }

  /** No thread can move. Those at rest wait for nothing then: they go on. */
  allRest(): void {
    let woken = false
    for (const { thread, rests } of this.ranges) {
      if (!rests || this.machine.status[thread] !== SPINNING) continue
      this.wake(thread)
      woken = true
    }
    if (!woken) return
    this.restless = true
    this.forget()
  }

  /** Whether a thread is at rest. */
  rests(thread: number): boolean {
    return this.ranges.some(range => range.rests && range.thread === thread)
  }

  private wake(thread: number): void {
    pending.idleEpoch[thread]++
    this.machine.setEnabled(thread, RUNNABLE)
  }

  /** Drops what threads that go on have read. */
  private forget(): void {
    this.ranges = this.ranges.filter(({ thread }) => this.machine.status[thread] === SPINNING)
    this.any = this.ranges.length > 0
  }

  /** Whether the turn since step `from` of a thread touched what the turn before it did. */
  private repeats(thread: number, from: number): boolean {
    const { log } = this.machine
    const turn: number[] = []
    let before = 0
    for (let at = log.length - 1; at >= 0; at--) {
      if (log.thread[at] !== thread) continue
      if (log.ordinal[at] > from) turn.push(at)
      else if (before < turn.length) {
        const other = turn[before++]
        if (
          log.from[at] !== log.from[other] ||
          log.to[at] !== log.to[other] ||
          log.site[at] !== log.site[other]
        )
          return false
      } else break
    }
    return before === turn.length
  }

  /** What a thread has read since its step `from`, and whether any of it has changed since. */
  private readSince(
    thread: number,
    from: number,
    rests: boolean,
  ): { read: SpinWatch['ranges']; stale: boolean } {
    const { log } = this.machine
    let first = log.length
    for (let at = log.length - 1; at >= 0; at--) {
      if (log.thread[at] !== thread) continue
      if (log.ordinal[at] <= from) break
      first = at
    }
    let stale = false
    const read: SpinWatch['ranges'] = []
    for (let at = first; at < log.length; at++) {
      if (log.thread[at] === thread) {
        if (log.to[at] > 0) read.push({ thread, from: log.from[at], to: log.to[at], at, rests })
        // A view that grows: its length was read too.
        if (log.to2[at] > 0 && log.kind[at] <= COMPARE_EXCHANGE)
          read.push({ thread, from: log.from2[at], to: log.to2[at], at, rests })
      } else if (
        (log.flags[at] & CHANGED) !== 0 &&
        read.some(range => this.writes(at, range.from, range.to))
      ) {
        stale = true
      }
    }
    return { read, stale }
  }

  /** Memory changed in the event `at`. */
  changed(at: number): void {
    let woken = false
    for (const { thread, from, to, rests } of this.ranges) {
      if (!this.writes(at, from, to)) continue
      if (this.stopsForGood && !rests) {
        this.redundant = true
        continue
      }
      this.wake(thread)
      woken = true
    }
    if (woken) this.forget()
  }

  /** The events of a stopped thread's last turn. */
  turnOf(thread: number): number[] {
    return this.ranges.filter(range => range.thread === thread).map(range => range.at)
  }

  private writes(at: number, from: number, to: number): boolean {
    const { log } = this.machine
    return (log.flags[at] & WRITES) !== 0 && log.from[at] < to && from < log.to[at]
  }
}
