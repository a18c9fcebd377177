import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bestReady, clearReady, isReady, ReadyMask, setReady } from './readymask.ts'

test('the best level is the lowest that is set, after any sequence of sets and clears', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 63 })), { maxLength: 200 }),
      steps => {
        const i32 = new Int32Array(8)
        const model = new Set<number>()
        for (const [set, level] of steps) {
          if (set) {
            setReady(i32, 1, level)
            model.add(level)
          } else {
            clearReady(i32, 1, level)
            model.delete(level)
          }
          expect(i32[1 + ReadyMask.ready] === 0).toBe(model.size === 0)
          if (model.size > 0) expect(bestReady(i32, 1)).toBe(Math.min(...model))
          expect(isReady(i32, 1, level)).toBe(model.has(level))
          let groups = 0
          for (const at of model) groups |= 1 << (at >> 3)
          expect(i32[1 + ReadyMask.ready]).toBe(groups)
        }
      },
    ),
  )
})

test('clearing one level of a group leaves the first layer set while another is ready', () => {
  const i32 = new Int32Array(8)
  setReady(i32, 1, 40)
  setReady(i32, 1, 47)
  clearReady(i32, 1, 40)
  expect(i32[1 + ReadyMask.ready]).toBe(1 << 5)
  expect(bestReady(i32, 1)).toBe(47)
  clearReady(i32, 1, 47)
  expect(i32[1 + ReadyMask.ready]).toBe(0)
})

test('looking for the best of an empty mask is an error', () => {
  expect(() => bestReady(new Int32Array(8), 1)).toThrow('trailing zeros of an empty mask')
})

test('a mask whose layers disagree is found out', () => {
  const i32 = new Int32Array(8)
  i32[1 + ReadyMask.ready] = 4
  expect(() => bestReady(i32, 1)).toThrow('trailing zeros of an empty mask')
})
