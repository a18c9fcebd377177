import { isFault } from '../../arena/sync/section.ts'
import { lockRank } from '../../arena/sync/lockorder.ts'
import { acquire, initLock, release } from '../../arena/sync/spinlock.ts'
import { listShift } from '../../arena/trees/list.ts'
import type { Handle } from '../../arena/memory/slab.ts'
import type { FutexContext } from './context.ts'
import { wakeAll, wakeLater } from './queue.ts'
import { updateTop, unblock, walkChain } from '../pi/pichain.ts'
import { ALIVE, Backing, Bucket, QUEUE_ENDED, Futex, Mapping, PI_LOCK, Space, Waiter } from './records.ts'
import { bucketOf, unlockFutex } from './table.ts'

/**
 * Address spaces. A thread belongs to one space and maps SharedArrayBuffers into it; a word is found through
 * its mapping. Threads send each other handles (a slab pointer with its generation), beside the buffer
 * itself.
 *
 * `unmap` ends the private futexes of the mapping, and with the last mapping of a buffer also its shared
 * ones. Their waiters are woken with EFAULT: the word that they waited for is gone. A later call that names
 * the mapping gets EFAULT; one that maps the buffer again gets new futexes.
 *
 *   unmapper                                 waiter
 *   --------                                 ------
 *   (A) alive = 0                            locks the futex (or creates it)
 *   (B) for each futex of the mapping:       (C) alive is 0: EFAULT
 *       locks it, ends its waiters               alive is 1: queues, unlocks
 *
 * A waiter that saw 1 at (C) holds the lock of a futex that was in the table before (A), so (B) visits it.
 */
export interface MappingHandles {
  readonly mapping: Handle
  readonly backing: Handle
}

/** How many words of a mapping a thread caches; beyond that it clears the cache. */
const INDEX_MAX = 1 << 16

/** A buffer's name beside an offset of 32 bits is a safe integer. */
const NAME_BITS = 21

/** The whole words of a buffer. If the buffer can grow, they grow with it. */
export function wordsOver<V>(
  array: {
    new (buffer: SharedArrayBuffer, from?: number, length?: number): V
    readonly BYTES_PER_ELEMENT: number
  },
  buffer: SharedArrayBuffer,
): V {
  const { growable } = buffer as { readonly growable?: boolean }
  return growable === true
    ? new array(buffer)
    : new array(buffer, 0, Math.floor(buffer.byteLength / array.BYTES_PER_ELEMENT))
}

export class MappedBuffer {
  readonly buffer: SharedArrayBuffer
  /** A view of this mapping: a word named by this view object is a word of this mapping. */
  readonly i32: Int32Array<SharedArrayBuffer>
  readonly mapping: number
  readonly backing: number
  private readonly words = new Map<number, FutexWord>()
  /** Send these beside the buffer: another thread of the space passes them to `adopt`. */
  readonly handles: MappingHandles

  readonly f64: Float64Array<SharedArrayBuffer>
  /**
   * The name of the buffer in pointers in shared memory: the backing's number and lives, in 21 bits; never 0.
   */
  readonly name: number
  private readonly mappingLife: number
  private readonly backingLife: number

  constructor(context: FutexContext, buffer: SharedArrayBuffer, mapping: number, backing: number) {
    const { i32, layout } = context
    this.buffer = buffer
    this.i32 = wordsOver<Int32Array<SharedArrayBuffer>>(Int32Array, buffer)
    this.f64 = wordsOver<Float64Array<SharedArrayBuffer>>(Float64Array, buffer)
    this.mapping = mapping
    this.backing = backing
    this.handles = {
      mapping: layout.mappings.handleOf(i32, mapping),
      backing: layout.backings.handleOf(i32, backing),
    }
    const bits = 32 - Math.clz32(layout.backings.capacity)
    const lives = Math.floor(this.handles.backing / 0x1_0000_0000)
    const slot = layout.backings.indexOf(backing) + 1
    this.name = (lives % 2 ** Math.max(0, NAME_BITS - bits)) * 2 ** bits + slot
    this.mappingLife = layout.mappings.lifeOf(i32, mapping)
    this.backingLife = layout.backings.lifeOf(i32, backing)
  }

  /** Whether the mapping still exists; for a shared call, also the buffer behind it. */
  isMapped(i32: Int32Array, shared: boolean): boolean {
    const { mapping } = this
    if (Atomics.load(i32, mapping - 1) !== this.mappingLife) return false
    if (Atomics.load(i32, mapping + Mapping.alive) !== 1) return false
    return !shared || this.isBacked(i32)
  }

  /** Whether the buffer still has any mapping: enough to read its words for an owner that has ended. */
  isBacked(i32: Int32Array): boolean {
    const { backing } = this
    return (
      Atomics.load(i32, backing - 1) === this.backingLife && Atomics.load(i32, backing + Backing.alive) === 1
    )
  }

