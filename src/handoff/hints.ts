import { ACTIVE, type HandoffLayout, SectionSlot, WaiterSlot } from './layout.ts'

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
