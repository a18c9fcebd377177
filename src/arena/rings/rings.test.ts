import fc from 'fast-check'
import { expect, test } from 'vitest'
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

test('capacities that a ring cannot have are refused by value', () => {
  const i32 = new Int32Array(1024)
  for (const capacity of [0, 1, 2.5, Number.NaN])
    expect(() => new SpscRing(i32, 0, capacity)).toThrow(`capacity: ${capacity}`)
  expect(() => new SpscRing(i32, 1020, 256)).toThrow(/inside the memory/)
})
