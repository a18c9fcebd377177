import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import { FUTEX2_PRIVATE, FUTEX2_SIZE_MASK } from '../../futex/operations/call.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import { nextObject } from '../../futex/core/domainwords.ts'
import { EFAULT, EINVAL, FutexError } from '../../futex/core/errno.ts'
import type { Futexes } from '../../futex/core/futexes.ts'
import { FutexWord, type MappedBuffer, wordsOver } from '../../futex/core/space.ts'
import { here } from '../../kernel/cpu/here.ts'

/**
 * A word of any shared memory. All threads of a kernel know it by the id under which its buffer travels in
 * arguments, results and channels (payload/publishedobjects.ts), the size of the word, and its number:
 *
 *   owner of the futex   -(FIRST_KEY + 8 * id + PRIVATE_KEY + size)       ids of objects are below FIRST_KEY
 *   index                the word's number from the start of the buffer, in words of its size
 *
 * A call with FUTEX2_PRIVATE has another key than one without: as on Linux, the two do not meet. Outside of a
 * kernel a thread gives a buffer an id; another thread that has the buffer joins with
 * `futex.join(buffer, id)`.
 */
const FIRST_KEY = 0x4000_0000
const PRIVATE_KEY = 4
/** The number of a word is an int32 in its futex. */
const MAX_INDEX = 0x7fff_ffff

/**
 * A view of shared memory: words of 8, 16, 32 or 64 bits, as in futex2. Inheritance and wakeOp need words of
 * 32 bits.
 */
export type FutexView =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array

interface Known {
  readonly id: number
  readonly mapped: (SharedMemory | undefined)[]
}

/** A buffer as words of one size, in place of a mapping. It exists as long as a thread has the buffer. */
class SharedMemory {
  readonly i32: Int32Array
  readonly mapping: number
  readonly backing: number
  private readonly words = new Map<number, FutexWord>()

  constructor(words: FutexView, key: number) {
    this.i32 = words as Int32Array
    this.mapping = -(key + PRIVATE_KEY) | 0
    this.backing = -key | 0
  }

  isMapped(): boolean {
    return true
  }

  isBacked(): boolean {
    return true
  }

  word(context: FutexContext, index: number): FutexWord {
    let word = this.words.get(index)
    if (word === undefined) {
      word = new FutexWord(context, this as unknown as MappedBuffer, index)
      this.words.set(index, word)
    }
    return word
  }
}

const domains = new WeakMap<Futexes, WeakMap<SharedArrayBuffer, Known>>()

function knownIn(futexes: Futexes): WeakMap<SharedArrayBuffer, Known> {
  let known = domains.get(futexes)
  if (known === undefined) domains.set(futexes, (known = new WeakMap()))
  return known
}

/** The id of the buffer, for `futex.idOf`. */
export function idOfBuffer(buffer: SharedArrayBuffer): number {
  if (!(buffer instanceof SharedArrayBuffer))
    throw new FutexError(EFAULT, 'futex.idOf', 'buffer: not a SharedArrayBuffer')
  return knownOf(currentFutexes(), buffer).id
}

/** The id of the buffer on this thread; the first call creates it. */
function knownOf(futexes: Futexes, buffer: SharedArrayBuffer): Known {
  const known = knownIn(futexes)
  let found = known.get(buffer)
  if (found === undefined) {
    const { view } = here
    const id = view === null ? nextObject(futexes.context) : view.codec.published.idOf(buffer)
    known.set(buffer, (found = { id, mapped: [] }))
  }
  return found
}

/** The size of a view's words; 0: it is no typed array. */
export function bitsOf(view: FutexView): number {
  return ArrayBuffer.isView(view) && !(view instanceof DataView) ? 8 * view.BYTES_PER_ELEMENT : 0
}

/** 0 to 3: words of 8, 16, 32 and 64 bits. */
function sizeOf(view: FutexView): number {
  return Math.log2(view.BYTES_PER_ELEMENT)
}

const Float16: (new () => object) | undefined = (globalThis as { readonly Float16Array?: new () => object })
  .Float16Array

/** A DataView, or an array of floats. */
function hasNoIntegers(view: ArrayBufferView): boolean {
  return (
    view instanceof Float64Array ||
    view instanceof Float32Array ||
    view instanceof DataView ||
    (Float16 !== undefined && view instanceof Float16)
  )
}

const arrays = [Uint8Array, Uint16Array, Int32Array, BigInt64Array] as const

