import { afterEach, expect, test } from 'vitest'
import { coroutineOf, setSafepointFlag } from './coroutine.ts'
import { lookInTime } from './frames.ts'
import { preemptionOff, preemptionOn, setPlainDeadline, words } from './safepoint.ts'

const raised = Int32Array.of(1)
const lowered = new Int32Array(1)

afterEach(() => {
  setSafepointFlag(lowered, 0)
  words.u = 0
  setPlainDeadline(lowered, 0, () => {})
})

/** How many of so many safepoints that only count have looked. */
function looksOf(ok: number, safepoints: number): number {
  let looks = 0
  for (let at = 0; at < safepoints; at++) {
    if (--words.left >= 0) continue
    looks++
    if (lookInTime(ok)) return Number.NaN
  }
  return looks
}

test('code that cannot be preempted checks a raised word no more often than any other', () => {
  setSafepointFlag(raised, 0)
  preemptionOff()
  try {
    expect(looksOf(1, 6400)).toBeLessThan(200)
  } finally {
    preemptionOn()
  }
  expect(looksOf(0, 6400)).toBeLessThan(6400 / 16 + 10)
})

test('the first safepoint after preemption is on again stops', () => {
  setSafepointFlag(raised, 0)
  preemptionOff()
  looksOf(1, 10)
  preemptionOn()
  expect(--words.left < 0 && lookInTime(1)).toBe(true)
})

test('a deadline is thrown into code that was called as plain code, and only there', () => {
  const error = new Error('over')
  setPlainDeadline(raised, 0, () => {
    throw error
  })
  expect(() => looksOf(0, 1000)).toThrow(error)
  expect(looksOf(1, 1000)).toBeGreaterThan(0)
  expect(coroutineOf(() => 1, []).start()).toBe(true)
})
