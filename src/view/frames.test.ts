import fc from 'fast-check'
import { expect, test } from 'vitest'
import { encodeFrame, FrameReader } from './frames.ts'
import type { ViewMessage } from './source.ts'

const message: fc.Arbitrary<ViewMessage> = fc.oneof(
  fc.record({ kind: fc.constant('ended' as const), why: fc.string() }),
  fc.record({
    kind: fc.constant('events' as const),
    now: fc.integer(),
    lost: fc.nat(),
    bytes: fc.uint8Array({ maxLength: 300 }),
  }),
  fc.record({
    kind: fc.constant('trace' as const),
    name: fc.string(),
    bytes: fc.uint8Array({ maxLength: 300 }),
  }),
)

test('messages arrive whole and in order, in whatever pieces their bytes travel', () => {
  fc.assert(
    fc.property(
      fc.array(message, { maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 40 })),
      (sent, cuts) => {
        const stream = Buffer.concat(sent.flatMap(one => encodeFrame(one)))
        const reader = new FrameReader()
        const got: ViewMessage[] = []
        let at = 0
        for (let n = 0; at < stream.length; n++) {
          const length = cuts[n] ?? stream.length
          reader.push(new Uint8Array(stream.subarray(at, at + length)), one => got.push(one))
          at += length
        }
        const plain = (one: ViewMessage): unknown =>
          'bytes' in one ? { ...one, bytes: [...one.bytes] } : one
        expect(got.map(plain)).toEqual(sent.map(plain))
      },
    ),
  )
})

test('a stream that is not one of frames is an error', () => {
  const bytes = new TextEncoder().encode('HTTP/1.1 200 OK, and more')
  expect(() => new FrameReader().push(bytes, () => undefined)).toThrow('not a stream of the view')
})
