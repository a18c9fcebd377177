import { ACTIVE, BUCKET_WORDS, type HandoffLayout, LockEntry, SectionSlot, WaiterSlot } from './layout.ts'

/**
 * The hints as a policy reads them: of any TID, at any time, while other threads write them. Any hint may be
 * wrong.
 */
export class Hints {
  private readonly i32: Int32Array
  private readonly layout: HandoffLayout

  constructor(i32: Int32Array, layout: HandoffLayout) {
    this.i32 = i32
    this.layout = layout
  }

  /** Whether the TID has published that it waits for a lock. */
  waits(tid: number): boolean {
    const slot = this.waiterSlot(tid)
    return (
      Atomics.load(this.i32, slot + WaiterSlot.flags) === ACTIVE && this.i32[slot + WaiterSlot.tid] === tid
    )
  }

  /** The CPU that the holder of the lock was on, or -1. */
  ownersCpu(tid: number): number {
    return this.i32[this.waiterSlot(tid) + WaiterSlot.cpu]
  }

  /**
   * How long this TID will wait, in milliseconds: as long as it has waited up to `now`, and not less than
   * others have waited for this lock lately.
   */
  expectedMs(tid: number, now: number): number {
    const since = this.i32[this.waiterSlot(tid) + WaiterSlot.since]
    return Math.max(0, ((now * 1000 - since) | 0) / 1000, this.latelyMs(tid))
  }

  private latelyMs(tid: number): number {
    const { i32, layout } = this
    const tag = i32[this.waiterSlot(tid) + WaiterSlot.lock]
    const bucket = layout.locks + (tag & layout.lockMask) * BUCKET_WORDS
    for (let entry = bucket; entry < bucket + BUCKET_WORDS; entry += LockEntry.words) {
      if (i32[entry] === tag) return Math.max(0, i32[entry + LockEntry.expected]) / 1000
    }
    return 0
  }

  /** Whether the TID is inside a critical section. */
  isInside(tid: number): boolean {
    const slot = this.sectionSlot(tid)
    return this.i32[slot + SectionSlot.tid] === tid && this.i32[slot + SectionSlot.depth] > 0
  }

  /** Whether the TID has unlocked a lock that has waiters, and has not yielded since. Clears the mark. */
  takeGivesWay(tid: number): boolean {
    const slot = this.sectionSlot(tid)
    if (this.i32[slot + SectionSlot.tid] !== tid || this.i32[slot + SectionSlot.gives] === 0) return false
    this.i32[slot + SectionSlot.gives] = 0
    return true
  }

  private waiterSlot(tid: number): number {
    return this.layout.waiters + (tid & this.layout.tidMask) * WaiterSlot.words
  }

  private sectionSlot(tid: number): number {
    return this.layout.sections + (tid & this.layout.tidMask) * SectionSlot.words
  }
}
