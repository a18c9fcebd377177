import { beforeAll, expect, test } from 'vitest'
import { loadInstrumented } from '../../../testing/checker/programs/load.ts'
import { CheckError, conclude, type CheckOptions, type Program, searchOf } from '../check.ts'
import { CheckList } from './checklist.ts'
import type { CheckView } from './checkview.ts'

type Reordered = typeof import('../../../testing/checker/programs/reordered.ts')

let programs: Reordered
beforeAll(async () => {
  programs = await loadInstrumented<Reordered>(
    new URL('../../../testing/checker/programs/reordered.ts', import.meta.url),
  )
})

/** A list after one check. */
function listOf(setup: () => Program, options: CheckOptions = {}): { list: CheckList; check: CheckView } {
  const list = new CheckList(file => `text of ${file.split('/').at(-1)}`)
  const search = searchOf('program', options, setup)
  const number = list.begin('a.check.ts', 'program')
  expect(list.data.checks[0].status).toBe('running')
  search.run()
  const { result, steps } = conclude(search)
  list.end(number, result, steps, search)
  return { list, check: list.data.checks[0] }
}

test('a check that failed has its execution, its sources, and answers with another order', () => {
  const { list, check } = listOf(programs.counter)
  expect(check).toMatchObject({ status: 'failed', fixed: '', execution: { end: { failure: 'data-race' } } })
  expect(Object.values(list.data.sources)).toEqual(['text of reordered.ts'])
  expect(list.answer({ check: 0, schedule: '1x2.0', firm: 3 })).toMatchObject({ possible: true })
})

test('a check that passed has the shape of its search, and nothing to run again', () => {
  const { list, check } = listOf(programs.bell)
  expect(check).toMatchObject({ status: 'passed', why: '', execution: undefined, fraction: 1 })
  expect(check.shape!.lengths.reduce((all, n) => all + n, 0)).toBe(check.executions)
  expect(list.answer({ check: 0, schedule: '0', firm: 1 })).toEqual({
    error: 'check 0 has no execution that can run again',
  })
})

test('an execution of weak memory is shown, and its steps stay where they are', () => {
  const { list, check } = listOf(programs.lossy, { memory: 'weak' })
  expect(check.status).toBe('failed')
  expect(check.execution!.steps.length).toBeGreaterThan(0)
  expect(check.fixed).toMatch(/^Only an interleaving/)
  expect(list.answer({ check: 0, schedule: '0', firm: 1 })).toHaveProperty('error')
})

test('what is no request, or no schedule, is an error with the reason', () => {
  const { list } = listOf(programs.counter)
  for (const request of [
    null,
    7,
    {},
    { check: 0, schedule: 1, firm: 1 },
    { check: 0.5, schedule: '0', firm: 1 },
  ])
    expect(list.answer(request)).toEqual({
      error: expect.stringContaining('is no request to run a schedule'),
    })
  expect(list.answer({ check: 0, schedule: '0z', firm: 1 })).toEqual({
    error: expect.stringContaining('`0z` is not part of a schedule'),
  })
})

test('a check that is wrong says why', () => {
  const list = new CheckList(() => undefined)
  list.wrong(list.begin('a.check.ts', 'wrong'), new CheckError('ERR_CHECK_NOTHING', 'it does nothing'))
  expect(list.data.checks[0]).toMatchObject({ status: 'wrong', why: 'it does nothing [ERR_CHECK_NOTHING]' })
})
