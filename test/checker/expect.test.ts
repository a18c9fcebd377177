import { describe, expect, test } from 'vitest'
import { check, CheckFailure } from '../../src/checker/check.ts'

/** This file is instrumented like a user's test file: the checks in it may use vitest's `expect`. */
function words(): Int32Array<SharedArrayBuffer> {
  return new Int32Array(new SharedArrayBuffer(4))
}

describe('expect inside a thread of a check', () => {
  test('keeps nothing, so the check can be complete', () => {
    const result = check('both add', () => {
      const memory = words()
      const add = (): void => {
        const before = Atomics.add(memory, 0, 1)
        expect(before).toBeLessThan(2)
        expect([before]).not.toEqual([2])
      }
      return { threads: [add, add], final: () => expect(memory[0]).toBe(2) }
    })
    expect(result).toMatchObject({ complete: true, why: '' })
  })

  test('fails the check when it does not hold', () => {
    const lossy = (): void => {
      check('a lost update', () => {
        const memory = words()
        const add = (): void => {
          Atomics.store(memory, 0, Atomics.load(memory, 0) + 1)
          expect(Atomics.load(memory, 0)).toBeGreaterThan(0)
        }
        return { threads: [add, add], final: () => expect(memory[0]).toBe(2) }
      })
    }
    expect(lossy).toThrow(CheckFailure)
  })

  test('does not make another proxy trusted', () => {
    const hidden = new Proxy({}, { get: () => 1 }) as { one: number }
    const result = check('a proxy from outside', { allowIncomplete: true }, () => {
      const memory = words()
      const read = (): number => Atomics.add(memory, 0, 1) + hidden.one
      return { threads: [read, read] }
    })
    expect(result.outcome).toBe('incomplete')
  })
})
