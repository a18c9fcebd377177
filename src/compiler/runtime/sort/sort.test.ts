import fc from 'fast-check'
import { expect, test } from 'vitest'
import { mergeSort } from './mergesort.ts'
import { frames, save, take } from '../../../coroutine/core/frames.ts'
import { attach, unwinding } from '../attach.ts'
import { type Comparator, comparatorOf } from './comparator.ts'
import { defaultSort, defaultSortTyped } from './defaultsort.ts'
import { insertionMost, timSort } from './timsort.ts'

/** Pseudo-random numbers, the same on every run. */
function numbers(count: number, seed: number, range: number): number[] {
  let state = seed * 2654435761 + 1
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1103515245) + 12345) | 0
    return (state >>> 8) % range
  })
}

/** Arrays with runs, ties and saws, which exercise the special paths of a sort. */
function arrays(): number[][] {
  const made: number[][] = [[], [1], [2, 1], [1, 1, 1]]
  for (let length = 3; length < 20; length++) made.push(numbers(length, length, 100))
  for (let seed = 1; seed < 40; seed++) {
    const length = (seed * 37) % 700
    made.push(numbers(length, seed, seed % 3 === 0 ? 5 : 1000))
    made.push(Array.from({ length }, (_, i) => (i * seed) % 97))
    made.push(Array.from({ length }, (_, i) => (i < length / 2 ? i : length - i)))
    made.push([...numbers(length, seed, 1e6).sort((a, b) => a - b), ...numbers(20, seed, 1e6)])
    made.push(Array.from({ length }, (_, i) => (i % 64 < 40 ? i : 1000 - i)))
  }
  return made
}

function logged(): { log: string[]; compare: (left: number, right: number) => number } {
  const log: string[] = []
  return {
    log,
    compare(left, right) {
      log.push(`${left} ${right}`)
      return Math.trunc(left / 3) - Math.trunc(right / 3)
    },
  }
}

function drive(steps: Generator<number, unknown>): unknown {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

const forms: [string, (compare: (left: number, right: number) => number) => Comparator][] = [
  ['plain', plain => comparatorOf(plain)],
  [
    'resumable',
    plain =>
      comparatorOf(
        attach(
          (left, right) => plain(left, right),
          function* (left, right) {
            yield 0
            return plain(left, right)
          },
        ),
      ),
  ],
  [
    'unwinding',
    plain =>
      comparatorOf(
        unwinding((left: number, right: number) => {
          if (frames.ok === 0) throw new Error('the comparator has no permission')
          frames.ok = 0
          frames.u = 1
          return save(undefined, 1, [left, right], (_, [first, second]) => {
            take()
            return plain(first as number, second as number)
          })
        }),
      ),
  ],
]

for (const [name, orderOf] of forms) {
  for (const method of ['sort', 'toSorted'] as const) {
    test(`${method} with a ${name} comparator makes the very comparisons that the engine makes`, () => {
      const most = insertionMost(method)
      for (const array of arrays()) {
        const engine = logged()
        const expected = array.slice()[method](engine.compare)
        const ours = logged()
        const work = array.slice()
        drive(timSort(work, orderOf(ours.compare), most))
        expect(work).toEqual(expected)
        expect(ours.log).toEqual(engine.log)
      }
    })
  }

  test(`typed arrays are sorted by a ${name} comparator with the very comparisons that the engine makes`, () => {
    for (const array of arrays()) {
      const engine = logged()
      const expected = Float64Array.from(array).sort(engine.compare)
      const ours = logged()
      expect(drive(mergeSort(array.slice(), orderOf(ours.compare)))).toEqual([...expected])
      expect(ours.log).toEqual(engine.log)
    }
  })
}

test('without a comparator the order is that of the engine, for all values but objects', () => {
  const values = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 3 }),
    fc.double(),
    fc.integer({ min: -20, max: 20 }),
    fc.constantFrom<unknown>(-0, 0, null, true, false, 1n, 10n, 'a', 'B', '', '10'),
  )
  const lists = fc.oneof(fc.array(values), fc.array(fc.string({ maxLength: 2 })), fc.array(fc.integer()))
  fc.assert(
    fc.property(lists, fc.integer({ min: 1, max: 7 }), (list, run) => {
      const expected = list.slice().sort()
      const sorted = drive(defaultSort(list.slice(), run)) as unknown[]
      expect(sorted).toHaveLength(expected.length)
      for (const [index, value] of sorted.entries()) expect(value).toBe(expected[index])
    }),
    { numRuns: 500 },
  )
})

test('typed arrays are sorted by value, with zeros and NaN in the right positions', () => {
  const values = fc.array(fc.oneof(fc.double(), fc.constantFrom(-0, 0, Number.NaN, Infinity, 5)))
  fc.assert(
    fc.property(values, fc.integer({ min: 1, max: 7 }), (list, run) => {
      const sorted = drive(defaultSortTyped(Float64Array.from(list), run))
      expect(sorted).toEqual(Float64Array.from(list).sort())
    }),
    { numRuns: 500 },
  )
})

test('objects are compared by the engine, with the same number of toString calls', () => {
  const made = (log: string[]): unknown[] =>
    numbers(40, 3, 30).map(n => ({
      toString() {
        log.push(`${n}`)
        return `${n}`
      },
    }))
  const engine: string[] = []
  const expected = made(engine).sort().map(String)
  const ours: string[] = []
  const sorted = drive(defaultSort(made(ours), 4)) as unknown[]
  expect(sorted.map(String)).toEqual(expected)
  expect(ours).toEqual(engine)
})
