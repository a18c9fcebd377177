import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { check, CheckFailure, type Program } from '../check.ts'
import {
  ADD,
  COMPARE_EXCHANGE,
  LOAD,
  NOTIFY,
  PLAIN_READ,
  PLAIN_WRITE,
  STORE,
  WAIT,
} from '../machine/operations.ts'
import { op } from '../instrument/runtime.ts'

type Step = readonly [kind: number, view: 'words' | 'bytes' | 'halves', index: number, ...rest: unknown[]]

/** Threads that perform the given operations in order. */
function racing(...threads: readonly (readonly Step[])[]): () => Program {
  return () => {
    const buffer = new SharedArrayBuffer(16)
    const views = {
      words: new Int32Array(buffer),
      bytes: new Uint8Array(buffer),
      halves: new Int16Array(buffer),
    }
    return {
      threads: threads.map(
        steps =>
          function* () {
            for (const [kind, view, index, a, b] of steps) yield op(kind, -1, views[view], index, a, b)
          },
      ),
    }
  }
}

function hasRace(setup: () => Program): boolean {
  try {
    check('races', setup)
    return false
  } catch (error) {
    if (error instanceof CheckFailure && error.result.failure?.kind === 'data-race') return true
    throw error
  }
}

const write = (index: number): Step => [PLAIN_WRITE, 'words', index, 1]
const read = (index: number): Step => [PLAIN_READ, 'words', index]
const store = (index: number, value = 1): Step => [STORE, 'words', index, value]
const load = (index: number): Step => [LOAD, 'words', index]

describe('a data race', () => {
  test('is two plain accesses of which one writes', () => {
    expect(hasRace(racing([write(0)], [read(0)]))).toBe(true)
    expect(hasRace(racing([write(0)], [write(0)]))).toBe(true)
    expect(hasRace(racing([read(0)], [read(0)]))).toBe(false)
    expect(hasRace(racing([write(0)], [read(1)]))).toBe(false)
  })

  test('is a plain access against an atomic one of which one writes', () => {
    expect(hasRace(racing([write(0)], [load(0)]))).toBe(true)
    expect(hasRace(racing([store(0)], [read(0)]))).toBe(true)
    expect(hasRace(racing([[ADD, 'words', 0, 1]], [read(0)]))).toBe(true)
    expect(hasRace(racing([load(0)], [read(0)]))).toBe(false)
  })

  test('is not two atomic accesses of one range', () => {
    expect(hasRace(racing([store(0)], [store(0)], [load(0)], [[ADD, 'words', 0, 1]]))).toBe(false)
  })

  test('is two atomic accesses of ranges that overlap and differ', () => {
    expect(hasRace(racing([store(0)], [[LOAD, 'halves', 1]]))).toBe(true)
    expect(hasRace(racing([store(0)], [[STORE, 'bytes', 3, 1]]))).toBe(true)
    expect(hasRace(racing([store(0)], [[LOAD, 'halves', 2]]))).toBe(false)
    expect(hasRace(racing([load(0)], [[LOAD, 'halves', 1]]))).toBe(false)
  })

  test('is seen byte by byte', () => {
    const byte = (kind: number, index: number): Step => [kind, 'bytes', index, 1]
    expect(hasRace(racing([byte(PLAIN_WRITE, 0)], [byte(PLAIN_WRITE, 1)]))).toBe(false)
    expect(hasRace(racing([byte(PLAIN_WRITE, 2)], [write(0)]))).toBe(true)
  })

  test('does not exist when a read finds the atomic write that followed the plain write', () => {
    // The reader may come first: then it must not touch the memory that is being written.
    const publish = racing([write(1), store(0)], [load(0)])
    expect(hasRace(publish)).toBe(false)
    const own = racing([write(0), store(0, 2)], [[COMPARE_EXCHANGE, 'words', 1, 5, 6]])
    expect(hasRace(own)).toBe(false)
  })

  test('does not exist between a notify and the wakeup that it causes', () => {
    const woken = racing([[WAIT, 'words', 0, 0], read(1)], [write(1), store(0), [NOTIFY, 'words', 0]])
    expect(hasRace(woken)).toBe(false)
  })

  test('exists when there is only an atomic write, or only an atomic read', () => {
    expect(hasRace(racing([write(1), store(0)], [store(0), read(1)]))).toBe(true)
    expect(hasRace(racing([write(1), load(0)], [load(0), read(1)]))).toBe(true)
  })

  test('is found by every explorer or by none', () => {
    const kinds = fc.constantFrom(PLAIN_READ, PLAIN_WRITE, LOAD, STORE)
    const step: fc.Arbitrary<Step> = fc
      .tuple(kinds, fc.integer({ min: 0, max: 1 }))
      .map(([kind, index]) => [kind, 'words', index, 1] as const)
    const body = fc.array(step, { minLength: 1, maxLength: 3 })
    fc.assert(
      fc.property(body, body, (one, two) => {
        const setup = racing(one, two)
        const failed = (options: object): boolean => {
          try {
            check('x', options, setup)
            return false
          } catch (error) {
            return error instanceof CheckFailure
          }
        }
        expect(failed({ explorer: 'preemption-bounded', preemptions: 9 })).toBe(failed({}))
      }),
      { numRuns: 100 },
    )
  })
})
