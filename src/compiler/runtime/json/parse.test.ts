import fc from 'fast-check'
import { expect, test } from 'vitest'
import { PartwiseParser } from './parse.ts'

/** The parser's result for a text in small parts; undefined if the original must parse it. */
function inParts(text: string, batch: number, step: number): { value: unknown } | undefined {
  const parser = new PartwiseParser(text, batch)
  let steps = 0
  do {
    if (!parser.advance(step)) return undefined
    expect(++steps).toBeLessThan(text.length + 10)
  } while (!parser.isRead)
  return { value: parser.result }
}

const original = (text: string): { value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return undefined
  }
}

/** With its keys in order, and its own `__proto__`. */
const shown = (value: unknown): string => JSON.stringify(value, (_, inner: unknown) => inner, 1)

test('parses like the original, with the same keys in the same order, in parts of any size', () => {
  let read = 0
  fc.assert(
    fc.property(
      fc.jsonValue({ maxDepth: 6 }),
      fc.integer({ min: 0, max: 40 }),
      fc.integer({ min: 1, max: 50 }),
      fc.constantFrom(0, 2),
      (value, batch, step, indent) => {
        const text = JSON.stringify(value, null, indent)
        const found = inParts(text, batch, step)
        if (found === undefined) {
          // Only a text that is no container is left to the original.
          expect(typeof value !== 'object' || value === null).toBe(true)
          return
        }
        read++
        const expected = JSON.parse(text) as unknown
        expect(found.value).toEqual(expected)
        expect(shown(found.value)).toBe(shown(expected))
      },
    ),
    { numRuns: 2000 },
  )
  expect(read).toBeGreaterThan(500)
})

test('accepts no text that the original refuses', () => {
  fc.assert(
    fc.property(
      fc.jsonValue({ maxDepth: 4 }),
      fc.nat(),
      fc.constantFrom('', ',', '[', ']', '{', '}', '"', ':', ' ', '1', 'x', '\\', '\n', '\u0001'),
      fc.boolean(),
      fc.integer({ min: 0, max: 20 }),
      (value, place, piece, replaces, batch) => {
        const text = JSON.stringify(value)
        const at = place % (text.length + 1)
        const broken = text.slice(0, at) + piece + text.slice(at + (replaces ? 1 : 0))
        const found = inParts(broken, batch, 7)
        const expected = original(broken)
        if (found !== undefined) expect(expected, broken).toEqual(found)
      },
    ),
    { numRuns: 5000 },
  )
})

test.each([
  '[1,,2]',
  '[1,2,]',
  '[,1]',
  '{"a":1,}',
  '{,"a":1}',
  '[[1,2,3],]',
  '[[1,2,3],,4]',
  '[[1,2,3] 4]',
  '[1 [2,3,4]]',
  '{"a" [1,2,3]}',
  '{"a":1 "b":[1,2,3]}',
  '{"a":"b":[1,2,3]}',
  '[1,2,3}',
  '[1,2,3',
  '[1,2,3]]',
  '[1,2,3] x',
  'x [1,2,3]',
  '[1,2,3],',
  '{"a":{"b":[1,2,3]},}',
  '["a\n"]',
  '',
  '[[],,[1,2,3]]',
  '{"a":[1,2,3]"b":1}',
])('leaves %j to the original, which refuses it', text => {
  for (const batch of [0, 1, 2, 5]) expect(inParts(text, batch, 3)).toBeUndefined()
  expect(original(text)).toBeUndefined()
})

test.each([
  '{"a":1,"b":[1,2,3],"a":[4,5,6]}',
  '{"__proto__":[1,2,3],"x":{"__proto__":{"y":1}}}',
  '{"1":1,"0":[1,2,3],"a":0}',
  '[]',
  '{}',
  ' [ ] ',
  '[[],{},[[]]]',
  '{"":{"":[1,2,3]}}',
  '["\\"","\\\\",["]","}"]]',
])('parses %s as the original does', text => {
  for (const batch of [0, 1, 2, 5, 100]) {
    const found = inParts(text, batch, 3)!.value
    expect(shown(found)).toBe(shown(JSON.parse(text)))
    expect(Object.getPrototypeOf(found)).toBe(Object.getPrototypeOf(JSON.parse(text)))
  }
})