  /** The word at an index; cached. */
  word(context: FutexContext, index: number): FutexWord {
    let word = this.words.get(index)
    if (word === undefined) {
      if (this.words.size === INDEX_MAX) this.words.clear()
      word = new FutexWord(context, this, index)
      this.words.set(index, word)
    }
    return word
  }
}

/** A word of a mapping, with the data that calls need. Belongs to one thread. */
export class FutexWord {
  readonly i32: Int32Array
  readonly index: number
  readonly mapped: MappedBuffer
  readonly privateBucket: number
  readonly sharedBucket: number
  /**
   * This thread's cache: a weak handle of the word's futex. Unmapping, or the end of the last wait, makes it
   * stale, and a stale handle is detected.
   */
  privateHint: Handle = 0
  sharedHint: Handle = 0
  /**
   * The value to which the owner with TID `pendingTid`, which took this pending lock on this thread, unlocks
   * the word (pendingword.ts); 0: it was not taken so.
   */
  pendingValue = 0
  pendingTid = 0

  constructor(context: FutexContext, mapped: MappedBuffer, index: number) {
    this.i32 = mapped.i32
    this.index = index
    this.mapped = mapped
    this.privateBucket = bucketOf(context, mapped.mapping, index)
    this.sharedBucket = bucketOf(context, mapped.backing, index)
  }

  isMapped(i32: Int32Array, shared: boolean): boolean {
    return this.mapped.isMapped(i32, shared)
  }
}

export class AddressSpace {
  readonly context: FutexContext
  readonly space: number
  readonly handle: Handle
  private readonly byView = new WeakMap<ArrayBufferView, MappedBuffer>()
  /** The mappings of a buffer, newest last. */
  private readonly byBuffer = new WeakMap<SharedArrayBuffer, MappedBuffer[]>()

  private constructor(context: FutexContext, space: number) {
    this.context = context
    this.space = space
    this.handle = context.layout.spaces.handleOf(context.i32, space)
  }

  /** Creates a space without mappings. */
  static create(context: FutexContext): AddressSpace {
    const { i32, thread, layout } = context
    const space = layout.spaces.allocate(thread)
    initLock(i32, space + Space.lock, lockRank('space'))
    i32[space + Space.mappings] = 0
    layout.spaces.publish(i32, space)
    return new AddressSpace(context, space)
  }

  /** Joins a space that another thread created. */
  static join(context: FutexContext, handle: Handle): AddressSpace {
    const space = context.layout.spaces.resolve(context.i32, handle)
    if (space === 0)
      throw new RangeError(
        'AddressSpace.join(handle): the space no longer exists; send the `handle` of an existing space',
      )
    return new AddressSpace(context, space)
  }

  /**
   * Maps a buffer. `backing` is the handle that another thread or space got for the same buffer. Without it
   * this is the first mapping: two SharedArrayBuffer objects on two threads cannot be recognized as one
   * buffer.
   */
  map(buffer: SharedArrayBuffer, backing?: Handle): MappedBuffer {
    if (!(buffer instanceof SharedArrayBuffer)) {
      throw new TypeError(
        `map(buffer): ${String(buffer)} is not a SharedArrayBuffer; only shared memory can be mapped`,
      )
    }
    const { i32, thread, layout } = this.context
    const known = backing ?? this.findBuffer(buffer)?.handles.backing
    acquire(thread, this.space + Space.lock)
    let mapping = 0
    try {
      mapping = layout.mappings.allocate(thread)
      const shared = this.backingOf(known, backing !== undefined)
      i32[mapping + Mapping.space] = this.space
      i32[mapping + Mapping.backing] = shared
      Atomics.store(i32, mapping + Mapping.alive, 1)
      layout.mappings.publish(i32, mapping)
      i32[this.space + Space.mappings]++
      const mapped = this.remember(buffer, mapping, shared)
      release(thread, this.space + Space.lock)
      return mapped
    } catch (error) {
      if (isFault(error)) throw error
      if (mapping !== 0) layout.mappings.free(i32, mapping)
      release(thread, this.space + Space.lock)
      throw error
    }
  }

  /**
   * The backing of a handle, with one more mapping counted; a new one if there is no handle, or if it is
   * stale.
   */
  private backingOf(known: Handle | undefined, mustExist: boolean): number {
    const { i32, thread, layout } = this.context
    const found = known === undefined ? 0 : layout.backings.resolve(i32, known)
    if (found !== 0 && countMapping(i32, found)) return found
    if (mustExist)
      throw new RangeError(
        'map(buffer, backing): the backing no longer exists: its last mapping was unmapped; map the buffer without `backing`',
      )
    const made = layout.backings.allocate(thread)
    Atomics.store(i32, made + Backing.mappings, 1)
    Atomics.store(i32, made + Backing.alive, 1)
    layout.backings.publish(i32, made)
    return made
  }

