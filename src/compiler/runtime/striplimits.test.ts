import { expect, test } from 'vitest'
import { above, below, isShort, isShortList, limit, near } from './striplimits.ts'

test('a strip ends at its limit, or at the end of the loop', () => {
  expect(limit(0, 2000, 512)).toBe(512)
  expect(limit(1900, 2000, 512)).toBe(2000)
  expect(limit(2000, 0, -512)).toBe(1488)
  expect(limit(100, 0, -512)).toBe(0)
  expect(limit(0, Infinity, 512)).toBe(512)
  expect(limit(0n, 2000n, 512)).toBe(512n)
  expect(limit(2000n, 1999n, -512)).toBe(1999n)
})

test('for numbers both functions agree, also if no step changes the counter', () => {
  for (const at of [0, -3.5, 1e300, -Infinity, Infinity, Number.NaN]) {
    for (const end of [0, 100, 5000, 1e308, Infinity, -Infinity, Number.NaN]) {
      for (const reach of [512, -512, 0.5]) expect(near(at, end, reach)).toBe(limit(at, end, reach))
    }
  }
})

test('a bound that is no number is unchanged', () => {
  for (const end of ['10', null, undefined, {}, Number.NaN, true]) expect(limit(0, end, 512)).toBe(end)
  expect(limit('0', 5, 512)).toBe(5)
  expect(limit(0, 5n, 512)).toBe(5n)
})

test('a strip ends after its number of steps, for any kind of counter; it has no end if steps change nothing', () => {
  expect(above(3, 2, 512)).toBe(1027)
  expect(below(3, 2, 512)).toBe(-1021)
  expect(above(3n, 1, 512)).toBe(515n)
  expect(below(3n, 2n, 512)).toBe(-1021n)
  for (const way of [above, below]) {
    for (const at of [Infinity, -Infinity, Number.NaN, 1e300, '3', undefined, null, {}]) {
      expect(way(at, 1, 512)).toBeNaN()
    }
    for (const step of [0, -1, Number.NaN, '1', undefined, 0n, 1n]) expect(way(3, step, 512)).toBeNaN()
    for (const step of [0n, -1n, 0.5, 2]) expect(way(3n, step, 512)).toBeNaN()
  }
})

test('a loop is short only if counter, bound and step are numbers, and the step leads to the bound', () => {
  expect(isShort(0, 512, 1, 512)).toBe(true)
  expect(isShort(0, 513, 1, 512)).toBe(false)
  expect(isShort(0, 5000, 10, 512)).toBe(true)
  expect(isShort(0, 10, 0, 512)).toBe(false)
  expect(isShort(0, 10, -1, 512)).toBe(false)
  expect(isShort(0, Number.NaN, 1, 512)).toBe(false)
  expect(isShort(0n, 5n, 1, 512)).toBe(false)
  expect(isShort(0, '5', 1, 512)).toBe(false)
})

test('a list is short if it is an array with few elements', () => {
  expect(isShortList([1, 2], 2)).toBe(true)
  expect(isShortList([1, 2, 3], 2)).toBe(false)
  expect(isShortList(new Int8Array(2), 2)).toBe(true)
  expect(isShortList({ length: 1 }, 2)).toBe(false)
  expect(isShortList('ab', 2)).toBe(false)
  expect(isShortList(null, 2)).toBe(false)
})
