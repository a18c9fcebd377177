import { checkTransfer, isArrayBuffer } from '../../payload/transfer.ts'

/** What a task returns to give objects away with its result. */
export class Moved {
  readonly value: unknown
  readonly transfer: readonly object[]

  constructor(value: unknown, transfer: readonly object[]) {
    this.value = value
    this.transfer = transfer
  }
}

/**
 * Returned by a task, gives the objects in `transfer` away with the value: ArrayBuffers, and in Node and
 * browsers all that `postMessage` transfers, such as ports. `return move({ pixels }, [pixels.buffer])`.
 */
export function move<T>(value: T, transfer: readonly object[]): T {
  if (!Array.isArray(transfer))
    throw new TypeError('move(value, transfer): transfer is not a list of objects')
  if (onlyBuffers(transfer)) checkTransfer(transfer)
  return new Moved(value, transfer) as unknown as T
}

/** Whether the arena can carry all that is transferred. */
export function onlyBuffers(transfer: readonly object[]): transfer is readonly ArrayBuffer[] {
  return transfer.every(isArrayBuffer)
}
