import { beforeAll, expect, test } from 'vitest'
import { check, CheckError } from '../check.ts'
import { loadInstrumented } from '../../../testing/checker/programs/load.ts'

type Programs = typeof import('../../../testing/checker/programs/chance.ts')
let programs: Programs
beforeAll(async () => {
  programs = await loadInstrumented<Programs>(
    new URL('../../../testing/checker/programs/chance.ts', import.meta.url),
  )
})

test('clocks and chance are refused with their place, by any name, also when the thread catches the error', () => {
  const passed: string[] = []
  for (const [name, run] of Object.entries(programs.chances)) {
    try {
      const { outcome, why } = check(name, { allowIncomplete: true }, () => ({
        threads: programs.chanceThreads(run),
      }))
      passed.push(`${name}: ${outcome} ${why}`)
    } catch (error) {
      if (!(error instanceof CheckError)) throw error
      expect(error.code, name).toBe('ERR_CHECK_NONDETERMINISTIC')
      expect(error.message, name).toMatch(/chance\.ts:\d+:\d+/)
    }
  }
  expect(passed).toEqual([])
  expect([
    Math.random() < 1,
    Date.now() > 0,
    performance.now() > 0,
    process.hrtime.bigint() > 0n,
  ]).not.toContain(false)
})
