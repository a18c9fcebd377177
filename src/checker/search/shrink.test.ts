import { expect, test } from 'vitest'
import { check, CheckFailure, type CheckOptions, type Program } from '../check.ts'
import { LOAD, STORE } from '../machine/operations.ts'
import { op } from '../instrument/runtime.ts'

/** The shrunk failure of a program; the program must fail. */
function failureOf(setup: () => Program, options: CheckOptions = {}): CheckFailure {
  try {
    check('fails', options, setup)
  } catch (error) {
    if (error instanceof CheckFailure) return error
    throw error
  }
  throw new Error('the check passes')
}

/**
 * Fails if the first thread comes first, which the search tries first. Only if it comes second does it access
 * memory in a way that the search has not seen.
 */
function failsAtOnce(
  buffer: () => SharedArrayBuffer,
  then: (buffer: SharedArrayBuffer) => number,
): () => Program {
  return () => {
    const shared = buffer()
    const longs = new BigInt64Array(shared)
    return {
      threads: [
        function* (): Generator<number, void, unknown> {
          if ((yield op(LOAD, -1, longs, 0)) === 0n) throw new Error('too early')
          yield then(shared)
        },
        function* () {
          yield op(STORE, -1, longs, 0, 1n)
        },
      ],
    }
  }
}

test('a failure is shrunk, though schedules are tried that access memory in smaller pieces than the search has seen', () => {
  const setup = failsAtOnce(
    () => new SharedArrayBuffer(16),
    shared => op(LOAD, -1, new Int32Array(shared), 2),
  )
  expect(failureOf(setup).message).toContain('too early')
})

test('a failure is shrunk, though schedules are tried that access one place in two ways', () => {
  const setup = failsAtOnce(
    () => new SharedArrayBuffer(16),
    shared => op(LOAD, -1, new Int32Array(shared), 0),
  )
  expect(failureOf(setup).message).toContain('too early')
})

test('a failure is shown, wherever the search for a shorter one ends', () => {
  for (let shrink = 0; shrink < 12; shrink++) {
    const setup = failsAtOnce(
      () => new SharedArrayBuffer(16),
      shared => op(LOAD, -1, new Int16Array(shared), shrink % 4),
    )
    expect(failureOf(setup, { shrink }).message).toContain('too early')
  }
})

test('shared memory that the set-up did not make is refused', () => {
  const buffer = new SharedArrayBuffer(16)
  const setup = failsAtOnce(
    () => buffer,
    shared => op(LOAD, -1, new Int32Array(shared), 2),
  )
  expect(() => failureOf(setup)).toThrow('shared memory that the set-up did not make')
})
