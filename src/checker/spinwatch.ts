import { CHANGED, WRITES } from './eventlog.ts'
import type { Machine } from './machine.ts'
import { RUNNABLE, SPINNING } from './machine.ts'
import { pending } from './pending.ts'

/**
 * A turn of a loop that only read, and left its thread as it was, can only be repeated until something that it read
 * changes. So the thread is stopped after one such turn.
 *
 * What an exhaustive search does when it changes: nothing more. The turn had no effect, so everything that can
 * still happen in this execution also happens in one where the thread did not take that turn yet; such a one is
 * explored, because the read and the change are a race. The execution is `redundant` from here on.
 * Other explorers let the thread go on.
 */
export class SpinWatch {
  /** Whether a thread is stopped. */
  any = false
  /** Set for an exhaustive search. */
  stopsForGood = false
  /** Something that a stopped thread read has changed. */
  redundant = false
  private readonly machine: Machine
  private ranges: {
    readonly thread: number
    readonly from: number
    readonly to: number
    readonly at: number
  }[] = []

  constructor(machine: Machine) {
    this.machine = machine
  }

  clear(): void {
    this.any = false
    this.redundant = false
    if (this.ranges.length > 0) this.ranges = []
  }

  /** The thread begins another turn of a loop, and the last one, from its step `spunFrom` on, changed nothing. */
  cut(thread: number): void {
    const { machine } = this
    const { log } = machine
    const spunFrom = pending.spunFrom[thread]
    pending.spunFrom[thread] = -1
    if (machine.status[thread] !== RUNNABLE) return
    let first = log.length
    for (let at = log.length - 1; at >= 0; at--) {
      if (log.thread[at] !== thread) continue
      if (log.ordinal[at] <= spunFrom) break
      first = at
    }
    let stale = false
    const read: typeof this.ranges = []
    for (let at = first; at < log.length; at++) {
      if (log.thread[at] === thread) {
        if (log.to[at] > 0) read.push({ thread, from: log.from[at], to: log.to[at], at })
      } else if (
        (log.flags[at] & CHANGED) !== 0 &&
        read.some(range => this.writes(at, range.from, range.to))
      ) {
        stale = true
      }
    }
    if (read.length === 0) return
    if (stale) {
      if (!this.stopsForGood) return
      this.redundant = true
    }
    machine.setEnabled(thread, SPINNING)
    this.any = true
    this.ranges.push(...read)
  }

  /** Memory changed in the event `at`. */
  changed(at: number): void {
    let woken = false
    for (const { thread, from, to } of this.ranges) {
      if (!this.writes(at, from, to)) continue
      if (this.stopsForGood) {
        this.redundant = true
        return
      }
      this.machine.setEnabled(thread, RUNNABLE)
      woken = true
    }
    if (!woken) return
    this.ranges = this.ranges.filter(({ thread }) => this.machine.status[thread] === SPINNING)
    this.any = this.ranges.length > 0
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
