import { expect, test } from 'vitest'
import { deadlineOf, restOf, timeLeft, timeoutLimit, wallLimit } from './deadline.ts'

const now = (): number => 1000

test.each([2 ** 46 - 1, 2 ** 46, 2 ** 46 + 1e12, 2 ** 46 + 1e15, Number.MAX_VALUE, Infinity])(
  'a timeout of %d milliseconds is not over now, and is no time of the wall clock',
  ms => {
    const deadline = deadlineOf(now, timeoutLimit(ms))
    expect(timeLeft(now, deadline)).toBeGreaterThan(1e13)
    expect(deadline === Infinity || deadline < 2 ** 46).toBe(true)
  },
)

test('the rest of a timeout is shorter, and a time of the wall clock stays', () => {
  expect(restOf(timeoutLimit(100), 30)).toBe(70)
  expect(restOf(timeoutLimit(100), 130)).toBe(0)
  expect(restOf(Infinity, 1e9)).toBe(Infinity)
  const end = wallLimit(Date.now() + 5000)
  expect(restOf(end, 3000)).toBe(end)
})
