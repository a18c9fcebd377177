/** Properties of buffers and views that the platform does not report. */
import * as kinds from './kinds.ts'

export function isResizable(buffer: ArrayBufferLike): boolean {
  const { resizable, growable } = buffer as { resizable?: boolean; growable?: boolean }
  return resizable === true || growable === true
}

/**
 * Whether the length of a view follows its resizable buffer. The platform does not report this, so the buffer
 * is resized by one element and back. A growable shared buffer cannot shrink: a view that ends at its end
 * counts as following.
 */
export function followsBuffer(view: ArrayBufferView): boolean {
  const buffer = view.buffer as ArrayBuffer & {
    resizable?: boolean
    maxByteLength: number
    resize(length: number): void
  }
  if (!isResizable(buffer)) return false
  const step = (view as { BYTES_PER_ELEMENT?: number }).BYTES_PER_ELEMENT ?? 1
  const length = buffer.byteLength
  const viewed = view.byteLength
  if (length - (view.byteOffset + viewed) >= step) return false
  if (buffer.resizable !== true) return view.byteOffset + viewed === length
  if (length + step <= buffer.maxByteLength) {
    buffer.resize(length + step)
    const follows = view.byteLength !== viewed
    buffer.resize(length)
    return follows
  }
  if (viewed === 0) return true
  const tail = new Uint8Array(buffer, length - step, step).slice()
  buffer.resize(length - step)
  const follows = !isOutOfBounds(view)
  buffer.resize(length)
  new Uint8Array(buffer, length - step, step).set(tail)
  return follows
}

const arrayKeys = Uint8Array.prototype.keys

/** Whether a view reaches beyond its resizable buffer: then its methods throw. */
export function isOutOfBounds(view: ArrayBufferView): boolean {
  try {
    if (kinds.typedArrayName(view) === undefined) return view.byteLength < 0
    arrayKeys.call(view as Uint8Array)
    return false
  } catch {
    return true
  }
}
