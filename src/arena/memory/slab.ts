import { type ArenaPlan, ArenaFullError } from './arena.ts'
import { assert, fail } from '../assert.ts'
import { LINE_WORDS, roundUp } from './record.ts'
import type { KernelThread } from '../sync/thread.ts'

/**
 * A slab: `capacity` slots of one record type, allocated and freed in O(1) from any thread, without a lock,
 * so that a thread can die at any instruction and leave nothing to break.
 *
 * Two structures, and only the first is the truth:
 *
 *   header of a slot   (generation << 8) | owner.  owner 0: free.  1 to 254: allocated by thread owner - 1,
 *                      not yet published.  255: published. A claim is one compare-exchange here, a free one
 *                      `and`.
 *   bitmap tree        1 = "taken", a hint. A leaf word covers 32 slots, each higher word 32 words. Zeroed
 *                      memory means "all free", so an untouched slab costs no pages.
 *
 *   bit    | header    | state                                          | corrected by
 *   -------+-----------+------------------------------------------------+-----------------------------------
 *   clear  | free      | [1] free                                       |
 *   clear  | allocated | [2] claimed by a thread that had the slot in   | the next thread that takes the leaf
 *          |           |     its stock, while another cleared the bit   | into its stock sets it
 *   set    | allocated | [3] allocated                                  |
 *   set    | free      | [4] in the stock of a thread, or of a dead one | its thread; sweep()
 *
 * The stock: each thread has a leaf, of which it sets all clear bits by one `or`. It claims those slots one
 * after the other, without another access to the bitmap. A slot of that leaf that it frees goes back to the
 * stock. Slots of another leaf that it frees are collected, and their bits are cleared by one `and` when it
 * frees a slot of a third leaf; or they become the next stock. The stock is in the thread's own heap, and no
 * right to the slots: a thread that finds no clear bit clears the bits of all free slots, and so takes slots
 * from the stocks of others.
 *
 *   thread with the stock                   thread that finds no clear bit
 *   ---------------------                   ------------------------------
 *   (F) or: sets the bit of a free slot
 *                                           (G) sweep: the header is free, clears the bit
 *                                           (F) sets the bit; claims the slot
 *   (H) claim: the header is taken,
 *       tries the next slot of its stock
 *
 * When a thread dies, its stock is bits over free slots, [4], and recovery sweeps them.
 *
 * A generation counts the lives of a slot. A handle carries it, so a handle to a freed slot is found to be
 * stale even when the slot is in use again.
 *
 * From its allocation until it is reachable from a queue or a table, a record belongs to the thread that made
 * it; `publish` ends that. When a thread dies, `reclaim` frees what it had not published.
 */
export interface SlabOptions {
  /** For messages: "tasks". */
  readonly name: string
  readonly capacity: number
  /** Words of one record, without the header. */
  readonly words: number
  /** The boot option that raises the capacity, for the error when it is full. */
  readonly option: string
  /** Start every record on a cache line. */
  readonly lineAligned?: boolean
}

/** A pointer and a generation in one safe integer; survives being stored as a float64. */
export type Handle = number

const OWNER = 0xff
const PUBLISHED = 0xff
const GENERATION_SHIFT = 8
/** 20 bits, so that generation * 2^32 + pointer stays a safe integer. */
const GENERATION_MASK = 0xf_ffff
const POINTER_SPAN = 0x1_0000_0000
const FULL = -1

interface Level {
  readonly start: number
  readonly words: number
}

export class Slab {
  readonly name: string
  readonly capacity: number
  readonly option: string
  private readonly first: number
  private readonly stride: number
  private readonly levels: readonly Level[]
  /**
   * A word for each leaf: 1 from before a slot of it was first allocated. Scans skip leaves that were never
   * used.
   */
  private readonly touched: number
  /** The leaf of this thread's stock, and the slots of it in the stock, as bits. */
  private leaf = 0
  private stock = 0
  /** Slots of another leaf that this thread has freed, and whose bits are still set. */
  private freedLeaf = 0
  private freed = 0

  /** Reserves the slab in the plan. Called in the same order on every thread; each gets its own object. */
  constructor(plan: ArenaPlan, options: SlabOptions) {
    const { name, capacity, words, option, lineAligned = false } = options
    if (!Number.isInteger(capacity) || capacity < 1 || capacity > 1 << 24) {
      throw new RangeError(
        `${option}: ${capacity} is not a number of ${name}; give an integer from 1 to ${1 << 24}`,
      )
    }
    this.name = name
    this.capacity = capacity
    this.option = option
    const levels: Level[] = []
    let bits = capacity
    do {
      const count = Math.ceil(bits / 32)
      levels.push({ start: plan.reserve(`${name} bitmap ${levels.length}`, count).start, words: count })
      bits = count
    } while (bits > 1)
    this.levels = levels
    this.touched = plan.reserve(`${name} touched`, levels[0].words).start
    // The header stands in the word before the record, so that the record itself can start on a line.
    this.stride = lineAligned ? roundUp(words + 1, LINE_WORDS) : roundUp(words + 1, 2)
    const lead = lineAligned ? LINE_WORDS : 2
    this.first = plan.reserve(name, lead + this.stride * capacity).start + lead
  }

