interface NodeBuffer extends Uint8Array<ArrayBuffer> {
  copy(target: Uint8Array, at?: number): number
}

/** Node's own buffers: a new one is not cleared first, and a copy is the system's. Absent in browsers. */
const { Buffer: nodeBuffer } = globalThis as {
  Buffer?: {
    allocUnsafeSlow?(length: number): NodeBuffer
    from?(buffer: ArrayBufferLike, start: number, length: number): NodeBuffer
    readonly prototype: NodeBuffer
  }
}
const nodeCopy = nodeBuffer?.prototype.copy

/** Below this many bytes the engine's own methods are as fast. */
const LARGE = 64 * 1024

/**
 * Copies bytes into shared memory. `set` copies into shared memory word by word, and takes twice as long for
 * a mebibyte.
 */
export function copyInto(target: Uint8Array, start: number, bytes: Uint8Array): void {
  if (bytes.byteLength >= LARGE && nodeCopy?.call(bytes as NodeBuffer, target, start) === bytes.byteLength)
    return
  target.set(bytes, start)
}

/**
 * A new buffer with these bytes, by one copy from the first call on. `new Uint8Array(view)` of shared memory
 * copies byte by byte until V8 has optimised its caller.
 */
export function copyOf(u8: Uint8Array, start: number, length: number): ArrayBuffer {
  if (length >= LARGE && nodeBuffer?.allocUnsafeSlow !== undefined && nodeBuffer.from !== undefined) {
    const made = nodeBuffer.allocUnsafeSlow(length)
    const isWhole = made.byteOffset === 0 && made.buffer.byteLength === length
    if (isWhole && nodeBuffer.from(u8.buffer, u8.byteOffset + start, length).copy(made) === length)
      return made.buffer
  }
  return u8.slice(start, start + length).buffer as ArrayBuffer
}
