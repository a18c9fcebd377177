import type { KernelThread } from '../../arena/sync/thread.ts'
import { HEAP_HANDOVER } from '../../futex/core/records.ts'
import { here } from '../../kernel/cpu/here.ts'
import type { PayloadCodec } from '../../payload/codec.ts'

/**
 * A value in four words. A value that does not fit is encoded as a payload, and the words name it.
 *
 *   word 0     words 1 to 3
 *   NOTHING    -
 *   UNDEFINED, NULL, TRUE, FALSE
 *   NUMBER     2, 3: the float64
 *   PAYLOAD    1: the payload word, of a heap that came with the channel
 *   HEAP_HANDOVER  the same, of the kernel's heap
 *   TAKEN      - in a sender's waiter: the value was received
 *   CLOSED     - in a waiter of either kind: the channel was closed
 */
export const VALUE_WORDS = 4
export const NOTHING = 0
const UNDEFINED = 1
const NULL = 2
const TRUE = 3
const FALSE = 4
const NUMBER = 5
const PAYLOAD = 6
export const TAKEN = 7
export const CLOSED = 8

/** Words and float64s over one buffer. */
export interface Words {
  readonly i32: Int32Array
  readonly f64: Float64Array
}

/** Writes a value. If it needs a payload, the payload belongs to this thread until `publishValue`. */
export function writeValue({ i32, f64 }: Words, at: number, value: unknown, codec: () => PayloadCodec): void {
  switch (typeof value) {
    case 'number':
      i32[at] = NUMBER
      f64[(at + 2) >> 1] = value
      return
    case 'boolean':
      i32[at] = value ? TRUE : FALSE
      return
    case 'undefined':
      i32[at] = UNDEFINED
      return
    default:
      if (value === null) {
        i32[at] = NULL
      } else {
        const made = codec()
        i32[at + 1] = made.encode(value, 'value')
        i32[at] = made === here.view?.codec ? HEAP_HANDOVER : PAYLOAD
      }
  }
}

/** The heap block that the words name, or 0. */
export function blockIn(i32: Int32Array, at: number): number {
  return hasBlock(i32, at) ? i32[at + 1] : 0
}

/** From here on the words own the payload. */
export function publishValue({ i32 }: Words, at: number, codec: () => PayloadCodec): void {
  if (hasBlock(i32, at)) codec().heap.publish(i32[at + 1])
}

/**
 * The payload belongs to the thread again, and the words no longer name it. In this order: between the two
 * stores both have it, and recovery takes the thread for the owner.
 */
export function takeValue({ i32 }: Words, at: number, codec: () => PayloadCodec, thread: KernelThread): void {
  if (hasBlock(i32, at)) codec().heap.claim(thread, i32[at + 1])
  i32[at] = NOTHING
}

function hasPayload(i32: Int32Array, at: number): boolean {
  return i32[at] === HEAP_HANDOVER || i32[at] === PAYLOAD
}

function hasBlock(i32: Int32Array, at: number): boolean {
  return hasPayload(i32, at) && i32[at + 1] > 0
}

/** Reads a value and frees its payload. */
export function readValue(
  words: Words,
  at: number,
  codec: () => PayloadCodec,
  thread: KernelThread,
): unknown {
  const { i32, f64 } = words
  switch (i32[at]) {
    case NUMBER:
      return f64[(at + 2) >> 1]
    case NULL:
      return null
    case TRUE:
      return true
    case FALSE:
      return false
    case HEAP_HANDOVER:
    case PAYLOAD: {
      const word = i32[at + 1]
      const made = codec()
      takeValue(words, at, codec, thread)
      const value = made.decode(word)
      made.free(word)
      return value
    }
    default:
      return undefined
  }
}

/** Frees the payload of a value that is not read. */
export function dropValue({ i32 }: Words, at: number, codec: () => PayloadCodec): void {
  if (hasPayload(i32, at)) codec().free(i32[at + 1])
  i32[at] = NOTHING
}

/** Copies the first word last: it makes the value visible. */
export function copyValue(from: Int32Array, at: number, to: Int32Array, toAt: number): void {
  for (let word = VALUE_WORDS - 1; word >= 0; word--) to[toAt + word] = from[at + word]
}
