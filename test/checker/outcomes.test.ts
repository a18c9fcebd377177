import { expect, test } from 'vitest'
import {
  check,
  CheckFailure,
  type CheckOptions,
  type CheckResult,
  type Program,
} from '../../src/checker/check.ts'

/** Two threads compete for a word: one wins. */
function race(): Program {
  const memory = new Int32Array(new SharedArrayBuffer(4))
  const take = (): string => (Atomics.compareExchange(memory, 0, 0, 1) === 0 ? 'won' : 'lost')
  return { threads: [take, take] }
}

const both = [
  ['won', 'lost'],
  ['lost', 'won'],
]

function resultOf(options: CheckOptions, setup: () => Program): CheckResult {
  try {
    return check('outcomes', options, setup)
  } catch (error) {
    if (error instanceof CheckFailure) return error.result
    throw error
  }
}

for (const memory of ['sequential', 'weak'] as const) {
  test(`${memory}: outcomes that are expected and reached pass, each counted`, () => {
    const result = check('race', { memory, expectOutcomes: both, onlyOutcomes: true }, race)
    expect(result.outcomes).toEqual([
      { text: '["lost", "won"]', executions: 1 },
      { text: '["won", "lost"]', executions: 1 },
    ])
  })

  test(`${memory}: an outcome that no execution reaches fails the check`, () => {
    const run = (): unknown => check('race', { memory, expectOutcomes: [...both, ['lost', 'lost']] }, race)
    expect(run).toThrow('an outcome that the check expects and no execution reaches: ["lost", "lost"]')
    expect(resultOf({ memory, expectOutcomes: [['lost', 'lost']] }, race)).toMatchObject({
      ok: false,
      outcome: 'failed',
      failure: { kind: 'unreached-outcome' },
    })
  })

  test(`${memory}: an outcome that is not expected fails the check with onlyOutcomes`, () => {
    const result = resultOf({ memory, expectOutcomes: [['won', 'lost']], onlyOutcomes: true }, race)
    expect(result).toMatchObject({ ok: false, failure: { kind: 'unexpected-outcome' } })
    expect(result.failure?.title).toContain('["lost", "won"]')
    expect(result.failure?.schedule.threads).toHaveLength(2)
    expect(resultOf({ memory, expectOutcomes: [['won', 'lost']] }, race).ok).toBe(true)
  })

  test(`${memory}: an incomplete search names the outcomes that it has not reached`, () => {
    const result = check(
      'race',
      { memory, expectOutcomes: [['lost', 'lost']], executions: 1, allowIncomplete: true },
      race,
    )
    expect(result).toMatchObject({ ok: true, outcome: 'incomplete' })
    expect(result.why).toContain('["lost", "lost"]')
  })
}

test('the result of the final assertion is the outcome, whatever the order of its fields', () => {
  const setup = (): Program => ({ ...race(), final: ({ results: [a, b] }) => ({ b, a }) })
  check(
    'fields',
    {
      expectOutcomes: [
        { a: 'won', b: 'lost' },
        { b: 'won', a: 'lost' },
      ],
      onlyOutcomes: true,
    },
    setup,
  )
})

const nested = (depth: number, end: unknown): unknown =>
  depth === 0 ? [end] : { in: nested(depth - 1, end) }
const cycle = (levels: number): unknown => {
  const ends: unknown[] = []
  let value: unknown = ends
  for (let level = 0; level < levels; level++) value = [value]
  ends.push(value)
  return value
}

test.each<[name: string, one: unknown, other: unknown]>([
  ['dates', new Date(1), new Date(2)],
  ['dates that are none', new Date(1), new Date(Number.NaN)],
  ['regular expressions', /a/, /a/g],
  ['buffers', new Uint8Array([1]).buffer, new Uint8Array([2]).buffer],
  ['data views', new DataView(new ArrayBuffer(1)), new DataView(new ArrayBuffer(2))],
  ['fields under symbols', { [Symbol.iterator]: 1 }, { [Symbol.iterator]: 2 }],
  ['names with punctuation', { 'a: 1, b': 2 }, { a: 1, b: 2 }],
  ['deep parts', nested(12, 1), nested(12, 2)],
  ['cycles', cycle(1), cycle(2)],
])('outcomes that differ in %s are different', (_, one, other) => {
  const setup = (outcome: unknown) => () => ({ ...race(), final: () => outcome })
  const options = { expectOutcomes: [one], onlyOutcomes: true }
  expect(resultOf(options, setup(one)).ok).toBe(true)
  expect(resultOf(options, setup(other)).failure?.kind).toBe('unexpected-outcome')
})

test.each<[name: string, program: () => Program, refusal: RegExp]>([
  [
    'final',
    () => ({ ...race(), final: thenable }),
    /final assertion returned an object with a method `then`/,
  ],
  [
    'a thread',
    () => ({ threads: [...(race().threads as []), thenable] }),
    /returned an object with a method/,
  ],
  [
    'final, an error',
    () => ({ ...race(), final: () => new Error('lost') }),
    /returned an error, which judges/,
  ],
])('a verdict that nothing reads is refused: %s', (_, program, refusal) => {
  expect(() => check('unread', {}, program)).toThrow(refusal)
})

const thenable = (): unknown => ({
  // oxlint-disable-next-line unicorn/no-thenable
  then(_: unknown, reject: (error: Error) => void) {
    reject(new Error('lost'))
  },
})

test('options that contradict each other or have a wrong type are refused', () => {
  expect(() => check('no', { onlyOutcomes: true }, race)).toThrow('give `expectOutcomes` too')
  expect(() => check('no', { expectOutcomes: 'won' as never }, race)).toThrow('`expectOutcomes` is won')
})
