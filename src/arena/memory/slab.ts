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
 *                      not yet published.  255: published. A claim and a free are one compare-exchange here.
 *   bitmap tree        1 = "taken", a hint. A leaf word covers 32 slots, each higher word 32 words. Zeroed
 *                      memory means "all free", so an untouched slab costs no pages.
 *
 *   bit    | header    | state                                       | corrected by
 *   -------+-----------+---------------------------------------------+-------------------------------------
 *   clear  | free      | [1] free                                    |
 *   clear  | allocated | [2] claimed, bit not set yet (or died here) | the next thread that reads it sets it
 *   set    | allocated | [3] allocated                               |
 *   set    | free      | [4] freed, bit not cleared yet (or died)    | free(); after a death reclaim()
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
  private touchedLeaf = -1
  /** Where this thread found a slot last: each thread starts in its own neighbourhood. */
  private hint: number

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
    this.hint = 0
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
    this.hint = Math.floor((this.levels[0].words * (threadId % threads)) / threads)
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
    let leaf = this.hint
    // Each turn takes a slot, marks a stale bit, or moves to a leaf with a clear bit: the last can only be
    // repeated while other threads take slots, so the bound is theirs.
    for (;;) {
      const bits = Atomics.load(i32, this.levels[0].start + leaf)
      if (bits === FULL) {
        leaf = this.findLeaf(i32, leaf)
        if (leaf < 0) return 0
        continue
      }
      const bit = lowestClearBit(bits)
      const pointer = this.first + (leaf * 32 + bit) * this.stride
      if (leaf !== this.touchedLeaf) this.touch(i32, leaf)
      const header = Atomics.load(i32, pointer - 1)
      const claimed =
        (header & OWNER) === 0 &&
        Atomics.compareExchange(i32, pointer - 1, header, nextLife(header, thread.ownerTag)) === header
      this.markTaken(i32, leaf, bit)
      if (claimed) {
        this.hint = leaf
        return pointer
      }
      // [2] another thread claimed it and has not set the bit: it is set now. If that thread has freed the
      // slot since, [4], it may have cleared the bit before this thread set it. So read the header again:
      // otherwise the slot would be lost.
      if ((Atomics.load(i32, pointer - 1) & OWNER) === 0) this.markFree(i32, leaf, bit)
    }
  }

  /** Other threads can now reach the record: it outlives the thread that made it. */
  publish(i32: Int32Array, pointer: number): void {
    const header = Atomics.load(i32, pointer - 1)
    assert((header & OWNER) !== 0, 'published a free slot')
    Atomics.store(i32, pointer - 1, header | PUBLISHED)
  }

  /** Frees the slot, from any thread. Handles to it are stale from here on. */
  free(i32: Int32Array, pointer: number): void {
    const index = this.indexOf(pointer)
    const header = Atomics.load(i32, pointer - 1)
    if ((header & OWNER) === 0) fail('double free: the slot is free already')
    if (Atomics.compareExchange(i32, pointer - 1, header, header & ~OWNER) !== header) {
      fail('two threads freed or published the same slot')
    }
    this.markFree(i32, index >>> 5, index & 31)
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

  /**
   * Recovery, after thread `deadId` has stopped for good: frees what it had allocated and not published, and
   * makes the bitmap agree with the headers ([2] and [4]). Other threads may allocate and free at the same
   * time. Returns how many it freed.
   */
  reclaim(i32: Int32Array, deadId: number): number {
    let freed = 0
    for (let index = 0; index < this.capacity; index++) {
      const leaf = index >>> 5
      const bit = index & 31
      if (bit === 0 && Atomics.load(i32, this.touched + leaf) === 0) {
        index |= 31
        continue
      }
      const marked = ((Atomics.load(i32, this.levels[0].start + leaf) >>> bit) & 1) !== 0
      const pointer = this.first + index * this.stride
      const header = Atomics.load(i32, pointer - 1)
      const owner = header & OWNER
      if (owner === deadId + 1) {
        const won = Atomics.compareExchange(i32, pointer - 1, header, header & ~OWNER) === header
        assert(won, 'no other thread touches the slot of a dead thread')
        this.markFree(i32, leaf, bit)
        freed++
      } else if (owner === 0 && marked) {
        this.markFree(i32, leaf, bit)
      }
    }
    for (let level = 1; level < this.levels.length; level++) {
      const { start, words } = this.levels[level - 1]
      for (let at = 0; at < words; at++) {
        if (Atomics.load(i32, start + at) !== FULL) this.markNotFull(i32, level, at)
      }
    }
    return freed
  }

  private touch(i32: Int32Array, leaf: number): void {
    Atomics.store(i32, this.touched + leaf, 1)
    this.touchedLeaf = leaf
  }

  /** Sets a leaf bit, and the bits above it while words fill up. */
  private markTaken(i32: Int32Array, leaf: number, bit: number): void {
    const mask = 1 << bit
    if ((Atomics.or(i32, this.levels[0].start + leaf, mask) | mask) === FULL) this.markFull(i32, 0, leaf)
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

  /** Clears a leaf bit, and the bits above it while words stop being full. */
  private markFree(i32: Int32Array, leaf: number, bit: number): void {
    const before = Atomics.and(i32, this.levels[0].start + leaf, ~(1 << bit)) // (B)
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

function nextLife(header: number, ownerTag: number): number {
  const generation = ((header >>> GENERATION_SHIFT) + 1) & GENERATION_MASK
  return (generation << GENERATION_SHIFT) | ownerTag
}
