/**
 * Strings in words: one byte for each unit if every unit is less than 256, else two bytes. Any string arrives
 * unchanged, lone surrogates included. Long strings use the platform's routines on Node; the others use
 * loops.
 */
interface NativeBytes extends Uint8Array {
  latin1Write(text: string, at: number, length: number): number
  latin1Slice(from: number, to: number): string
  ucs2Write(text: string, at: number, length: number): number
  ucs2Slice(from: number, to: number): string
}
interface NativeBuffers {
  from(buffer: ArrayBufferLike, offset: number, length: number): NativeBytes
}

const buffers = (globalThis as unknown as { Buffer?: NativeBuffers & { prototype: Partial<NativeBytes> } })
  .Buffer
const native =
  buffers?.prototype.latin1Write !== undefined && buffers.prototype.ucs2Write !== undefined
    ? buffers
    : undefined

/** Up to this length a loop is faster than a call into the platform. */
const LOOP_MAX = 24
/** String.fromCharCode takes its units as arguments: this bounds the stack. */
const CHUNK = 4096

const beyondLatin1 = /[\u0100-\uffff]/

export class TextBytes {
  private readonly bytes: Uint8Array
  private readonly units: Uint16Array
  private readonly native: NativeBytes | null

  constructor(buffer: ArrayBufferLike) {
    this.bytes = new Uint8Array(buffer)
    this.units = new Uint16Array(buffer, 0, buffer.byteLength >>> 1)
    this.native = native === undefined ? null : native.from(buffer, 0, buffer.byteLength)
  }

  /**
   * Writes `text` at byte `at`, one byte for each unit, and returns true. Returns false if a unit does not
   * fit; the bytes are then garbage.
   */
  writeLatin1(text: string, at: number): boolean {
    const length = text.length
    if (length > LOOP_MAX && this.native !== null) {
      if (beyondLatin1.test(text)) return false
      this.native.latin1Write(text, at, length)
      return true
    }
    const bytes = this.bytes
    let all = 0
    for (let index = 0; index < length; index++) {
      const unit = text.charCodeAt(index)
      all |= unit
      bytes[at + index] = unit
    }
    return all < 256
  }

  writeUtf16(text: string, at: number): void {
    const length = text.length
    if (length > LOOP_MAX && this.native !== null) {
      this.native.ucs2Write(text, at, length * 2)
      return
    }
    const units = this.units
    const start = at >>> 1
    for (let index = 0; index < length; index++) units[start + index] = text.charCodeAt(index)
  }

  readLatin1(at: number, length: number): string {
    if (length > LOOP_MAX && this.native !== null) return this.native.latin1Slice(at, at + length)
    return fromUnits(this.bytes, at, length)
  }

  readUtf16(at: number, length: number): string {
    if (length > LOOP_MAX && this.native !== null) return this.native.ucs2Slice(at, at + length * 2)
    return fromUnits(this.units, at >>> 1, length)
  }
}

function fromUnits(units: Uint8Array | Uint16Array, start: number, length: number): string {
  let text = ''
  if (length <= LOOP_MAX) {
    let index = start
    const end = start + length
    for (; index + 4 <= end; index += 4) {
      text += String.fromCharCode(units[index], units[index + 1], units[index + 2], units[index + 3])
    }
    for (; index < end; index++) text += String.fromCharCode(units[index])
    return text
  }
  for (let from = 0; from < length; from += CHUNK) {
    const chunk = units.subarray(start + from, start + Math.min(length, from + CHUNK))
    text += String.fromCharCode.apply(null, chunk as unknown as number[])
  }
  return text
}
