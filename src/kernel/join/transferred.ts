import { checkTransfer, isArrayBuffer } from '../../payload/transfer.ts'

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
  if (onlyBuffers(transfer)) checkTransfer(transfer)
  return new TransferredResult(value, transfer) as unknown as T
}

/** Whether all transferred objects are ArrayBuffers, which the arena can carry. */
export function onlyBuffers(transfer: readonly object[]): transfer is readonly ArrayBuffer[] {
  return transfer.every(isArrayBuffer)
}
