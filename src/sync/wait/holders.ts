import type { FutexContext } from '../../futex/core/context.ts'
import { findOwner } from '../../futex/core/owner.ts'

/**
 * Which owners have a share of an object that many can hold: readers, or holders of permits. A few shares
 * have the name of their holder, its TID; the others are only counted. A caller that wants a share and finds
 * none releases the shares of dead holders: after the recovery, a dead holder's TID has no owner. Async code
 * holds its shares under the name of its thread, and dies with it.
 *
 *   0        unnamed    shares without a name, because all slots were used
 *   1        strangers  not 0: an owner released a share that another had taken. Names are not reliable
 *                       then, and no name is used any more
 *   2 …      slots      the TID of the holder of one share, or 0
 *
 * The share is in the object's word, and its name here: two stores, in the order that never releases too
 * much.
 *
 *   holder                                     caller that wants a share
 *   ------                                     -------------------------
 *   (A) takes the share
 *   (B) writes its name
 *   …                                          (E) the name is that of a dead holder: removes the name
 *   (C) removes its name                       (F) releases that share
 *   (D) releases the share
 *
 * If the holder dies between (A) and (B), or (C) and (D), or the caller between (E) and (F), the share is
 * counted and has no name: it is lost. The other order would release a share that a living owner still holds.
 */
const UNNAMED = 0
const STRANGERS = 1
const SLOTS = 2

/** How many shares have names, a power of two. With the object's own words they fill one cache line. */
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

  /** False: owners release what others took, as for a signal. A plain read: it may be a little old. */
  get areReliable(): boolean {
    return this.i32[this.at + STRANGERS] === 0
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
   * (C) Removes the name of one of `tid`'s shares, or counts one unnamed share less. If `tid` has neither, it
   * releases a share that another holder took. That holder's name stays, for a share that no longer exists.
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
   * As `remove`, if it is a single step; else false. A holder with a name has its share, so the caller need
   * not check.
   */
  removeNamed(tid: number, shares: number): boolean {
    const first = this.at + SLOTS + (tid & SLOT_MASK)
    return shares === 1 && Atomics.compareExchange(this.i32, first, tid, 0) === tid
  }

  /**
   * (E) Removes the names of dead holders. Returns how many shares they had: the caller releases them, (F).
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

  /**
   * A name, from this slot on, that is not `except`; 0: no such name, or names are not reliable. A snapshot.
   */
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
 * The unnamed shares that this thread has taken, by object and holder. A task takes and releases a share on
 * one thread, so this tells its own share from that of another owner.
 */
const unnamed = new WeakMap<Int32Array, Map<number, Map<number, number>>>()

function remember(i32: Int32Array, at: number, tid: number, shares: number): void {
  let objects = unnamed.get(i32)
  if (objects === undefined) unnamed.set(i32, (objects = new Map()))
  let holders = objects.get(at)
  if (holders === undefined) objects.set(at, (holders = new Map()))
  holders.set(tid, (holders.get(tid) ?? 0) + shares)
}

/** Removes up to `shares`, and returns how many there were. */
function forget(i32: Int32Array, at: number, tid: number, shares: number): number {
  const objects = unnamed.get(i32)
  const holders = objects?.get(at)
  const known = holders?.get(tid) ?? 0
  const taken = Math.min(known, shares)
  if (taken < known) holders!.set(tid, known - taken)
  else if (holders?.delete(tid) && holders.size === 0) objects!.delete(at)
  return taken
}