/** The word that a call names. Throws EFAULT, with the wrong argument. */
export function wordOf(futexes: Futexes, what: string, view: FutexView, index: number): FutexWord {
  if (!ArrayBuffer.isView(view) || !(view.buffer instanceof SharedArrayBuffer)) {
    throw new FutexError(EFAULT, what, 'view: not a typed array over a SharedArrayBuffer')
  }
  if (hasNoIntegers(view)) {
    const kind = (view as { readonly [Symbol.toStringTag]: string })[Symbol.toStringTag]
    throw new FutexError(EINVAL, what, `view: ${kind} has no integers; use an Int32Array over its buffer`)
  }
  if (!Number.isInteger(index) || index < 0 || index >= view.length) {
    throw new FutexError(EFAULT, what, `index: ${String(index)} is not in a view of ${view.length} words`)
  }
  const buffer = view.buffer as SharedArrayBuffer
  const known = knownOf(futexes, buffer)
  const size = sizeOf(view)
  let mapped = known.mapped[size]
  if (mapped === undefined) {
    const words: FutexView = wordsOver(arrays[size] as Int32ArrayConstructor, buffer)
    known.mapped[size] = mapped = new SharedMemory(words, FIRST_KEY + 8 * known.id + size)
  }
  const at = view.byteOffset / view.BYTES_PER_ELEMENT + index
  if (at > MAX_INDEX) {
    throw new FutexError(
      EFAULT,
      what,
      `index: the word is number ${at} of its buffer, and only the first ${MAX_INDEX + 1} of each size can be waited for`,
    )
  }
  return mapped.word(futexes.context, at)
}

/** The word that a call names, which must have 32 bits: else EINVAL. */
export function lockWordOf(futexes: Futexes, what: string, view: FutexView, index: number): FutexWord {
  const word = wordOf(futexes, what, view, index)
  if (sizeOf(view) !== 2)
    throw new FutexError(
      EINVAL,
      what,
      `view: this call needs words of 32 bits, and the view has ${8 * view.BYTES_PER_ELEMENT}; use an Int32Array`,
    )
  return word
}

/**
 * The value as a word of this size holds it. EINVAL, as on Linux, for a value that does not fit, and for a
 * number where the view has bigints.
 */
export function valueIn(view: FutexView, what: string, value: number | bigint): number {
  const isBig = view instanceof BigInt64Array || view instanceof BigUint64Array
  const bits = 8 * view.BYTES_PER_ELEMENT
  const fits = isBig
    ? typeof value === 'bigint' && value >= -(1n << 63n) && value < 1n << 64n
    : Number.isInteger(value) && value >= -(2 ** (bits - 1)) && value < 2 ** bits
  if (!fits) {
    const kind = isBig ? 'a bigint' : 'an integer'
    throw new FutexError(
      EINVAL,
      what,
      `value: ${String(value)} is not ${kind} of ${bits} bits, as the view has`,
    )
  }
  if (isBig) return BigInt.asIntN(64, value as bigint) as unknown as number
  return bits === 32 ? (value as number) | 0 : (value as number) & ((1 << bits) - 1)
}

/**
 * The flags of futex2: FUTEX2_PRIVATE and a size, which must be that of the view. Undefined: the view's size,
 * and not private. Returns whether the call is shared. As on Linux, called before the word is looked up.
 */
export function sharedIn(view: FutexView, what: string, flags: number | undefined): boolean {
  if (flags === undefined) return true
  const all = FUTEX2_SIZE_MASK | FUTEX2_PRIVATE
  if (!Number.isInteger(flags) || flags < 0 || flags > all || (flags & ~all) !== 0) {
    const known = 'FUTEX2_SIZE_U8 to FUTEX2_SIZE_U64 and FUTEX2_PRIVATE; there is no NUMA node to name'
    throw new FutexError(EINVAL, what, `flags: ${String(flags)} has others than ${known}`)
  }
  const size = flags & FUTEX2_SIZE_MASK
  if (ArrayBuffer.isView(view) && size !== sizeOf(view)) {
    const [said, has] = [8 << size, 8 * view.BYTES_PER_ELEMENT]
    throw new FutexError(EINVAL, what, `flags: ${flags} says words of ${said} bits, and the view has ${has}`)
  }
  return (flags & FUTEX2_PRIVATE) === 0
}

/** The bitset of a wait or a wake: 32 bits, at least one of them set. */
export function bitsetIn(what: string, bitset: number): number {
  if (Number.isInteger(bitset) && bitset !== 0 && bitset >= -0x8000_0000 && bitset <= 0xffff_ffff)
    return bitset | 0
  throw new FutexError(EINVAL, what, `bitset: ${String(bitset)} is not a set of 32 bits; set one to 32 bits`)
}

/** The buffer has this id on this thread from now on. */
export function joinBuffer(buffer: SharedArrayBuffer, id: number): void {
  const futexes = currentFutexes()
  if (!(buffer instanceof SharedArrayBuffer))
    throw new FutexError(EFAULT, 'futex.join', 'buffer: not a SharedArrayBuffer')
  if (!Number.isInteger(id) || id < 1)
    throw new FutexError(EINVAL, 'futex.join', `id: ${String(id)} is not an id that futex.idOf gives`)
  const known = knownIn(futexes)
  const before = known.get(buffer)?.id ?? id
  if (here.view !== null || before !== id) {
    throw new FutexError(
      EINVAL,
      'futex.join',
      'buffer: it has another id on this thread already; call join before its first use',
    )
  }
  known.set(buffer, known.get(buffer) ?? { id, mapped: [] })
}
