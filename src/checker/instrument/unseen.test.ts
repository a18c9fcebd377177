import { beforeAll, describe, expect, test } from 'vitest'
import { check, CheckError, type CheckResult } from '../check.ts'
import { loadInstrumented } from '../../../testing/checker/programs/load.ts'
import type { Way } from '../../../testing/checker/programs/unseen.ts'

type Programs = typeof import('../../../testing/checker/programs/unseen.ts')
let programs: Programs
beforeAll(async () => {
  programs = await loadInstrumented<Programs>(
    new URL('../../../testing/checker/programs/unseen.ts', import.meta.url),
  )
})

function checked(way: Way): CheckResult {
  return check(way.way, { allowIncomplete: true }, () => ({
    threads: programs.threads(way, new Int32Array(new SharedArrayBuffer(4))),
  }))
}

describe('code that is not instrumented', () => {
  test('makes the result incomplete or is refused, whatever makes a thread run it', () => {
    const passed: string[] = []
    for (const way of programs.hidden) {
      try {
        const { outcome, why } = checked(way)
        if (outcome !== 'incomplete' || !/unseen\.ts:\d+:\d+/.test(why))
          passed.push(`${way.way}: ${outcome} ${why}`)
      } catch (error) {
        if (!(error instanceof CheckError)) throw error
        expect(error.code, way.way).toBe('ERR_CHECK_UNINSTRUMENTED')
      }
    }
    expect(passed).toEqual([])
  })

  test('makes the result incomplete also when a single execution of many runs it', () => {
    const passed: string[] = []
    for (let first = 0; first <= 4; first++) {
      for (let second = 0; second <= 4; second++) {
        const { outcome, executions } = check('rarely', { allowIncomplete: true }, () => ({
          threads: programs.rarely(new Int32Array(new SharedArrayBuffer(8)), first, second),
        }))
        if (outcome !== 'incomplete') passed.push(`${first} ${second}: ${executions} executions`)
      }
    }
    expect(passed).toEqual([])
  })

  test('makes the result incomplete also where a function of the check that nothing drives uses it', () => {
    const passed: string[] = []
    for (const { way, run } of programs.undriven) {
      for (const { use, run: used } of programs.uses) {
        const { outcome } = check('undriven', { allowIncomplete: true }, () => ({
          threads: programs.undrivenThreads(run, used),
        }))
        if (outcome !== 'incomplete') passed.push(`${way}, ${use}: ${outcome}`)
      }
      expect(
        check('known', () => ({ threads: programs.undrivenThreads(run, programs.computes) })).why,
        way,
      ).toBe('')
    }
    expect(passed).toEqual([])
  })

  test('does not include the language, the check and assertions', () => {
    for (const way of programs.known) expect(checked(way), way.way).toMatchObject({ complete: true, why: '' })
  })
})
