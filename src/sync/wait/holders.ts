import type { FutexContext } from '../../futex/core/context.ts'
import { findOwner } from '../../futex/core/owner.ts'

/**
 * Which owners have a share of an object that many can hold: readers, or takers of permits. A few holders
 * have names; the shares of others are counted without one. A share whose holder died is given back by a
 * caller that wants one and finds none: its TID finds no owner once the death has been recovered from. Async
 * code holds its shares under the name of its thread, and dies with that.
 *
 *   0        unnamed    shares of holders without a name: there was no slot left
 *   1        strangers  not 0: a holder gave back a share that another had taken. Then names say nothing, and none is believed any more
 *   2 …      slots      the TID of the holder of one share, or 0
 *
 * The share is in the object's word, and its name here: two stores, in the order that never gives back too
 * much.
 *
 *   holder                                     who wants a share
 *   ------                                     -----------------
 *   (A) takes the share
 *   (B) puts its name
 *   …                                          (E) the name is that of a dead one: takes the name off
 *   (C) takes its name off                     (F) gives its shares back
 *   (D) gives the share back
 *
 * Dead between (A) and (B), or (C) and (D), or who wants one between (E) and (F): the share is counted and
 * has no name; it is lost, as all were before they had names. The other order would give back what a living
 * one still holds.
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

  /** (B) */
  add(tid: number, shares: number): void {
    const first = this.at + SLOTS + (tid & SLOT_MASK)
    if (shares === 1 && Atomics.compareExchange(this.i32, first, 0, tid) === 0) return
    let left = shares
    while (left > 0 && this.addOne(tid)) left--
    if (left === 0) return
    Atomics.add(this.i32, this.at + UNNAMED, left)
    remember(this.i32, this.at, tid, left)
  }

  /**
   * (C) Takes the name of one of `tid`'s shares off, or counts one share less that has no name. Who has
   * neither gives back what another holder took: the name of that one stays, and would stand for a share that
   * nobody has.
   */
  remove(tid: number, shares: number): void {
    if (this.removeNamed(tid, shares)) return
    let left = shares
    while (left > 0 && this.removeOne(tid)) left--
    if (left === 0) return
    const own = forget(this.i32, this.at, tid, left)
    if (own > 0) Atomics.sub(this.i32, this.at + UNNAMED, own)
    if (own < left) Atomics.store(this.i32, this.at + STRANGERS, 1)
  }

  /**
   * As `remove`, where that is one step: true. One that has a name has its share, so the caller need not ask.
   */
  removeNamed(tid: number, shares: number): boolean {
    const first = this.at + SLOTS + (tid & SLOT_MASK)
    return shares === 1 && Atomics.compareExchange(this.i32, first, tid, 0) === tid
  }

  /**
   * (E) Takes the names of the dead off. Returns how many shares they had: for the caller to give back, (F).
   */
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

  /** A name, from this slot on, that is not `except`; 0: there is none, or names say nothing. A snapshot. */
  nameFrom(slot: number, except: number): number {
    const { i32, at } = this
    if (Atomics.load(i32, at + STRANGERS) !== 0) return 0
    for (let turn = 0; turn < SLOT_COUNT; turn++) {
      const tid = Atomics.load(i32, at + SLOTS + ((slot + turn) & SLOT_MASK))
      if (tid !== 0 && tid !== except) return tid
    }
    return 0
  }

  /** Whether a share has this name. A snapshot. */
  has(tid: number): boolean {
    const { i32, at } = this
    for (let slot = 0; slot < SLOT_COUNT; slot++)
      if (Atomics.load(i32, at + SLOTS + slot) === tid) return true
    return false
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
}

/**
 * The shares without a name that this thread has taken, by object and holder. A task takes and gives back on
 * one thread, so this tells its own share from another's. It is asked only where there is no name.
 */
const unnamed = new WeakMap<Int32Array, Map<number, Map<number, number>>>()

function remember(i32: Int32Array, at: number, tid: number, shares: number): void {
  let objects = unnamed.get(i32)
  if (objects === undefined) unnamed.set(i32, (objects = new Map()))
  let holders = objects.get(at)
  if (holders === undefined) objects.set(at, (holders = new Map()))
  holders.set(tid, (holders.get(tid) ?? 0) + shares)
}

/** Takes up to `shares` off, and returns how many there were. */
function forget(i32: Int32Array, at: number, tid: number, shares: number): number {
  const objects = unnamed.get(i32)
  const holders = objects?.get(at)
  const known = holders?.get(tid) ?? 0
  const taken = Math.min(known, shares)
  if (taken < known) holders!.set(tid, known - taken)
  else if (holders?.delete(tid) && holders.size === 0) objects!.delete(at)
  return taken
}
