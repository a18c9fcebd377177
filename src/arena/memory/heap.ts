import { type Arena, ArenaFullError, type ArenaPlan, formatBytes, type Region } from './arena.ts'
import { assert, fail } from '../assert.ts'
import { lockRank } from '../sync/lockorder.ts'
import { LINE_WORDS, roundUp } from './record.ts'
import { acquire, breakLock, initLock, nudgeLock, release } from '../sync/spinlock.ts'
import type { KernelThread } from '../sync/thread.ts'

/**
 * The payload heap: variable-size blocks, allocated on one CPU and freed on another. Two-level segregated
 * fit: free blocks hang in lists by size class, 8 classes to each doubling, with a bitmap over the classes,
 * so that allocate and free are O(1). A free joins neighbouring free blocks, so fragmentation is that of any
 * good-fit allocator: no block is ever lost to a class.
 *
 * A block is a header and its words, and blocks tile the heap without gaps:
 *
 *   header   size      words of the block, header included, always even | USED in bit 0
 *            before    the block in front, 0 for the first
 *            owner     used: the id + 1 of the thread that has not published it yet, 0 once published. Atomic:
 *                      it changes without the lock
 *            magic     marks the start of a block: it catches a wild free
 *   free     next      the next free block of the class
 *            prev      the one in front, 0 for the first of the class
 *
 * One lock guards it all. If its holder dies, `repair` walks the tiles by `size` and rebuilds everything
 * else. So every change of the tiling is one store of one `size`, and it comes after the header that it
 * reveals is written (split) or before anything that relies on it (join).
 */
const SIZE = 0
const BEFORE = 1
const OWNER = 2
const MAGIC_AT = 3
const HEADER_WORDS = 4
const NEXT = 4
const PREV = 5
const BLOCK_WORDS_MIN = 6
const USED = 1
const MAGIC = 0x7061_796c

const SECOND_BITS = 3
const SECOND = 1 << SECOND_BITS
const FIRST_MAX = 30
const CLASSES = FIRST_MAX * SECOND

// The control block at the start of the region, in words.
const LOCK = 0
const USED_WORDS = 2
const USED_BLOCKS = 3
const FIRST_MASK = 4
const SECOND_MASKS = 5
const LISTS = SECOND_MASKS + FIRST_MAX
const CONTROL_WORDS: number = roundUp(LISTS + CLASSES, LINE_WORDS)

export const HEAP_BYTES_MIN: number = 64 * 1024

export class PayloadHeap {
  private readonly i32: Int32Array
  private readonly control: number
  private readonly firstBlock: number
  private readonly end: number
  private readonly option: string

  constructor(arena: Arena, region: Region, option: string) {
    this.i32 = arena.i32
    this.control = region.start
    this.firstBlock = region.start + CONTROL_WORDS
    this.end = region.start + region.words - (region.words % 2)
    this.option = option
  }

  static reserve(plan: ArenaPlan, bytes: number, option: string): Region {
    if (!Number.isInteger(bytes) || bytes < HEAP_BYTES_MIN) {
      throw new RangeError(
        `${option}: ${bytes} is not a heap size; give an integer of at least ${HEAP_BYTES_MIN} bytes`,
      )
    }
    return plan.reserve('payload heap', CONTROL_WORDS + Math.ceil(bytes / 4))
  }

  /** Once, by the thread that made the arena: one free block from end to end. */
  initialize(): void {
    const { i32, control } = this
    initLock(i32, control + LOCK, lockRank('heap'))
    this.writeHeader(this.firstBlock, this.end - this.firstBlock, 0)
    this.addFree(this.firstBlock)
  }

  /**
   * Bytes that may be written at `pointer`, 8-byte aligned. Throws ArenaFullError when no block is large
   * enough.
   */
  allocate(thread: KernelThread, bytes: number): number {
    assert(Number.isInteger(bytes) && bytes >= 0, 'a payload has a whole number of bytes')
    const pointer = this.tryAllocate(thread, bytes)
    if (pointer === 0) {
      const size = (this.end - this.firstBlock) * 4
      throw new ArenaFullError(
        'payload heap',
        `${formatBytes(size)}, ${formatBytes(this.usedBytes())} in use, ${formatBytes(bytes)} asked for`,
        this.option,
        size,
      )
    }
    return pointer
  }