  /**
   * Marks the bits behind the last slot as taken. Called once, before any allocation, by the thread that made
   * the arena.
   */
  initialize(i32: Int32Array): void {
    let bits = this.capacity
    for (const { start, words } of this.levels) {
      const used = bits % 32
      if (used !== 0) i32[start + words - 1] = FULL << used
      bits = words
    }
  }

  /** The lowest pointer and the distance between records: for a scan of all slots. */
  pointerAt(index: number): number {
    return this.first + index * this.stride
  }

  /** The slot number of a pointer; asserts that it is one of this slab's. */
  indexOf(pointer: number): number {
    const index = (pointer - this.first) / this.stride
    assert(
      Number.isInteger(index) && index >= 0 && index < this.capacity,
      'the pointer is not into this slab',
    )
    return index
  }

  /** Starts this thread's search at a place of its own, so that CPUs do not fight over one bitmap word. */
  spread(threadId: number, threads: number): void {
    assert(this.stock === 0, 'a thread chooses its place before it allocates')
    this.leaf = Math.floor((this.levels[0].words * (threadId % threads)) / threads)
  }

  /**
   * Claims a slot for this thread and returns its pointer. The record holds what its last life left in it.
   * Throws ArenaFullError when every slot is taken.
   */
  allocate(thread: KernelThread): number {
    const pointer = this.tryAllocate(thread)
    if (pointer === 0)
      throw new ArenaFullError(this.name, `${this.capacity} slots`, this.option, this.capacity)
    return pointer
  }

  /** As allocate, but returns 0 when every slot is taken. */
  tryAllocate(thread: KernelThread): number {
    const i32 = thread.i32
    for (;;) {
      while (this.stock !== 0) {
        const bit = lowestClearBit(~this.stock)
        this.stock &= this.stock - 1
        const pointer = this.first + (this.leaf * 32 + bit) * this.stride
        if (claim(i32, pointer, thread.ownerTag)) return pointer // (H)
      }
      // No clear bit: other threads have the rest in their stocks, or the slab is full.
      if (!this.restock(i32) && this.sweep(i32) === 0) return 0 // (G)
    }
  }

  /**
   * Fills the stock: with the slots that this thread has freed last, or all clear bits of a leaf. False: no
   * bit is clear.
   */
  private restock(i32: Int32Array): boolean {
    if (this.freed !== 0) {
      this.leaf = this.freedLeaf
      this.stock = this.freed
      this.freed = 0
      return true
    }
    // A turn finds no clear bit in the leaf only when another thread has set them since it was chosen.
    for (let { leaf } = this; ; ) {
      if (Atomics.load(i32, this.levels[0].start + leaf) === FULL) {
        leaf = this.findLeaf(i32, leaf)
        if (leaf < 0) return false
      }
      Atomics.store(i32, this.touched + leaf, 1)
      const clear = ~Atomics.or(i32, this.levels[0].start + leaf, FULL) // (F)
      if (clear === 0) continue
      this.markFull(i32, 0, leaf)
      this.leaf = leaf
      this.stock = clear
      return true
    }
  }

  /** Other threads can now reach the record: it outlives the thread that made it. */
  publish(i32: Int32Array, pointer: number): void {
    const header = Atomics.or(i32, pointer - 1, PUBLISHED)
    assert((header & OWNER) !== 0, 'published a free slot')
  }

  /** Frees the slot, from any thread. Handles to it are stale from here on. */
  free(i32: Int32Array, pointer: number): void {
    const index = this.indexOf(pointer)
    const header = Atomics.and(i32, pointer - 1, ~OWNER)
    if ((header & OWNER) === 0) fail('double free: the slot is free already')
    const leaf = index >>> 5
    const mask = 1 << (index & 31)
    if (leaf === this.leaf) {
      this.stock |= mask
    } else if (leaf === this.freedLeaf) {
      this.freed |= mask
    } else {
      if (this.freed !== 0) this.markFree(i32, this.freedLeaf, this.freed)
      this.freedLeaf = leaf
      this.freed = mask
    }
  }

  /** The handle of an allocated slot: pointer and generation. */
  handleOf(i32: Int32Array, pointer: number): Handle {
    const handle = this.tryHandleOf(i32, pointer)
    assert(handle !== 0, 'a free slot has no handle')
    return handle
  }

