import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { ThreadPool } from './pool.ts'
import { learn, Placements } from './taskpriority.ts'

const asked = { name: 'f', filename: '/work.js', priority: undefined, nice: undefined }
const urgency = ({ options }: { options: { priority?: unknown } }): number => Number(options.priority ?? 128)

function after(runs: readonly boolean[], task: Parameters<Placements['of']>[0] = asked): number {
  const standings = new Placements(true)
  const handler = standings.handlerOf(task)
  for (const isLong of runs) learn(standings.known!, handler, isLong)
  return urgency(standings.of(task, handler))
}

test('a handler goes ahead until several of its runs were long, and again when they are short', () => {
  const long = Array<boolean>(5).fill(true)
  const ahead = after([])
  expect(after([true, true])).toBe(ahead)
  expect(after([...long, false, false])).toBe(ahead)
  expect(after([true, true, false, true, true, false, true, true, false])).toBe(ahead)
  expect(after(long)).toBeGreaterThan(ahead)
  expect(after(long)).toBeLessThan(128)
  expect(after(Array<boolean>(1000).fill(true))).toBe(after(long))
})

test("with 'normal' a task does not go ahead; any other priority is the program's", () => {
  expect(after([], { ...asked, priority: 'normal' })).toBe(after(Array<boolean>(5).fill(true)))
  const { options, goesAhead } = new Placements(true).of({ ...asked, priority: 'high' }, 0)
  expect([options, goesAhead]).toEqual([{ priority: 'high' }, false])
})

test('if a task has a nice value, tasks share by weight', () => {
  const standings = new Placements(true)
  expect(standings.of({ ...asked, nice: 5 }, 0).options).toEqual({ nice: 5 })
  expect(standings.of({ ...asked, priority: 'normal' }, 0).options).toEqual({})
  expect(standings.afterAhead).toBe('normal')
})

test('handlers have separate entries, and those beyond the table share one', () => {
  const standings = new Placements(true)
  const numbers = Array.from({ length: 3000 }, (_, at) => standings.handlerOf({ ...asked, name: `f${at}` }))
  expect(new Set(numbers).size).toBe(standings.known!.length)
  expect(Math.max(...numbers)).toBe(standings.known!.length - 1)
  expect(standings.handlerOf({ ...asked, name: 'f7' })).toBe(numbers[7])
})

test('without preemption no task goes ahead, and nothing is recorded', () => {
  const standings = new Placements(false)
  expect(standings.known).toBeNull()
  expect(standings.of(asked, 0)).toEqual({ options: {}, goesAhead: false })
})

test('the workers learn which handlers are long', async () => {
  const filename = fileURLToPath(new URL('../../testing/piscina/fixtures/work.cjs', import.meta.url))
  const pool = new ThreadPool(
    { emit: () => true, asyncId: 0 },
    { filename, minThreads: 1, maxThreads: 1, compile: [filename] },
  )
  const { standings } = pool
  const standingOf = (name: string): number => {
    const task = { ...asked, name, filename }
    return urgency(standings.of(task, standings.handlerOf(task)))
  }
  const ahead = standingOf('burns')
  for (let run = 0; run < 5; run++) await pool.run(15, { name: 'burns' })
  await pool.run(1, {})
  expect(standingOf('burns')).toBeGreaterThan(ahead)
  expect(standingOf('default')).toBe(ahead)
  for (let run = 0; run < 3; run++) await pool.run(1, { name: 'burns' })
  expect(standingOf('burns')).toBe(ahead)
  await pool.destroy()
})
