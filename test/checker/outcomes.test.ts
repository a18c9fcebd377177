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

test('options that contradict each other or have a wrong type are refused', () => {
  expect(() => check('no', { onlyOutcomes: true }, race)).toThrow('give `expectOutcomes` too')
  expect(() => check('no', { expectOutcomes: 'won' as never }, race)).toThrow('`expectOutcomes` is won')
})
