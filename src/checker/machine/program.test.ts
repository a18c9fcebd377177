import { beforeAll, describe, expect, test } from 'vitest'
import { check, CheckError, CheckFailure } from '../check.ts'
import { loadInstrumented } from '../../../testing/checker/programs/load.ts'

type Programs = typeof import('../../../testing/checker/programs/parts.ts')
let programs: Programs
beforeAll(async () => {
  programs = await loadInstrumented<Programs>(
    new URL('../../../testing/checker/programs/parts.ts', import.meta.url),
  )
})

function thrownBy(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  return undefined
}

describe('the parts of a check', () => {
  test('are refused when one would never run, or would judge nothing', () => {
    const passed: string[] = []
    for (const { what, code, options, setup } of programs.wrongs) {
      const error = thrownBy(() => check(what, options ?? {}, setup))
      if (!(error instanceof CheckError) || error.code !== code)
        passed.push(
          `${what}: ${error instanceof CheckError ? `${error.code} ${error.message}` : String(error)}`,
        )
    }
    expect(passed).toEqual([])
  })

  test('judge by what they return, and by anything that they throw', () => {
    for (const { what, title, options, setup } of programs.failing) {
      const error = thrownBy(() => check(what, options ?? {}, setup))
      expect(error, what).toBeInstanceOf(CheckFailure)
      expect((error as CheckFailure).result.failure?.title, what).toMatch(title)
    }
  })

  test('are a name, options and a set-up, in this order', () => {
    const setup = programs.failing[0]!.setup
    expect(() => check('options last', setup as never, {} as never)).toThrow(/check\(name, options, setup\)/)
  })
})