  /** The same for a slot that another thread may free at any time; 0: it is free. */
  tryHandleOf(i32: Int32Array, pointer: number): Handle {
    const header = Atomics.load(i32, pointer - 1)
    if ((header & OWNER) === 0) return 0
    return ((header >>> GENERATION_SHIFT) & GENERATION_MASK) * POINTER_SPAN + pointer
  }

  /** The pointer of a handle, or 0 when it is stale: its slot was freed, and perhaps used again, since. */
  resolve(i32: Int32Array, handle: Handle): number {
    const pointer = handle % POINTER_SPAN
    this.indexOf(pointer)
    const header = Atomics.load(i32, pointer - 1)
    const generation = Math.floor(handle / POINTER_SPAN)
    const alive = (header & OWNER) !== 0 && ((header >>> GENERATION_SHIFT) & GENERATION_MASK) === generation
    return alive ? pointer : 0
  }

  /**
   * A word that does not change while a published slot lives: a cheap check that a remembered pointer is
   * still good.
   */
  lifeOf(i32: Int32Array, pointer: number): number {
    const header = Atomics.load(i32, pointer - 1)
    assert((header & OWNER) === PUBLISHED, 'only a published slot has a life to remember')
    return header
  }

  /**
   * The id of the thread that allocated the slot and has not published it; -1: it is free; 254: it is
   * published.
   */
  allocatedBy(i32: Int32Array, pointer: number): number {
    return (Atomics.load(i32, pointer - 1) & OWNER) - 1
  }

  /** Whether a slot near this one was ever allocated: if not, none of the next is, up to a multiple of 32. */
  isUsed(i32: Int32Array, index: number): boolean {
    return Atomics.load(i32, this.touched + (index >>> 5)) !== 0
  }

  /** Whether the slot is allocated right now. */
  isAllocated(i32: Int32Array, pointer: number): boolean {
    return (Atomics.load(i32, pointer - 1) & OWNER) !== 0
  }

  /** Whether this thread has allocated the slot, and has not published it yet. */
  isUnpublishedBy(i32: Int32Array, pointer: number, threadId: number): boolean {
    return (Atomics.load(i32, pointer - 1) & OWNER) === threadId + 1
  }

  /** Whether the slot is allocated and published. */
  isPublished(i32: Int32Array, pointer: number): boolean {
    return (Atomics.load(i32, pointer - 1) & OWNER) === PUBLISHED
  }

  /**
   * The allocated slot that comes after this one, or 0; after 0, the first. For scans: slots that were never
   * used are skipped.
   *
   *     for (let task = tasks.after(i32, 0); task !== 0; task = tasks.after(i32, task)) …
   */
  after(i32: Int32Array, pointer: number): number {
    return this.next(i32, pointer, false)
  }

  /** The same for slots that may have been used before, allocated now or not. */
  afterUsed(i32: Int32Array, pointer: number): number {
    return this.next(i32, pointer, true)
  }

  private next(i32: Int32Array, pointer: number, free: boolean): number {
    const from = pointer === 0 ? 0 : this.indexOf(pointer) + 1
    for (let at = from; at < this.capacity; at++) {
      if ((at === from || (at & 31) === 0) && Atomics.load(i32, this.touched + (at >>> 5)) === 0) at |= 31
      else if (free || this.isAllocated(i32, this.pointerAt(at))) return this.pointerAt(at)
    }
    return 0
  }

  /** How many slots are allocated: a scan of the headers, for tests and for `heddle top`. */
  count(i32: Int32Array): number {
    let allocated = 0
    for (let slot = this.after(i32, 0); slot !== 0; slot = this.after(i32, slot)) allocated++
    return allocated
  }

  /** A thread that ends gives its stock back: another thread need not search for it. */
  giveBack(i32: Int32Array): void {
    if (this.stock !== 0) this.markFree(i32, this.leaf, this.stock)
    if (this.freed !== 0) this.markFree(i32, this.freedLeaf, this.freed)
    this.stock = 0
    this.freed = 0
  }

  /**
   * Recovery, after thread `deadId` has stopped for good: frees what it had allocated and not published, and
   * makes the bitmap agree with the headers. Other threads may allocate and free at the same time. Returns
   * how many it freed.
   */
  reclaim(i32: Int32Array, deadId: number): number {
    let freed = 0
    for (let slot = this.afterUsed(i32, 0); slot !== 0; slot = this.afterUsed(i32, slot)) {
      const header = Atomics.load(i32, slot - 1)
      if ((header & OWNER) !== deadId + 1) continue
      const won = Atomics.compareExchange(i32, slot - 1, header, header & ~OWNER) === header
      assert(won, 'no other thread touches the slot of a dead thread')
      freed++
    }
    this.sweep(i32)
    return freed
  }