  /** As allocate, but returns 0 when there is no room. */
  tryAllocate(thread: KernelThread, bytes: number): number {
    const { i32, control } = this
    const wanted = Math.max(BLOCK_WORDS_MIN, roundUp(Math.ceil(bytes / 4) + HEADER_WORDS, 2))
    if (wanted > this.end - this.firstBlock) return 0
    acquire(thread, control + LOCK)
    const block = this.findFree(wanted)
    if (block !== 0) {
      this.removeFree(block)
      Atomics.store(i32, block + OWNER, thread.ownerTag)
      const rest = i32[block + SIZE] - wanted
      if (rest >= BLOCK_WORDS_MIN) {
        const remainder = block + wanted
        this.writeHeader(remainder, rest, block)
        i32[block + SIZE] = wanted | USED // the split happens here
        this.linkBehind(remainder)
        this.addFree(remainder)
      } else {
        i32[block + SIZE] |= USED
      }
      this.countUsed(i32[block + SIZE] & ~USED, 1)
    }
    release(thread, control + LOCK)
    return block === 0 ? 0 : block + HEADER_WORDS
  }

  /** The block is reachable from a record that outlives this thread. */
  publish(pointer: number): void {
    Atomics.store(this.i32, this.blockOf(pointer) + OWNER, 0)
  }

  /** The block is this thread's again: the thread is about to take it off the record that refers to it. */
  claim(thread: KernelThread, pointer: number): void {
    Atomics.store(this.i32, this.blockOf(pointer) + OWNER, thread.ownerTag)
  }

  /**
   * The block is in a structure that recovery cannot read, or on its way into it (`mark` is even) or out of
   * it (odd). A mark is below 0, and belongs to the structure. The block is not freed when the thread dies.
   */
  mark(pointer: number, mark: number): void {
    Atomics.store(this.i32, this.blockOf(pointer) + OWNER, mark)
  }

  /**
   * A thread died between `mark` and the step after it: the structure has the block (`isNamed`), or the block
   * is freed. `pointer` is what the structure wrote down before the mark. If the thread died before that, the
   * block may be gone, and the pointer may lead into the middle of another block.
   */
  resolveMarked(thread: KernelThread, pointer: number, mark: number, isNamed: boolean): void {
    const { i32 } = this
    const lock = this.control + LOCK
    acquire(thread, lock)
    let block = this.firstBlock
    while (block < this.end && block + HEADER_WORDS < pointer) block += i32[block + SIZE] & ~USED
    const isBlock = block + HEADER_WORDS === pointer && (i32[block + SIZE] & USED) !== 0
    if (
      isBlock &&
      Atomics.compareExchange(i32, block + OWNER, mark, isNamed ? 0 : thread.ownerTag) === mark
    ) {
      if (!isNamed) this.freeLocked(block)
    }
    release(thread, lock)
  }

  /**
   * The thread that has not published the block, or has claimed it, plus 1; 0: it is published; below 0: see
   * `mark`.
   */
  ownerOf(pointer: number): number {
    return Atomics.load(this.i32, this.blockOf(pointer) + OWNER)
  }

  /**
   * Whether no thread owns the block, and no thread is taking it out of a structure: then the record that
   * named it may free it.
   */
  isAtRest(pointer: number): boolean {
    const owner = this.ownerOf(pointer)
    return owner <= 0 && (owner & 1) === 0
  }

  /** Frees a block, from any thread. */
  free(thread: KernelThread, pointer: number): void {
    const lock = this.control + LOCK
    const block = this.blockOf(pointer)
    acquire(thread, lock)
    if ((this.i32[block + SIZE] & USED) === 0) {
      release(thread, lock)
      fail('double free: the payload block is free already')
    }
    this.freeLocked(block)
    release(thread, lock)
  }

  /** Bytes that a payload may use at `pointer`: what was asked for, rounded up. */
  capacityOf(pointer: number): number {
    return ((this.i32[this.blockOf(pointer) + SIZE] & ~USED) - HEADER_WORDS) * 4
  }

  /** Bytes in used blocks, headers included: a snapshot. */
  usedBytes(): number {
    return Atomics.load(this.i32, this.control + USED_WORDS) * 4
  }

  usedBlocks(): number {
    return Atomics.load(this.i32, this.control + USED_BLOCKS)
  }

  /** The size of the largest payload that fits right now. Walks the heap: for tests and reports. */
  largestFree(thread: KernelThread): number {
    let largest = 0
    acquire(thread, this.control + LOCK)
    for (let block = this.firstBlock; block < this.end; block += this.i32[block + SIZE] & ~USED) {
      if ((this.i32[block + SIZE] & USED) === 0) largest = Math.max(largest, this.i32[block + SIZE])
    }
    release(thread, this.control + LOCK)
    return Math.max(0, (largest - HEADER_WORDS) * 4)
  }

