import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MpscRing, mpscWords } from './mpsc.ts'
import { SpscRing, spscWords } from './spsc.ts'

interface Ring {
  push(value: number): boolean
  pop(): number
  readonly length: number
}

const kinds: [name: string, make: (capacity: number) => { ring: Ring; holds: number; empty: number }][] = [
  [
    'SPSC',
    capacity => ({
      ring: new SpscRing(new Int32Array(new SharedArrayBuffer(4 * spscWords(capacity))), 0, capacity),
      holds: capacity - 1,
      empty: 0,
    }),
  ],
  [
    'MPSC',
    capacity => {
      const ring = new MpscRing(new Int32Array(new SharedArrayBuffer(4 * mpscWords(capacity))), 0, capacity)
      ring.initialize()
      return { ring, holds: capacity, empty: -1 }
    },
  ],
]

for (const [name, make] of kinds) {
  test(`an ${name} ring behaves as a bounded queue does, over 100,000 random operations`, () => {
    let operations = 0
    fc.assert(
      fc.property(
        fc.constantFrom(2, 4, 16, 256),
        fc.array(fc.integer({ min: -3, max: 4 }), { minLength: 900 }),
        (capacity, script) => {
          const { ring, holds, empty } = make(capacity)
          const model: number[] = []
          let value = 1
          for (const step of script.concat(script)) {
            for (let i = 0; i < Math.abs(step); i++) {
              operations++
              if (step > 0) {
                const room = model.length < holds
                expect(ring.push(value)).toBe(room)
                if (room) model.push(value)
                value++
              } else {
                expect(ring.pop()).toBe(model.shift() ?? empty)
              }
            }
            expect(ring.length).toBe(model.length)
          }
        },
      ),
      { numRuns: 60 },
    )
    expect(operations).toBeGreaterThanOrEqual(100_000)
  })

  test(`an ${name} ring that is full refuses a push, and takes one again after a pop`, () => {
    const { ring, holds } = make(4)
    for (let i = 0; i < holds; i++) expect(ring.push(i + 1)).toBe(true)
    expect(ring.push(99)).toBe(false)
    expect(ring.pop()).toBe(1)
    expect(ring.push(99)).toBe(true)
  })
}

test('an MPSC ring keeps its order when its counters wrap around 32 bits', () => {
  const i32 = new Int32Array(new SharedArrayBuffer(4 * mpscWords(4)))
  const ring = new MpscRing(i32, 0, 4)
  ring.initialize()
  // Put it where 2^32 - 6 values have gone through: head, tail, and the marks that such a ring would hold.
  const start = -6
  i32[0] = start
  i32[16] = start
  for (let index = start; index < start + 4; index++) i32[32 + (index & 3)] = (index >>> 2) | 0x8000_0000
  let sent = 0
  let received = 0
  for (let round = 0; round < 20; round++) {
    for (let i = 0; i < 3; i++) expect(ring.push(sent++)).toBe(true)
    for (let i = 0; i < 3; i++) expect(ring.pop()).toBe(received++)
  }
  expect(ring.pop()).toBe(-1)
})

test('capacities that a ring cannot have are refused by value', () => {
  const i32 = new Int32Array(1024)
  for (const capacity of [0, 1, 2.5, Number.NaN])
    expect(() => new SpscRing(i32, 0, capacity)).toThrow(`capacity: ${capacity}`)
  for (const capacity of [0, 1, 3, 12, Number.NaN])
    expect(() => new MpscRing(i32, 0, capacity)).toThrow(`capacity: ${capacity}`)
  expect(() => new SpscRing(i32, 1020, 256)).toThrow(/inside the memory/)
})
