/**
 * The part of protobuf's wire format that a trace needs. An inner message gets its length afterwards, in a
 * varint that always has four bytes, so nothing is measured or copied twice.
 */
const VARINT = 0
const FIXED64 = 1
const BYTES = 2
const FIXED32 = 5
const LENGTH_BYTES = 4

const encoder = new TextEncoder()
const decoder = new TextDecoder()

export class ProtoWriter {
  private bytes = new Uint8Array(1 << 14)
  private view = new DataView(this.bytes.buffer)
  length = 0

  /** A whole number, 0 or more, below 2^53. */
  uint(field: number, value: number): void {
    this.reserve(20)
    this.varint(field * 8 + VARINT)
    this.varint(value)
  }

  /** A whole number of either sign, as protobuf's int64. */
  int(field: number, value: number): void {
    if (value >= 0) return this.uint(field, value)
    this.reserve(20)
    this.varint(field * 8 + VARINT)
    let rest = BigInt.asUintN(64, BigInt(value))
    for (; rest > 0x7fn; rest >>= 7n) this.bytes[this.length++] = Number(rest & 0x7fn) | 0x80
    this.bytes[this.length++] = Number(rest)
  }

  fixed64(field: number, value: number): void {
    this.reserve(20)
    this.varint(field * 8 + FIXED64)
    this.view.setUint32(this.length, value >>> 0, true)
    this.view.setUint32(this.length + 4, Math.floor(value / 0x1_0000_0000), true)
    this.length += 8
  }

  double(field: number, value: number): void {
    this.reserve(20)
    this.varint(field * 8 + FIXED64)
    this.view.setFloat64(this.length, value, true)
    this.length += 8
  }

  string(field: number, value: string): void {
    this.reserve(20 + value.length * 3)
    this.varint(field * 8 + BYTES)
    const at = this.length + LENGTH_BYTES
    const { written } = encoder.encodeInto(value, this.bytes.subarray(at))
    this.padded(this.length, written)
    this.length = at + written
  }

  /** Begins an inner message. Pass the result to `end`. */
  begin(field: number): number {
    this.reserve(20)
    this.varint(field * 8 + BYTES)
    this.length += LENGTH_BYTES
    return this.length
  }

  end(begun: number): void {
    this.padded(begun - LENGTH_BYTES, this.length - begun)
  }

  /** The bytes since the last call. */
  take(): Uint8Array<ArrayBuffer> {
    const taken = this.bytes.slice(0, this.length)
    this.length = 0
    return taken
  }

  private padded(at: number, length: number): void {
    if (length >= 2 ** (7 * LENGTH_BYTES)) throw new RangeError('a message of a trace is 256 MiB at most')
    for (let byte = 0; byte < LENGTH_BYTES; byte++) {
      const more = byte < LENGTH_BYTES - 1 ? 0x80 : 0
      this.bytes[at + byte] = ((length >>> (7 * byte)) & 0x7f) | more
    }
  }

  private varint(value: number): void {
    let rest = value
    for (; rest > 0x7f; rest = Math.floor(rest / 128)) this.bytes[this.length++] = (rest % 128) | 0x80
    this.bytes[this.length++] = rest
  }

  private reserve(more: number): void {
    if (this.length + more <= this.bytes.length) return
    const grown = new Uint8Array(Math.max(this.bytes.length * 2, this.length + more))
    grown.set(this.bytes.subarray(0, this.length))
    this.bytes = grown
    this.view = new DataView(grown.buffer)
  }
}

/**
 * One field of a message: a number for varints and fixed fields (a double on request), bytes for the rest.
 */
export class ProtoReader {
  private readonly bytes: Uint8Array
  private readonly view: DataView
  private at: number
  private readonly limit: number
  field = 0
  private wire = 0

  constructor(
    bytes: Uint8Array,
    from = 0,
    to: number = bytes.length,
    view: DataView = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength),
  ) {
    this.bytes = bytes
    this.view = view
    this.at = from
    this.limit = to
  }

  /** Moves to the next field. Returns false at the end. */
  next(): boolean {
    if (this.at >= this.limit) return false
    const tag = this.readVarint()
    this.field = tag >>> 3
    this.wire = tag & 7
    return true
  }

  number(): number {
    if (this.wire === VARINT) return this.readVarint()
    if (this.wire === FIXED64) {
      this.at += 8
      return this.view.getUint32(this.at - 8, true) + this.view.getUint32(this.at - 4, true) * 0x1_0000_0000
    }
    throw this.broken(`field ${this.field} is not a number`)
  }

  /** A signed number. A negative one takes ten bytes, and only then is it read as a BigInt. */
  int(): number {
    const from = this.at
    const value = this.readVarint()
    if (value <= Number.MAX_SAFE_INTEGER) return value
    this.at = from
    return Number(BigInt.asIntN(64, this.readBig()))
  }

  double(): number {
    this.at += 8
    return this.view.getFloat64(this.at - 8, true)
  }

  string(): string {
    const from = this.span()
    return decoder.decode(this.bytes.subarray(from, this.at))
  }

  message(): ProtoReader {
    const from = this.span()
    return new ProtoReader(this.bytes, from, this.at, this.view)
  }

  skip(): void {
    if (this.wire === VARINT) this.readVarint()
    else if (this.wire === FIXED64) this.at += 8
    else if (this.wire === FIXED32) this.at += 4
    else this.span()
  }

  /** Steps over a field with a length. Returns where it begins; it ends here. */
  private span(): number {
    if (this.wire !== BYTES) throw this.broken(`field ${this.field} is not a message or a string`)
    const length = this.readVarint()
    const from = this.at
    this.at += length
    if (this.at > this.limit) throw this.broken('it ends in the middle of a field')
    return from
  }

  private readVarint(): number {
    const { bytes, limit } = this
    let at = this.at
    if (at < limit && bytes[at] < 0x80) {
      this.at = at + 1
      return bytes[at]
    }
    let value = 0
    let scale = 1
    for (;;) {
      if (at >= limit) throw this.broken('it ends in the middle of a number')
      const byte = bytes[at++]
      value += (byte & 0x7f) * scale
      if (byte < 0x80) break
      scale *= 128
    }
    this.at = at
    return value
  }

  private readBig(): bigint {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      if (this.at >= this.limit) throw this.broken('it ends in the middle of a number')
      const byte = this.bytes[this.at++]
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }

  private broken(why: string): Error {
    return new SyntaxError(`not a trace, at byte ${this.at}: ${why}`)
  }
}