  /**
   * Recovery, after thread `deadId` has stopped for good: takes its lock if it held it, rebuilds lists,
   * bitmaps and counts from the tiles, and frees the blocks that it had not published. Returns how many
   * it freed.
   *
   * `records` visits every word of every record that may hold a payload: a block that is in one and that the
   * dead thread had not published, or had just claimed, belongs to the record. Other threads may change such
   * words during the visit: a thread that takes a payload off a record frees it afterwards, and needs the
   * lock for that.
   */
  repair(thread: KernelThread, deadId: number, records?: (visit: (at: number) => void) => void): number {
    const { i32, control } = this
    const lock = control + LOCK
    if (!breakLock(thread, lock, deadId)) {
      nudgeLock(i32, lock)
      acquire(thread, lock)
    }
    records?.(at => {
      const pointer = Atomics.load(i32, at)
      if (pointer <= 0) return
      Atomics.compareExchange(i32, pointer - HEADER_WORDS + OWNER, deadId + 1, 0)
    })
    for (let at = FIRST_MASK; at < LISTS + CLASSES; at++) i32[control + at] = 0
    let freed = 0
    let used = 0
    let blocks = 0
    let before = 0
    for (let block = this.firstBlock; block < this.end; block += i32[block + SIZE] & ~USED) {
      i32[block + BEFORE] = before
      // Only where it is missing: the owner of a block reads its magic without the lock.
      if (i32[block + MAGIC_AT] !== MAGIC) i32[block + MAGIC_AT] = MAGIC
      if ((i32[block + SIZE] & USED) !== 0 && Atomics.load(i32, block + OWNER) === deadId + 1) {
        i32[block + SIZE] &= ~USED
        freed++
      }
      const joins = before !== 0 && ((i32[before + SIZE] | i32[block + SIZE]) & USED) === 0
      if (joins) i32[before + SIZE] += i32[block + SIZE]
      else before = block
    }
    for (let block = this.firstBlock; block < this.end; block += i32[block + SIZE] & ~USED) {
      if ((i32[block + SIZE] & USED) === 0) {
        this.addFree(block)
      } else {
        used += i32[block + SIZE] & ~USED
        blocks++
      }
      this.linkBehind(block)
    }
    Atomics.store(i32, control + USED_WORDS, used)
    Atomics.store(i32, control + USED_BLOCKS, blocks)
    release(thread, lock)
    return freed
  }

  /** Asserts every invariant of the heap; for tests. */
  verify(thread: KernelThread): void {
    const { i32, control } = this
    acquire(thread, control + LOCK)
    let before = 0
    let used = 0
    let free = 0
    for (let block = this.firstBlock; block < this.end; block += i32[block + SIZE] & ~USED) {
      assert(i32[block + MAGIC_AT] === MAGIC, 'every tile has its magic')
      assert(i32[block + BEFORE] === before, 'every block knows the one in front')
      const isFree = (i32[block + SIZE] & USED) === 0
      assert(
        !isFree || before === 0 || (i32[before + SIZE] & USED) !== 0,
        'no two free blocks are neighbours',
      )
      if (isFree) free++
      else used += i32[block + SIZE] & ~USED
      before = block
    }
    let listed = 0
    for (let at = 0; at < CLASSES; at++) {
      for (let block = i32[control + LISTS + at]; block !== 0; block = i32[block + NEXT]) {
        assert(classOf(i32[block + SIZE]) === at, 'a free block hangs in the list of its class')
        listed++
      }
    }
    assert(listed === free, 'every free block is on a list, once')
    assert(used === i32[control + USED_WORDS], 'the used words add up')
    release(thread, control + LOCK)
  }

  private blockOf(pointer: number): number {
    const block = pointer - HEADER_WORDS
    assert(block >= this.firstBlock && block < this.end, 'the pointer is not into the payload heap')
    assert(this.i32[block + MAGIC_AT] === MAGIC, 'the pointer is not the start of a payload')
    return block
  }

  private countUsed(words: number, blocks: number): void {
    const { i32, control } = this
    Atomics.store(i32, control + USED_WORDS, i32[control + USED_WORDS] + words)
    Atomics.store(i32, control + USED_BLOCKS, i32[control + USED_BLOCKS] + blocks)
  }

