import type { RingEvent } from '../arena/rings/eventring.ts'

/**
 * Ring events on their way to a page. An event is EVENT_BYTES long, little endian:
 *
 *   0   float64  time, in milliseconds of the kernel's clock
 *   8   int32    ring, kind, task, a, b, c, d, 0
 */
const EVENT_BYTES = 40

export function packEvents(events: readonly RingEvent[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(events.length * EVENT_BYTES)
  const times = new Float64Array(bytes.buffer)
  const words = new Int32Array(bytes.buffer)
  events.forEach(({ time, ring, kind, task, a, b, c, d }, n) => {
    times[(n * EVENT_BYTES) >> 3] = time
    words.set([ring, kind, task, a, b, c, d, 0], (n * EVENT_BYTES + 8) >> 2)
  })
  return bytes
}

export function unpackEvents(bytes: Uint8Array): RingEvent[] {
  const count = Math.floor(bytes.length / EVENT_BYTES)
  // The bytes of a stream are at any offset.
  const { buffer } = bytes.slice(0, count * EVENT_BYTES)
  const times = new Float64Array(buffer)
  const words = new Int32Array(buffer)
  return Array.from({ length: count }, (_, n) => {
    const at = (n * EVENT_BYTES + 8) >> 2
    return {
      time: times[(n * EVENT_BYTES) >> 3],
      ring: words[at],
      kind: words[at + 1],
      task: words[at + 2],
      a: words[at + 3],
      b: words[at + 4],
      c: words[at + 5],
      d: words[at + 6],
    }
  })
}
