/**
 * Moves an ArrayBuffer: the sender loses it. The bytes are copied into the arena and out of it, as for any
 * buffer: shared memory cannot move a buffer, and a task that is not started has no thread yet to which the
 * platform could move it. The sender's memory is released immediately.
 */

/** Throws if an entry is no object, or a view of a buffer, which cannot be moved without the buffer. */
export function checkMovable(transfer: readonly unknown[]): void {
  for (const [index, entry] of transfer.entries()) {
    if (ArrayBuffer.isView(entry)) {
      throw new TypeError(
        `transfer[${index}]: a view of a buffer cannot be moved; list its buffer, as in [pixels.buffer]`,
      )
    }
    if (typeof entry !== 'object' || entry === null) {
      throw new TypeError(
        `transfer[${index}]: ${String(entry)} is not an object that can be moved; give ArrayBuffers or ports`,
      )
    }
  }
}

/** Throws unless every entry can be moved. */
export function checkTransfer(transfer: readonly unknown[]): void {
  for (const [index, buffer] of transfer.entries()) {
    if (!isArrayBuffer(buffer))
      throw new TypeError(`transfer[${index}]: not an ArrayBuffer; only ArrayBuffers can be moved here`)
    if (transfer.indexOf(buffer) !== index) {
      throw new TypeError(`transfer[${index}]: the same ArrayBuffer is listed twice; list it once`)
    }
    if (isDetached(buffer))
      throw new TypeError(
        `transfer[${index}]: the ArrayBuffer is detached; list buffers that are still attached`,
      )
  }
}

/** Detaches the buffers, after they were checked and their bytes copied. */
export function detach(transfer: readonly ArrayBuffer[]): void {
  for (const buffer of transfer) {
    const move = (buffer as { transfer?: (length: number) => ArrayBuffer }).transfer
    if (move === undefined) structuredClone(buffer, { transfer: [buffer] })
    else move.call(buffer, 0)
  }
}

export function isArrayBuffer(value: unknown): value is ArrayBuffer {
  return Object.prototype.toString.call(value) === '[object ArrayBuffer]'
}

export function isDetached(buffer: ArrayBuffer): boolean {
  const { detached } = buffer as { detached?: boolean }
  if (detached !== undefined) return detached
  if (buffer.byteLength !== 0) return false
  try {
    return new Uint8Array(buffer).length !== 0
  } catch {
    return true
  }
}
