import type { ViewMessage } from './source.ts'

/**
 * Messages on a byte stream. A frame is
 *
 *   4 bytes   length of the header, little endian
 *   4 bytes   length of the body
 *   header    JSON: the message without its bytes
 *   body      the bytes of `events` and `trace`
 */
const LENGTHS = 8
/** A trace file may be large; a longer frame is an error of the stream. */
const FRAME_MAX = 0x7fff_ffff

const encoder = new TextEncoder()
const decoder = new TextDecoder()

export function encodeFrame(message: ViewMessage): Uint8Array<ArrayBuffer>[] {
  const body = 'bytes' in message ? message.bytes : new Uint8Array(0)
  const { bytes: _, ...rest } = message as { bytes?: Uint8Array }
  const header = encoder.encode(JSON.stringify(rest))
  const start = new Uint8Array(LENGTHS + header.length)
  const lengths = new DataView(start.buffer)
  lengths.setUint32(0, header.length, true)
  lengths.setUint32(4, body.length, true)
  start.set(header, LENGTHS)
  return body.length === 0 ? [start] : [start, body as Uint8Array<ArrayBuffer>]
}

/** Puts the pieces of a stream together. Copies each byte once, also of a large frame. */
export class FrameReader {
  private pieces: Uint8Array[] = []
  private size = 0

  /** Passes on each message that the piece completes. Throws if the stream is not one of frames. */
  push(piece: Uint8Array, listen: (message: ViewMessage) => void): void {
    this.pieces.push(piece)
    this.size += piece.length
    for (;;) {
      if (this.size < LENGTHS) return
      const lengths = this.peek(LENGTHS)
      const view = new DataView(lengths.buffer, lengths.byteOffset, LENGTHS)
      const header = view.getUint32(0, true)
      const body = view.getUint32(4, true)
      if (header + body > FRAME_MAX) throw new SyntaxError('not a stream of the view: a frame is too long')
      if (this.size < LENGTHS + header + body) return
      this.take(LENGTHS)
      const message = JSON.parse(decoder.decode(this.take(header))) as ViewMessage
      listen(this.withBody(message, body))
    }
  }

  /** The first bytes, which stay. */
  private peek(count: number): Uint8Array {
    const [first] = this.pieces
    if (first !== undefined && first.length >= count) return first.subarray(0, count)
    const taken = this.take(count)
    this.pieces.unshift(taken)
    this.size += count
    return taken
  }

  private withBody(message: ViewMessage, body: number): ViewMessage {
    if (message.kind !== 'events' && message.kind !== 'trace') return message
    return { ...message, bytes: this.take(body) }
  }

  private take(count: number): Uint8Array {
    const [first] = this.pieces
    this.size -= count
    if (first !== undefined && first.length > count) {
      this.pieces[0] = first.subarray(count)
      return first.subarray(0, count)
    }
    if (first?.length === count) {
      this.pieces.shift()
      return first
    }
    const whole = new Uint8Array(count)
    let at = 0
    let used = 0
    while (at < count) {
      const piece = this.pieces[used]
      const part = Math.min(piece.length, count - at)
      whole.set(part === piece.length ? piece : piece.subarray(0, part), at)
      at += part
      if (part === piece.length) used++
      else this.pieces[used] = piece.subarray(part)
    }
    this.pieces.splice(0, used)
    return whole
  }
}
