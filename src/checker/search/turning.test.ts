import { beforeAll, describe, expect, test } from 'vitest'
import {
  check,
  CheckError,
  CheckFailure,
  CheckIncomplete,
  type CheckOptions,
  type CheckResult,
  type Program,
} from '../check.ts'
import { loadInstrumented } from '../../../testing/checker/programs/load.ts'

type Turning = typeof import('../../../testing/checker/programs/turning.ts')
let programs: Turning
beforeAll(async () => {
  programs = await loadInstrumented<Turning>(
    new URL('../../../testing/checker/programs/turning.ts', import.meta.url),
  )
})

function outcomes(setup: () => Program, options: CheckOptions = {}): { result: CheckResult; seen: string[] } {
  const seen = new Set<string>()
  const result = check('outcomes', { allowIncomplete: true, ...options }, () => {
    const program = setup()
    return {
      ...program,
      final(outcome) {
        seen.add(String(outcome.results[0]))
        program.final?.(outcome)
      },
    }
  })
  return { result, seen: [...seen].sort() }
}

describe('a turn with state that the checker does not see', () => {
  test('is not treated as useless', () => {
    for (const kind of programs.kinds) {
      const { result, seen } = outcomes(() => programs.givesUp(kind))
      expect(seen, kind).toEqual(['gave up', 'seen'])
      // The checker assumes nothing about code that is not instrumented.
      expect(result, kind).toMatchObject({
        complete: !kind.startsWith('unseen') || /of the language|static field/.test(kind),
        executions: 4,
      })
    }
    expect(outcomes(() => programs.turnsInVar()).seen).toEqual(['gave up', 'seen'])
  })
})

describe('a loop that waits and counts', () => {
  test('is explored up to the limit of turns, and is reported as incomplete', () => {
    for (const how of ['variable', 'object', 'new', 'array', 'for of'] as const) {
      const { result, seen } = outcomes(() => programs.counts(how), { turns: 5 })
      expect(seen, how).toEqual(['0', '1', '2', '3', '4', '5', '6'])
      expect(result, how).toMatchObject({ ok: true, complete: false, outcome: 'incomplete' })
      expect(result.why).toContain('more than 5 times in a row')
      expect(result.executions).toBe(7)
    }
  })

  test('without a loop is explored up to the step limit, and is reported as incomplete', () => {
    const { result, seen } = outcomes(() => programs.counts('recursion'), { steps: 40 })
    expect(seen.length).toBeGreaterThan(30)
    expect(result).toMatchObject({ ok: true, complete: false })
    expect(result.why).toContain('more than 40 steps')
  })

  test('throws CheckIncomplete where the check does not accept it', () => {
    expect(() => check('counts', { turns: 2 }, () => programs.counts('variable'))).toThrow(CheckIncomplete)
    expect(() => check('counts', { turns: 2 }, () => programs.counts('variable'))).toThrow(
      /^◐ counts: 4 executions/,
    )
    expect(check('counts', { turns: 2, allowIncomplete: true }, () => programs.counts('variable')).ok).toBe(
      true,
    )
  })

  test('finds the writes of other threads', () => {
    const { result } = outcomes(() => programs.countedLock(3), { turns: 2 })
    expect(result).toMatchObject({ ok: true, complete: false })
    expect(result.executions).toBeGreaterThan(6)
    for (const explorer of ['random', 'preemption-bounded', 'round-robin'] as const)
      expect(outcomes(() => programs.countedLock(3), { explorer, runs: 50 }).result.ok).toBe(true)
  })

  test('for ever is a livelock', () => {
    const found = (): CheckResult =>
      check('counts', { steps: 200, shrink: 0 }, () => programs.countedDeadlock())
    expect(found).toThrow(CheckFailure)
    expect(found).toThrow(/livelock/)
  })
})

test('a check that touches no shared memory, or never ends, is an error', () => {
  const nothing = (): CheckResult =>
    check('nothing', () => ({ threads: [function* () {}, function* () {}] as never }))
  expect(nothing).toThrow(CheckError)
  expect(nothing).toThrow(/no thread of the check touches shared memory/)
})

describe('memory that grows', () => {
  test('is seen before and after it has grown', () => {
    expect(outcomes(() => programs.grows('length'))).toMatchObject({
      seen: ['1', '2'],
      result: { complete: true },
    })
    expect(outcomes(() => programs.grows('bytes')).seen).toEqual(['4', '8'])
    expect(outcomes(() => programs.grows('element')).seen).toEqual(['0', 'undefined'])
    expect(outcomes(() => programs.grows('write')).seen).toEqual(['0', '5', 'undefined'])
  })
})