  /** Clears the bits of all free slots, [4]. Returns how many there were. */
  private sweep(i32: Int32Array): number {
    const leaves = this.levels[0]
    let found = 0
    for (let leaf = 0; leaf < leaves.words; leaf++) {
      if (Atomics.load(i32, this.touched + leaf) === 0) continue
      const bits = Atomics.load(i32, leaves.start + leaf)
      let free = 0
      for (let bit = 0; bit < 32 && leaf * 32 + bit < this.capacity; bit++) {
        const isFree = !this.isAllocated(i32, this.pointerAt(leaf * 32 + bit))
        if (isFree && ((bits >>> bit) & 1) !== 0) free |= 1 << bit
        if (isFree) found++
      }
      if (free !== 0) this.markFree(i32, leaf, free)
    }
    for (let level = 1; level < this.levels.length; level++) {
      const { start, words } = this.levels[level - 1]
      for (let at = 0; at < words; at++) {
        if (Atomics.load(i32, start + at) !== FULL) this.markNotFull(i32, level, at)
      }
    }
    return found
  }

  /**
   * The word `at` of a level filled up: sets its bit in the word above, and so on up.
   *
   *   fills the word                     frees a slot of it
   *   --------------                     ------------------
   *   (A) or: the word is full
   *                                      (B) and: the word was full, so (C) clears the bit above
   *   (D) sets the bit above
   *   (E) reads the word again: not full, clears the bit above
   *
   * Without (E) the free slot would not be found until a search of every leaf. The mirror image, (C) after
   * the word has filled up again, leaves a clear bit over a full word: `descend` sets it when it
   * finds it.
   */
  private markFull(i32: Int32Array, fromLevel: number, word: number): void {
    let at = word
    for (let level = fromLevel + 1; level < this.levels.length; level++) {
      const parent = at >>> 5
      const mask = 1 << (at & 31)
      const before = Atomics.or(i32, this.levels[level].start + parent, mask) // (D)
      if (Atomics.load(i32, this.levels[level - 1].start + at) !== FULL) {
        this.markNotFull(i32, level, at) // (E)
        return
      }
      if ((before | mask) !== FULL) return
      at = parent
    }
  }

  /** Clears bits of a leaf, and the bits above them while words stop being full. */
  private markFree(i32: Int32Array, leaf: number, mask: number): void {
    const before = Atomics.and(i32, this.levels[0].start + leaf, ~mask) // (B)
    if (before === FULL) this.markNotFull(i32, 1, leaf) // (C)
  }

  private markNotFull(i32: Int32Array, fromLevel: number, child: number): void {
    let at = child
    for (let level = fromLevel; level < this.levels.length; level++) {
      const parent = at >>> 5
      const before = Atomics.and(i32, this.levels[level].start + parent, ~(1 << (at & 31)))
      if (before !== FULL) return
      at = parent
    }
  }

  /** A leaf with a clear bit, searching up from a full leaf and around; -1: no leaf has one. */
  private findLeaf(i32: Int32Array, from: number): number {
    const top = this.levels.length - 1
    let at = from
    for (let level = 1; level <= top; level++) {
      at >>>= 5
      if (Atomics.load(i32, this.levels[level].start + at) !== FULL) {
        const leaf = this.descend(i32, level, at)
        if (leaf >= 0) return leaf
      }
    }
    // The hints say full. Before the caller gets that answer, check every leaf: a thread that died between
    // (A) and (E), or has not reached (E) yet, can leave a set bit over a word that is not full.
    const { start, words } = this.levels[0]
    for (let leaf = 0; leaf < words; leaf++) {
      if (Atomics.load(i32, start + leaf) !== FULL) return leaf
    }
    return -1
  }

  /**
   * Follows clear bits down to a leaf with a clear bit; -1 when the words under `word` are full after all.
   */
  private descend(i32: Int32Array, level: number, word: number): number {
    let at = word
    let below = level
    while (below > 0) {
      const bits = Atomics.load(i32, this.levels[below].start + at)
      if (bits === FULL) return -1
      const child = at * 32 + lowestClearBit(bits)
      if (Atomics.load(i32, this.levels[below - 1].start + child) === FULL) {
        this.markFull(i32, below - 1, child)
        continue
      }
      at = child
      below--
    }
    return at
  }
}

function lowestClearBit(bits: number): number {
  assert(bits !== FULL, 'a full word has no clear bit')
  return 31 - Math.clz32(~bits & -~bits)
}

/** Makes a free slot this thread's. False: it is taken. */
function claim(i32: Int32Array, pointer: number, ownerTag: number): boolean {
  const header = Atomics.load(i32, pointer - 1)
  if ((header & OWNER) !== 0) return false
  return Atomics.compareExchange(i32, pointer - 1, header, nextLife(header, ownerTag)) === header
}

function nextLife(header: number, ownerTag: number): number {
  const generation = ((header >>> GENERATION_SHIFT) + 1) & GENERATION_MASK
  return (generation << GENERATION_SHIFT) | ownerTag
}
