import { beforeAll, describe, expect, test } from 'vitest'
import { check, CheckError, CheckFailure, type CheckOptions, type Program, type Setup } from '../check.ts'
import { loadInstrumented } from '../../../testing/checker/programs/load.ts'
import { formatSchedule } from '../machine/schedule.ts'

let programs: typeof import('../../../testing/checker/programs/always.ts')
beforeAll(async () => {
  programs = await loadInstrumented(new URL('../../../testing/checker/programs/always.ts', import.meta.url))
})

function failureOf(setup: Setup, options: CheckOptions = {}): CheckFailure {
  try {
    check('fails', options, setup)
  } catch (error) {
    if (error instanceof CheckFailure) return error
    throw error
  }
  throw new Error('the check passes')
}

describe('an invariant', () => {
  test('is found broken in a state that exists only between two steps', () => {
    const { message, result } = failureOf(programs.raiseBoth)
    expect(result.failure?.kind).toBe('assertion')
    expect(result.failure?.title).toMatch(
      /an invariant does not hold after a step of (left|right): both are up/,
    )
    expect(message).toContain('left 1, right 1')
    expect(result.failure?.schedule.threads, 'the schedule ends where it is broken').toHaveLength(2)
  })

  test('makes each order of the writes of watched words an execution of its own', () => {
    const unwatched = (): Program => {
      const { threads } = programs.raiseBoth()
      return { threads }
    }
    expect(check('unwatched', {}, unwatched)).toMatchObject({ executions: 1, complete: true })
    const states = new Set<string>()
    const result = check('watched', {}, () => {
      const program = programs.raiseBoth()
      const { words } = program.always
      return { ...program, always: { words, holds: ({ left, right }) => void states.add(`${left}${right}`) } }
    })
    expect(result).toMatchObject({ executions: 6, complete: true })
    expect([...states].sort()).toEqual(['00', '01', '10', '11'])
  })

  test('holds if the threads exclude each other, and the search is complete', () => {
    expect(check('in turn', {}, programs.raiseInTurn)).toMatchObject({
      ok: true,
      complete: true,
      executions: 2,
    })
  })

  test.each(['preemption-bounded', 'pct', 'random', 'round-robin'] as const)('is checked by %s', explorer => {
    expect(failureOf(programs.raiseBoth, { explorer }).message).toContain('both are up')
  })

  test('fails again on the schedule of its report', () => {
    const { failure } = failureOf(programs.raiseBoth).result
    const schedule = formatSchedule((failure as NonNullable<typeof failure>).schedule)
    expect(failureOf(programs.raiseBoth, { explorer: 'replay', schedule }).message).toContain('both are up')
  })

  test('is checked before the first step', () => {
    const setup = (): Program => {
      const program = programs.raiseInTurn()
      const [memory] = program.always.words.left
      memory.fill(1, 0, 2)
      return program
    }
    expect(failureOf(setup).message).toContain('an invariant does not hold after the set-up: both are up')
  })

  test('is checked while a recovery runs', () => {
    expect(check('lives', {}, programs.diesInBetween).ok).toBe(true)
    expect(failureOf(programs.diesInBetween, { crashes: 1 }).message).toContain(
      'after a step of recovery: both are up',
    )
  })

  test('names the word that is not valid', () => {
    const setup = (): Program => {
      const { threads, always } = programs.raiseBoth()
      const [memory] = always.words.left
      return {
        threads,
        always: { words: { fine: [memory, 1], beyond: [memory, 2] }, holds: () => undefined },
      }
    }
    expect(() => check('wrong', {}, setup)).toThrow(CheckError)
    expect(() => check('wrong', {}, setup)).toThrow(/"beyond" is not/)
  })
})
