import { beforeAll, describe, expect, test } from 'vitest'
import { loadInstrumented } from '../../../testing/checker/programs/load.ts'
import { check, CheckFailure, type CheckOptions, type Setup } from '../check.ts'
import { formatSchedule } from '../machine/schedule.ts'

type Sharing = typeof import('../../../testing/checker/programs/sharing.ts')

let programs: Sharing
beforeAll(async () => {
  programs = await loadInstrumented<Sharing>(
    new URL('../../../testing/checker/programs/sharing.ts', import.meta.url),
  )
})

describe('threads that share more than memory', () => {
  test('never lead to ✓ when the order of their steps makes a difference', () => {
    const passed = programs.unsound.filter(({ what, program }) => {
      try {
        return check(what, program).ok
      } catch {
        return false
      }
    })
    expect(passed.map(({ what }) => what)).toEqual([])
    expect(programs.unsound.length).toBeGreaterThan(5)
  })

  test('fail with a schedule that fails again, where there is one', () => {
    const { program } = programs.unsound[0]
    const schedule = formatSchedule(failureOf('shared', {}, program).result.failure!.schedule)
    const again = failureOf('again', { explorer: 'replay', schedule }, program)
    expect(again.message).toContain('it is ready')
  })

  test('are named where a thread takes another step', () => {
    const { program } = programs.unsound.at(-1)!
    expect(() => check('shared', program)).toThrow(/threads share a variable or an object/)
  })

  test('pass when no order makes a difference', () => {
    for (const { what, program } of programs.sound) expect(check(what, program).ok, what).toBe(true)
  })
})

test('a value that is not equal to itself is no difference between two runs', () => {
  expect(check('floats', { races: false }, () => programs.floats())).toMatchObject({
    ok: true,
    complete: true,
  })
})

function failureOf(name: string, options: CheckOptions, setup: Setup): CheckFailure {
  try {
    check(name, options, setup)
  } catch (error) {
    if (error instanceof CheckFailure) return error
    throw error
  }
  throw new Error(`${name} passes`)
}
