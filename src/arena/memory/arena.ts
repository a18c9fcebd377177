import { assert } from '../assert.ts'
import { LINE_WORDS, roundUp } from './record.ts'
import { THREAD_MAX } from '../sync/thread.ts'

/**
 * The arena: one SharedArrayBuffer that holds all kernel state. A pointer is a word index into `i32`;
 * 0 is null, because word 0 is never allocated. It is reserved at its full size at boot and never grows:
 * untouched pages cost nothing, so sizes are generous.
 *
 * Every thread carves the same regions in the same order, from the same sizes. The threads share the memory;
 * each has its own object of this class, and computes the pointers itself.
 */

/** Where a region lies. `start` is a pointer; the region is `words` long and starts on a cache line. */
export interface Region {
  readonly name: string
  readonly start: number
  readonly words: number
}

/** Words that every arena has before its first region. */
const HEADER_WORDS = LINE_WORDS + roundUp(THREAD_MAX, LINE_WORDS)
const MAGIC = 0x68656464
const MAGIC_WORD = 1
const DEBUG_WORD = 2
const SIZE_WORD = 3

/** A word for each thread: the lock that it last parked at, or released while others waited (spinlock.ts). */
export const CONTENDED_WORDS: number = LINE_WORDS

/** 8 GiB: a pointer is a positive 32-bit integer, and the index of a word. */
export const ARENA_BYTES_MAX = 0x2_0000_0000

export class Arena {
  readonly buffer: SharedArrayBuffer
  readonly i32: Int32Array<SharedArrayBuffer>
  readonly u8: Uint8Array<SharedArrayBuffer>
  readonly f64: Float64Array<SharedArrayBuffer>
  /**
   * Debug builds check lock order, recursion and foreign release. Decided once, by the thread that makes the
   * arena.
   */
  readonly debug: boolean

  private constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer
    this.i32 = new Int32Array(buffer)
    this.u8 = new Uint8Array(buffer)
    this.f64 = new Float64Array(buffer)
    this.debug = this.i32[DEBUG_WORD] !== 0
  }

  /** Reserves and marks a new arena for this plan. Called once, by the thread that boots the kernel. */
  static create(plan: ArenaPlan, options: { debug?: boolean } = {}): Arena {
    const buffer = new SharedArrayBuffer(plan.words * 4)
    const i32 = new Int32Array(buffer)
    i32[MAGIC_WORD] = MAGIC
    i32[DEBUG_WORD] = options.debug ? 1 : 0
    i32[SIZE_WORD] = plan.words
    return new Arena(buffer)
  }

  /** Attaches to an arena that another thread made, from the buffer that it sent. */
  static attach(buffer: SharedArrayBuffer): Arena {
    const i32 = new Int32Array(buffer)
    if (i32[MAGIC_WORD] !== MAGIC || i32[SIZE_WORD] !== i32.length) {
      throw new TypeError('Arena.attach(buffer): the buffer is not a heddle arena; pass the `buffer` of one')
    }
    return new Arena(buffer)
  }
}

/** Carves regions in order. Deterministic: the same calls give the same pointers on every thread. */
export class ArenaPlan {
  readonly regions: Region[] = []
  words: number = HEADER_WORDS

  /** Reserves `words` words, on cache lines of their own. */
  reserve(name: string, words: number): Region {
    assert(Number.isInteger(words) && words > 0, 'a region needs a positive number of words')
    const region: Region = { name, start: this.words, words }
    const end = roundUp(this.words + words, LINE_WORDS)
    if (end * 4 > ARENA_BYTES_MAX) {
      throw new RangeError(
        `arena: ${name} would bring it to ${formatBytes(end * 4)}, and it can have at most ${formatBytes(ARENA_BYTES_MAX)}; lower a size in the boot options`,
      )
    }
    this.words = end
    this.regions.push(region)
    return region
  }
}

/** No room. The message names the store, its size, and the option that makes it larger. */
export class ArenaFullError extends Error {
  override readonly name = 'ArenaFullError'
  readonly code = 'ERR_HEDDLE_ARENA_FULL'
  readonly store: string
  readonly capacity: number
  readonly option: string

  constructor(store: string, capacity: string, option: string, capacityValue: number) {
    super(`the arena's ${store} is full (${capacity}); raise the option \`${option}\` at boot`)
    this.store = store
    this.capacity = capacityValue
    this.option = option
  }
}

export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB']
  let unit = 0
  let value = bytes
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${Number.isInteger(value) ? value : value.toFixed(1)} ${units[unit]}`
}
