import { expect, test } from 'vitest'
import { Origins } from './origins.ts'

function below(origins: Origins, fn: object): string | undefined {
  return origins.take(fn, below)?.stack
}

test('each spawn of a turn has its own origin, while they are few', () => {
  const origins = new Origins()
  const fn = {}
  const here = below(origins, fn)
  const there = below(origins, fn)
  expect(here).not.toBe(there)
  expect(here).toContain('origins.test.ts')
})

test('in a long run of spawns of one function only some capture a stack, and those of another function do', () => {
  const origins = new Origins()
  const fn = {}
  const taken = Array.from({ length: 1000 }, () => origins.take(fn, below))
  expect(new Set(taken).size).toBeLessThan(120)
  const other = below(origins, {})
  expect(other).toContain('origins.test.ts')
})

test('an await starts a new run', async () => {
  const origins = new Origins()
  const fn = {}
  const loop = Array.from({ length: 200 }, () => origins.take(fn, below))
  await Promise.resolve()
  const first = origins.take(fn, below)
  expect(loop).not.toContain(first)
})