  private freeLocked(block: number): void {
    const i32 = this.i32
    const size = i32[block + SIZE] & ~USED
    this.countUsed(-size, -1)
    i32[block + SIZE] = size // free from here on; before it, repair frees it for its owner
    Atomics.store(i32, block + OWNER, 0)
    const behind = block + size
    if (behind < this.end && (i32[behind + SIZE] & USED) === 0) {
      this.removeFree(behind)
      i32[block + SIZE] = size + i32[behind + SIZE]
      i32[behind + MAGIC_AT] = 0
    }
    const front = i32[block + BEFORE]
    let joined = block
    if (front !== 0 && (i32[front + SIZE] & USED) === 0) {
      this.removeFree(front)
      i32[front + SIZE] += i32[block + SIZE]
      i32[block + MAGIC_AT] = 0
      joined = front
    }
    this.linkBehind(joined)
    this.addFree(joined)
  }

  private writeHeader(block: number, size: number, before: number): void {
    const i32 = this.i32
    i32[block + SIZE] = size
    i32[block + BEFORE] = before
    Atomics.store(i32, block + OWNER, 0)
    i32[block + MAGIC_AT] = MAGIC
  }

  /** Writes into the next block which block is in front of it. */
  private linkBehind(block: number): void {
    const behind = block + (this.i32[block + SIZE] & ~USED)
    if (behind < this.end) this.i32[behind + BEFORE] = block
  }

  private addFree(block: number): void {
    const { i32, control } = this
    const at = classOf(i32[block + SIZE])
    const head = i32[control + LISTS + at]
    i32[block + NEXT] = head
    i32[block + PREV] = 0
    if (head !== 0) i32[head + PREV] = block
    i32[control + LISTS + at] = block
    i32[control + SECOND_MASKS + (at >>> SECOND_BITS)] |= 1 << (at & (SECOND - 1))
    i32[control + FIRST_MASK] |= 1 << (at >>> SECOND_BITS)
  }

  private removeFree(block: number): void {
    const { i32, control } = this
    const at = classOf(i32[block + SIZE])
    const next = i32[block + NEXT]
    const prev = i32[block + PREV]
    if (next !== 0) i32[next + PREV] = prev
    if (prev !== 0) {
      i32[prev + NEXT] = next
      return
    }
    assert(i32[control + LISTS + at] === block, 'a free block without one in front is the first of its class')
    i32[control + LISTS + at] = next
    if (next !== 0) return
    const first = at >>> SECOND_BITS
    i32[control + SECOND_MASKS + first] &= ~(1 << (at & (SECOND - 1)))
    if (i32[control + SECOND_MASKS + first] === 0) i32[control + FIRST_MASK] &= ~(1 << first)
  }

  /**
   * A free block of at least `size` words: the first of the next class up, whose every block is large enough.
   */
  private findFree(size: number): number {
    const { i32, control } = this
    const at = classOf(size + classWidth(size) - 1)
    if (at < CLASSES) {
      let first = at >>> SECOND_BITS
      let second = i32[control + SECOND_MASKS + first] & (-1 << (at & (SECOND - 1)))
      if (second === 0) {
        const firsts = first + 1 < 32 ? i32[control + FIRST_MASK] & (-1 << (first + 1)) : 0
        if (firsts !== 0) {
          first = lowestBit(firsts)
          second = i32[control + SECOND_MASKS + first]
        }
      }
      if (second !== 0) return i32[control + LISTS + first * SECOND + lowestBit(second)]
    }
    // The larger classes have no block. Before the heap says that it is full, the search walks the block's
    // own class for one that happens to be large enough.
    for (let block = i32[control + LISTS + classOf(size)]; block !== 0; block = i32[block + NEXT]) {
      if (i32[block + SIZE] >= size) return block
    }
    return 0
  }
}

/** Each size below 8 has its own class; from 8 on there are 8 classes for each doubling. */
function classOf(size: number): number {
  if (size < SECOND) return size
  const first = 31 - Math.clz32(size)
  return (first - SECOND_BITS + 1) * SECOND + ((size >>> (first - SECOND_BITS)) & (SECOND - 1))
}

/** How many sizes share a class with this one. */
function classWidth(size: number): number {
  return size < SECOND ? 1 : 1 << (31 - Math.clz32(size) - SECOND_BITS)
}

function lowestBit(bits: number): number {
  assert(bits !== 0, 'zero has no lowest bit')
  return 31 - Math.clz32(bits & -bits)
}
