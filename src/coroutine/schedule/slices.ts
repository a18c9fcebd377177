import type { Region } from '../../arena/memory/arena.ts'
import { CpuRecord } from '../../machine/core/cpurecord.ts'
import { armSlice, disarmSlice } from '../../machine/timekeeper/timekeeper.ts'

/**
 * Where a slice's end comes from. Three kinds: a timekeeper thread that raises a shared word; the clock, read
 * at safepoints, where there is no second thread; and virtual time (virtualtime.ts).
 */
export interface Slices {
  /** The word that safepoints check. */
  readonly view: Int32Array
  readonly index: number
  /** A slice begins, at `now`, and is over at `end`. Preemption is off. */
  begin(now: number, end: number): void
  /** A safepoint found the word up: is the slice over? If not, the word is lowered or means nothing. */
  isOver(): boolean
  /** Makes the next safepoint check, whether or not the slice is over. */
  ask(): void
  /** No coroutine runs: no slice is running either. */
  end(): void
}

/** How often, in parts of the slice, the clock should be read; but not more often than `APART_MS`. */
const LOOKS_PER_SLICE = 100
const APART_MS = 0.03
/**
 * At most so many safepoints between two checks: it bounds the overrun when safepoints suddenly become rare.
 */
const STRIDE_MAX = 256

/**
 * Without a second thread the word is up for the whole slice, and safepoints read the clock. Not all of them:
 * a read costs as much as some dozens of safepoints. So the distance between reads doubles while they are too
 * frequent, and starts from one again in each slice.
 */
export class ClockSlices implements Slices {
  readonly view: Int32Array = Int32Array.of(1)
  readonly index = 0
  readonly #now: () => number
  #begun = 0
  #end = 0
  #looked = 0
  #stride = 1
  #left = 1

  constructor(now: () => number) {
    this.#now = now
  }

  begin(now: number, end: number): void {
    this.#begun = now
    this.#looked = now
    this.#end = end
    this.#stride = 1
    this.#left = 1
  }

  isOver(): boolean {
    if (--this.#left > 0) return false
    const now = this.#now()
    if (now >= this.#end) {
      this.#left = 1
      return true
    }
    const aim = Math.max((this.#end - this.#begun) / LOOKS_PER_SLICE, APART_MS)
    const since = now - this.#looked
    if (since > aim) this.#stride = 1
    else if (since < aim / 2 && this.#stride < STRIDE_MAX) this.#stride *= 2
    this.#looked = now
    this.#left = this.#stride
    return false
  }

  ask(): void {
    this.#left = 1
  }

  end(): void {
    this.#end = Infinity
  }
}

/**
 * The timekeeper thread raises the word. Its tick may arrive late: after the slice that it was for.
 *
 *   schedule                                   timekeeper
 *   --------                                   ----------
 *                                              (T1) compare-exchange sliceEnd: armed -> 0
 *   (A) lowers the word
 *   (B) arms the next slice
 *                                              (T2) raises the word: a tick for the slice before
 *   safepoint: the word is up
 *   (C) lowers the word
 *   (D) sliceEnd is armed: this slice is not over
 *
 * (T1) comes before (T2), so an armed slice has not had its tick yet: a tick that arrives while the slice is
 * armed is stale, and is dropped. (C) must come before (D): otherwise (T1) and (T2) of the running slice
 * could both happen in between, and its only tick would be lost. (A) must come before (B) for the same
 * reason.
 */
export class ThreadSlices implements Slices {
  readonly view: Int32Array
  readonly index: number
  readonly #machine: Region
  readonly #cpu: number
  readonly #shift: number

  /**
   * `cpu` is the pointer of a CPU record in `machine`: the one that the timekeeper watches for this thread.
   * `shift` is how far the timekeeper's clock is ahead of the clock of `begin`.
   */
  constructor(i32: Int32Array, machine: Region, cpu: number, shift = 0) {
    this.view = i32
    this.index = cpu + CpuRecord.needResched
    this.#machine = machine
    this.#cpu = cpu
    this.#shift = shift
  }

  begin(_now: number, end: number): void {
    Atomics.store(this.view, this.index, 0) // (A)
    armSlice(this.view, this.#machine, this.#cpu, end + this.#shift) // (B)
  }

  isOver(): boolean {
    Atomics.store(this.view, this.index, 0) // (C)
    return Atomics.load(this.view, this.#cpu + CpuRecord.sliceEnd) === 0 // (D)
  }

  ask(): void {
    Atomics.store(this.view, this.index, 1)
  }

  end(): void {
    disarmSlice(this.view, this.#cpu)
  }
}
