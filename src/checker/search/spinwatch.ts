import { CHANGED, WRITES } from '../machine/eventlog.ts'
import type { Machine } from '../machine/machine.ts'
import { RUNNABLE, SPINNING } from '../machine/threadstates.ts'
import { COMPARE_EXCHANGE } from '../machine/operations.ts'
import { pending } from '../machine/pending.ts'

/**
 * Stops a thread after a turn of a loop that only read and left the thread unchanged: such a turn can only be
 * repeated until a value that it read changes.
 *
 * When the value changes, an exhaustive search keeps the thread stopped. The turn had no effect, so each
 * continuation of this execution also exists without that turn. That execution is explored, because the read
 * and the change are a race. So this execution is `redundant`. Other explorers let the thread go on.
 *
 * A turn that changed private state of the thread (a counter, a new object) is different: each turn makes a
 * different execution, and their number has no limit. A thread that took `turns` such turns in a row, without
 * a write to shared memory, rests. The others run first, until a value that it read has changed, or no other
 * thread can move. So each execution ends that ends under fair scheduling (Musuvathi and Qadeer). Longer
 * executions are not explored, and the search reports that (`rested`).
 */
export class SpinWatch {
  /** Whether any thread is stopped. */
  any = false
  /** Set for an exhaustive search. */
  stopsForGood = false
  /** A value that a stopped thread read has changed. */
  redundant = false
  /** A thread rested while others could move: it could have gone on. */
  rested = false
  /** Only resting threads were left: from now on no thread rests. */
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
   * The thread begins another turn of a loop. The last turn, from its step `spunFrom` on, changed nothing.
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
   * The thread begins another turn, and has reached the limit of turns that change nothing shared. The last
   * turn began at its step `idleFrom`.
   */
  rest(thread: number): void {
    const { machine } = this
    const idleFrom = pending.idleFrom[thread]
    pending.idleFrom[thread] = -1
    if (machine.status[thread] !== RUNNABLE || this.restless) return
    const { read, stale } = this.readSince(thread, idleFrom, true)
    // A loop over many locations is not a loop that waits.
    if (stale || read.length === 0 || !this.repeats(thread, idleFrom)) {
      pending.idleEpoch[thread]++
      return
    }
    machine.setEnabled(thread, SPINNING)
    if (machine.enabled !== 0) this.rested = true
    this.any = true
    this.ranges.push(...read)
  }

  /** No thread can move, so a resting thread waits for nothing: resting threads go on. */
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

  rests(thread: number): boolean {
    return this.ranges.some(range => range.rests && range.thread === thread)
  }

  private wake(thread: number): void {
    pending.idleEpoch[thread]++
    this.machine.setEnabled(thread, RUNNABLE)
  }

  /** Drops the recorded reads of threads that go on. */
  private forget(): void {
    this.ranges = this.ranges.filter(({ thread }) => this.machine.status[thread] === SPINNING)
    this.any = this.ranges.length > 0
  }

  /** Whether the turn since step `from` of a thread touched the same cells as the turn before. */
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

  /** The cells that a thread has read since its step `from`, and whether one of them has changed since. */
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
        // A view that grows: the access also read its length.
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

  /** The event `at` changed memory. */
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
