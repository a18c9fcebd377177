import type { FutexContext } from '../futex/context.ts'
import { findOwner } from '../futex/owner.ts'

/**
 * Who has a share of an object that many can hold: readers, or takers of permits. A few holders have names; the shares of others are counted as nobody's. A share
 * whose holder died is given back by whoever wants one and finds none: its TID is nobody's once the death has been recovered from.
 *
 *   0        unnamed    shares of holders without a name: there was no slot left, or async code holds them
 *   1        strangers  not 0: a share was given back that nobody with a name, and nobody without, had. Then names say nothing, and none is believed any more
 *   2 …      slots      the TID of the holder of one share, or 0
 *
 * The share is in the object's word, and its name here: two stores, in the order that never gives back too much.
 *
 *   holder                                     who wants a share
 *   ------                                     -----------------
 *   (A) takes the share
 *   (B) puts its name
 *   …                                          (E) the name is that of a dead one: takes the name off
 *   (C) takes its name off                     (F) gives its shares back
 *   (D) gives the share back
 *
 * Dead between (A) and (B), or (C) and (D), or who wants one between (E) and (F): the share is counted and has no name; it is lost, as all were before they had names.
 * The other order would give back what a living one still holds.
 */
const UNNAMED = 0
const STRANGERS = 1
const SLOTS = 2

/** Shares that have names, a power of two. With the place before them, one cache line. */
const SLOT_COUNT = 8
const SLOT_MASK: number = SLOT_COUNT - 1

export const HOLDER_WORDS: number = SLOTS + SLOT_COUNT

export class Holders {
  private readonly i32: Int32Array
  private readonly at: number

  /** `at`: its first word. */
  constructor(i32: Int32Array, at: number) {
    this.i32 = i32
    this.at = at
  }

  /** (B) `tid` 0: async code, which has no name that lasts. */
  add(tid: number, shares: number): void {
    if (
      shares === 1 &&
      tid !== 0 &&
      Atomics.compareExchange(this.i32, this.at + SLOTS + (tid & SLOT_MASK), 0, tid) === 0
    )
      return
    for (let share = 0; share < shares; share++) {
      if (tid === 0 || !this.addOne(tid)) Atomics.add(this.i32, this.at + UNNAMED, 1)
    }
  }

  /** (C) */
  remove(tid: number, shares: number): void {
    const first = this.at + SLOTS + (tid & SLOT_MASK)
    if (shares === 1 && Atomics.load(this.i32, first) === tid) {
      Atomics.store(this.i32, first, 0)
      return
    }
    for (let share = 0; share < shares; share++) if (!this.removeOne(tid)) this.removeUnnamed()
  }

  /** (E) Takes the names of the dead off. Returns how many shares they had: for the caller to give back, (F). */
  takeDead(context: FutexContext): number {
    const { i32, at } = this
    let shares = 0
    for (let slot = at + SLOTS; slot < at + HOLDER_WORDS; slot++) {
      const tid = Atomics.load(i32, slot)
      if (tid === 0 || findOwner(context, tid) !== 0) continue
      if (Atomics.compareExchange(i32, slot, tid, 0) === tid) shares++
    }
    return Atomics.load(i32, at + STRANGERS) === 0 ? shares : 0
  }

  private addOne(tid: number): boolean {
    const { i32, at } = this
    for (let turn = 0; turn < SLOT_COUNT; turn++) {
      const slot = at + SLOTS + ((tid + turn) & SLOT_MASK)
      if (Atomics.load(i32, slot) === 0 && Atomics.compareExchange(i32, slot, 0, tid) === 0) return true
    }
    return false
  }

  private removeOne(tid: number): boolean {
    const { i32, at } = this
    for (let turn = 0; turn < SLOT_COUNT; turn++) {
      const slot = at + SLOTS + ((tid + turn) & SLOT_MASK)
      if (Atomics.load(i32, slot) !== tid) continue
      Atomics.store(i32, slot, 0)
      return true
    }
    return false
  }

  private removeUnnamed(): void {
    const { i32, at } = this
    if (Atomics.sub(i32, at + UNNAMED, 1) > 0) return
    Atomics.add(i32, at + UNNAMED, 1)
    Atomics.store(i32, at + STRANGERS, 1)
  }
}
