import { checkMovable, checkTransfer, isArrayBuffer } from '../../payload/transfer.ts'

/** The value that a task returns to transfer objects with its result. */
export class TransferredResult {
  readonly value: unknown
  readonly transfer: readonly object[]

  constructor(value: unknown, transfer: readonly object[]) {
    this.value = value
    this.transfer = transfer
  }
}

/**
 * Returned by a task, transfers the objects in `transfer` with the value: ArrayBuffers, and in Node and
 * browsers all that `postMessage` transfers, such as ports. `return move({ pixels }, [pixels.buffer])`.
 */
export function move<T>(value: T, transfer: readonly object[]): T {
  if (!Array.isArray(transfer))
    throw new TypeError(
      'move(value, transfer): transfer is not a list of objects; give a list, as in [buffer]',
    )
  checkMovable(transfer)
  if (onlyBuffers(transfer)) checkTransfer(transfer)
  return new TransferredResult(value, transfer) as unknown as T
}

/** Whether all transferred objects are ArrayBuffers, which the arena can carry. */
export function onlyBuffers(transfer: readonly object[]): transfer is readonly ArrayBuffer[] {
  return transfer.every(isArrayBuffer)
}

/** Below this many bytes two copies through the arena cost less than a message. */
const MOVE_BYTES_LEAST = 256 * 1024
const PARTS_MOST = 64

/**
 * Whether a message carries these values as the arena would, and moves their buffers without a copy. A value
 * consists of transferred buffers, views of them and primitive values, alone or in one plain object or list.
 */
export function movesByMessage(values: readonly unknown[], transfer: readonly ArrayBuffer[]): boolean {
  if (values.length > PARTS_MOST) return false
  if (transfer.reduce((sum, { byteLength }) => sum + byteLength, 0) < MOVE_BYTES_LEAST) return false
  const isPart = (part: unknown): boolean =>
    part === null ||
    (typeof part !== 'object' && typeof part !== 'function' && typeof part !== 'symbol') ||
    transfer.includes((ArrayBuffer.isView(part) ? part.buffer : part) as ArrayBuffer)
  return values.every(value => isPart(value) || hasOnly(value, isPart))
}

/** Whether it is a plain object or list of a few such parts, without getters and hidden properties. */
function hasOnly(value: unknown, isPart: (part: unknown) => boolean): boolean {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== Array.prototype) return false
  const parts = Object.getOwnPropertyDescriptors(value)
  const keys = Reflect.ownKeys(parts)
  const isList = prototype === Array.prototype
  return (
    keys.length <= PARTS_MOST &&
    keys.every(key => {
      const part = (parts as Record<PropertyKey, PropertyDescriptor>)[key]!
      if (isList && key === 'length') return true
      return typeof key === 'string' && part.enumerable === true && 'value' in part && isPart(part.value)
    })
  )
}
