import { expect, test } from 'vitest'
import { backoffMs } from './attempt.ts'

test.each([
  [{ initial: 1000, factor: 2, max: 60_000 }, 0, 1000],
  [{ initial: 1000, factor: 2, max: 60_000 }, 5, 32_000],
  [{ initial: 1000, factor: 2, max: 60_000 }, 6, 60_000],
  [{ initial: 1000, factor: 2, max: 60_000 }, 1_000_000, 60_000],
  [{ initial: 0, factor: 2, max: 60_000 }, 1_000_000, 0],
  [{ initial: 100, factor: 1, max: 60_000 }, 1_000_000, 100],
])('%j waits after failure %i for %i ms', (backoff, failures, ms) => {
  expect(backoffMs(backoff, failures)).toBe(ms)
})