  /** Adds a mapping that another thread of this space created. */
  adopt(buffer: SharedArrayBuffer, handles: MappingHandles): MappedBuffer {
    const { i32, layout } = this.context
    const mapping = layout.mappings.resolve(i32, handles.mapping)
    if (mapping === 0 || i32[mapping + Mapping.space] !== this.space) {
      throw new RangeError(
        'adopt(buffer, handles): no such mapping in this space; send the `handles` of an existing mapping',
      )
    }
    return this.remember(buffer, mapping, i32[mapping + Mapping.backing])
  }

  private remember(buffer: SharedArrayBuffer, mapping: number, backing: number): MappedBuffer {
    const mapped = new MappedBuffer(this.context, buffer, mapping, backing)
    this.byView.set(mapped.i32, mapped)
    this.context.buffers.set(mapping, mapped).set(backing, mapped)
    const others = this.byBuffer.get(buffer)
    if (others === undefined) this.byBuffer.set(buffer, [mapped])
    else others.push(mapped)
    return mapped
  }

  /** The mapping of a view: its own, or the newest of its buffer. */
  find(view: ArrayBufferView): MappedBuffer | undefined {
    return this.byView.get(view) ?? this.findBuffer(view.buffer as SharedArrayBuffer)
  }

  findBuffer(buffer: SharedArrayBuffer): MappedBuffer | undefined {
    return this.byBuffer.get(buffer)?.at(-1)
  }

  unmap(mapped: MappedBuffer): void {
    const { context } = this
    const { i32, thread, layout } = context
    const { mapping, backing, buffer, handles } = mapped
    acquire(thread, this.space + Space.lock)
    const known = layout.mappings.resolve(i32, handles.mapping) === mapping
    if (known) Atomics.store(i32, mapping + Mapping.alive, 0) // (A)
    if (known) i32[this.space + Space.mappings]--
    release(thread, this.space + Space.lock)
    if (!known) throw new RangeError('unmap(mapped): it is unmapped already; unmap each mapping once')
    const last = Atomics.sub(i32, backing + Backing.mappings, 1) === 1
    if (last) Atomics.store(i32, backing + Backing.alive, 0)
    this.endFutexes(mapping)
    if (last) this.endFutexes(backing)
    const others = this.byBuffer.get(buffer)
    others?.splice(others.indexOf(mapped), 1)
    layout.mappings.free(i32, mapping)
    if (last) layout.backings.free(i32, backing)
  }

  /** (B): walks the whole table. Unmapping is rare, so futexes are not kept in a list for each mapping. */
  private endFutexes(owner: number): void {
    const { context } = this
    const { i32, thread, layout } = context
    context.enter()
    for (let at = 0; at < layout.buckets; at++) {
      const bucket = layout.table.start + at * Bucket.words
      for (let futex = this.ownedIn(bucket, owner); futex !== 0; futex = this.ownedIn(bucket, owner)) {
        acquire(thread, futex + Futex.lock)
        if (Atomics.load(i32, futex + Futex.state) === ALIVE) {
          for (
            let waiter = listShift(i32, futex + Futex.waiters);
            waiter !== 0;
            waiter = listShift(i32, futex + Futex.waiters)
          ) {
            if (i32[waiter + Waiter.pi] === PI_LOCK) unblock(context, waiter)
            wakeLater(context, waiter, QUEUE_ENDED)
            Atomics.sub(i32, bucket + Bucket.waiters, 1)
          }
          const changed = updateTop(context, futex)
          unlockFutex(context, futex)
          if (changed !== 0) walkChain(context, changed)
        } else {
          release(thread, futex + Futex.lock)
        }
      }
    }
    context.leave()
    wakeAll(context)
  }

  private ownedIn(bucket: number, owner: number): number {
    const { i32, thread } = this.context
    acquire(thread, bucket + Bucket.lock)
    let futex = i32[bucket + Bucket.first]
    while (
      futex !== 0 &&
      (i32[futex + Futex.owner] !== owner || Atomics.load(i32, futex + Futex.state) !== ALIVE)
    ) {
      futex = i32[futex + Futex.chain]
    }
    release(thread, bucket + Bucket.lock)
    return futex
  }
}

/**
 * Counts one more mapping of a backing; false while its last mapping is being removed: it cannot be revived.
 */
function countMapping(i32: Int32Array, backing: number): boolean {
  for (;;) {
    const mappings = Atomics.load(i32, backing + Backing.mappings)
    if (mappings === 0) return false
    if (Atomics.compareExchange(i32, backing + Backing.mappings, mappings, mappings + 1) === mappings)
      return true
  }
}
