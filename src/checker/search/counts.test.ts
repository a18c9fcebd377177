import { beforeAll, describe, expect, test } from 'vitest'
import { check, CheckedMutex } from '../check.ts'
import { LOCK, UNLOCK } from '../machine/operations.ts'
import { loadInstrumented } from '../../../testing/checker/programs/load.ts'
import { op } from '../instrument/runtime.ts'

type Counted = typeof import('../../../testing/checker/programs/counted.ts')
/** The programs that take only a size. */
type Counting = 'readers' | 'lastzero' | 'indexer' | 'filesystem' | 'fibonacci' | 'locked' | 'adders'

let programs: Counted
beforeAll(async () => {
  programs = await loadInstrumented<Counted>(
    new URL('../../../testing/checker/programs/counted.ts', import.meta.url),
  )
})

function factorial(n: number): number {
  return n <= 1 ? 1 : n * factorial(n - 1)
}

/** The size of the program, and the published or obvious number of complete executions. */
const published: readonly [Counting, readonly (readonly [number, number])[]][] = [
  [
    'readers',
    [
      [2, 4],
      [8, 256],
      [13, 8192],
    ],
  ],
  [
    'lastzero',
    [
      [5, 64],
      [10, 3328],
      [15, 147_456],
    ],
  ],
  [
    'indexer',
    [
      [12, 8],
      [15, 4096],
    ],
  ],
  [
    'filesystem',
    [
      [14, 2],
      [16, 8],
      [18, 32],
      [19, 64],
    ],
  ],
  ['fibonacci', [[5, 218_243]]],
  ['locked', [1, 2, 3, 4, 5, 6].map(n => [n, factorial(n)] as const)],
  ['adders', [1, 2, 3, 4, 5, 6, 7].map(n => [n, factorial(n)] as const)],
]

describe('the number of complete executions is the published number of traces', () => {
  for (const [name, sizes] of published) {
    for (const [size, traces] of sizes) {
      test(`${name}(${size}) has ${traces}`, () => {
        const result = check(`${name}(${size})`, {}, () => programs[name](size))
        expect(result.executions).toBe(traces)
        expect(result.complete).toBe(true)
      })
    }
  }

  test('n threads under the checker’s own mutex have n!, and no execution is abandoned', () => {
    for (const n of [2, 3, 4, 5, 6]) {
      const result = check(`mutex ${n}`, {}, () => {
        const mutex = new CheckedMutex()
        const counter = new Int32Array(new SharedArrayBuffer(4))
        const body = function* (): Generator<number, void, unknown> {
          yield op(LOCK, -1, mutex)
          const seen = (yield op(0, -1, counter, 0)) as number
          yield op(1, -1, counter, 0, seen + 1)
          yield op(UNLOCK, -1, mutex)
        }
        return {
          threads: Array.from({ length: n }, () => body),
          final: () => expect(counter[0]).toBe(n),
        }
      })
      expect(result).toMatchObject({ executions: factorial(n), redundant: 0, complete: true })
    }
  })

  test('only executions with a useless turn of a loop are abandoned', () => {
    for (const [name, size] of [
      ['readers', 8],
      ['lastzero', 10],
      ['indexer', 15],
      ['fibonacci', 3],
      ['adders', 5],
    ] as const) {
      expect(check(name, {}, () => programs[name](size)).redundant).toBe(0)
    }
  })
})

describe('a handwritten lock is a wait for its word', () => {
  /**
   * The number of orders, and the number of executions that may be abandoned before the search knows where
   * threads wait.
   */
  const locks: Record<string, readonly [traces: (n: number) => number, vain: (n: number) => number]> = {
    'compare-exchange': [factorial, n => n * n],
    'compare-exchange with a pause': [factorial, n => n * n],
    exchange: [factorial, n => n * n],
    // Each thread may also find the lock free in any of the gaps.
    'test and test-and-set': [n => factorial(n) ** 2, n => n * n],
    tickets: [factorial, n => factorial(n)],
  }

  test('that needs few executions more than it has orders', () => {
    expect(Object.keys(locks)).toEqual(Object.keys(programs.handmade))
    for (const [name, [traces, vain]] of Object.entries(locks)) {
      for (const n of [2, 3, 4, 5]) {
        const { executions, redundant, complete } = check(name, {}, () => programs.lockedBy(name, n))
        expect({ name, n, executions, complete }).toEqual({ name, n, executions: traces(n), complete: true })
        expect(redundant, `${name} ${n}`).toBeLessThanOrEqual(vain(n))
      }
    }
  })

  test('that is never unlocked is a livelock', () => {
    for (const name of Object.keys(locks))
      expect(() => check(name, { races: false }, () => programs.lockedBy(name, 3, false)), name).toThrow(
        /livelock: .* stuck/,
      )
  })

  test('and a plain write of that word is still a data race', () => {
    expect(() => check('plain', {}, () => programs.plainUnlock())).toThrow(/data race between/)
  })
})
