import { beforeAll, expect, test } from 'vitest'
import { loadInstrumented } from '../../../testing/checker/programs/load.ts'
import type { Program } from '../check.ts'
import type { Execution } from '../report/execution.ts'
import { parseSchedule } from '../machine/schedule.ts'
import { failingExecution, type Rerun, rerun } from './rerun.ts'
import { Search } from './search.ts'

type Reordered = typeof import('../../../testing/checker/programs/reordered.ts')

let programs: Reordered
beforeAll(async () => {
  programs = await loadInstrumented<Reordered>(
    new URL('../../../testing/checker/programs/reordered.ts', import.meta.url),
  )
})

function searched(setup: () => Program): Search {
  const search = new Search('program', {}, setup)
  search.run()
  return search
}

function executionOf(ran: Rerun): Execution {
  if (!ran.possible) throw new Error(ran.why)
  return ran.execution
}

test('a schedule runs again, with its words, its conflicts and its racing pair', () => {
  const search = searched(programs.counter)
  const { schedule } = search.result.failure!
  const { threads, steps, words, race, end } = executionOf(rerun(search, schedule))
  expect(threads).toEqual(['one', 'two'])
  expect(words).toEqual([{ name: 'memory[0]', initial: '0' }])
  expect(end).toMatchObject({ kind: 'failed', failure: 'data-race' })
  expect(race).toEqual([steps.length - 2, steps.length - 1])
  expect(steps.map(({ thread, kind, word, value }) => [thread, kind, word, value])).toEqual([
    [0, 'read', 0, '0'],
    [0, 'write', 0, '1'],
    [1, 'read', 0, '1'],
  ])
  expect(steps.map(({ after }) => after)).toEqual([[], [], [1]])
})

test('the execution of a failure is recorded as the search found it', () => {
  const search = searched(programs.counter)
  const { failure } = search.result
  expect(failingExecution(search, failure!)).toEqual(executionOf(rerun(search, failure!.schedule)))
})

test('another order of the same steps ends in its own way', () => {
  const search = searched(programs.bell)
  expect(search.result.outcome).toBe('passed')
  const waits = executionOf(rerun(search, parseSchedule('0.1x3.0')))
  expect(waits.end).toEqual({ kind: 'passed', title: 'no failure; the outcome is 7', detail: [] })
  expect(waits.steps.map(({ kind }) => kind)).toEqual(['wait', 'store', 'store', 'notify', 'load'])
  // The notify woke the sleeper, and the store of the value came before its load.
  expect(waits.steps[4].after).toEqual([3])
  const early = executionOf(rerun(search, parseSchedule('1x3.0x2')))
  expect(early.steps[3].effect).toContain('not-equal')
})

test('an order in which a thread cannot move is not possible, and the reason is named', () => {
  const search = searched(programs.bell)
  expect(rerun(search, parseSchedule('0x2.1x3'))).toEqual({
    possible: false,
    at: 1,
    why: 'sleeper sleeps there, and no thread has woken it yet',
  })
  expect(rerun(search, parseSchedule('1x4.0x2'))).toMatchObject({ at: 3, why: 'ringer has ended by then' })
  expect(rerun(search, parseSchedule('7'))).toMatchObject({ at: 0, why: 'there is no thread 7' })
  // Only the first entries are firm: the others are followed as far as they can be.
  expect(rerun(search, parseSchedule('1x4.0x2'), 3).possible).toBe(true)
})

test('a mutex is a word that its holder owns', () => {
  const search = searched(programs.locked)
  const { words, steps } = executionOf(rerun(search, parseSchedule('0x4.1x4')))
  expect(words.map(({ name, initial }) => `${name} ${initial}`)).toEqual(['mutex free', 'memory[0] 0'])
  expect(steps.map(({ value }) => value)).toEqual(['one', '0', '1', 'free', 'two', '1', '2', 'free'])
  expect(rerun(search, parseSchedule('0.1'))).toMatchObject({
    why: 'two waits there for a lock that another thread holds',
  })
})

test('a search counts its executions by length, and where they branch', () => {
  const search = searched(programs.bell)
  const { executions } = search.result
  const { lengths, branches, sites } = search.shape
  const sum = (counts: readonly number[]): number => counts.reduce((all, n) => all + n, 0)
  expect(sum(lengths)).toBe(executions)
  expect(sum(branches)).toBe(executions)
  expect(sites[0]).toMatchObject({ file: expect.stringMatching(/reordered\.ts$/) })
  expect(sum(sites.map(site => site.branches))).toBe(executions)
})
