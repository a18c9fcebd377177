import { beforeAll, describe, expect, test } from 'vitest'
import { check, CheckFailure, type CheckOptions } from '../check.ts'
import { loadInstrumented } from '../../../testing/checker/programs/load.ts'
import { formatFailure, formatSummary, toJson, toTimeline } from './report.ts'
import { formatSchedule, parseSchedule } from '../machine/schedule.ts'

type KnownBad = typeof import('../../../testing/checker/programs/knownbad.ts')

let programs: KnownBad
beforeAll(async () => {
  programs = await loadInstrumented<KnownBad>(
    new URL('../../../testing/checker/programs/knownbad.ts', import.meta.url),
  )
})

function failureOf(name: keyof KnownBad, options: CheckOptions = {}): CheckFailure {
  try {
    check(name, options, () => programs[name](false))
  } catch (error) {
    if (error instanceof CheckFailure) return error
    throw error
  }
  throw new Error(`${name} passes`)
}

describe('a report', () => {
  test('has a column for each thread, a line for each step, with place and values, and marks the racing steps', () => {
    const { message, steps } = failureOf('publishBeforeWrite')
    const lines = message.split('\n')
    expect(lines[0]).toMatch(
      /^✗ publishBeforeWrite: data race between producer \(.*knownbad\.ts:\d+:\d+\) and consumer/,
    )
    expect(message).toMatch(/0: producer +│ 1: consumer +│ where/)
    expect(message).toMatch(/^ +\d+ ▶ write memory\[SLOTS \+ head = 2\] = 1 +│ +│ knownbad\.ts:\d+$/m)
    expect(message).toMatch(/^ +\d+ ▶ +│ read memory\[SLOTS \+ tail = 2\] → 1 +│ knownbad\.ts:\d+$/m)
    expect(message).toMatch(/^ +\d+ {3}store memory\[HEAD = 0\] = 1 /m)
    expect(lines.filter(line => /^ +\d+ [▶ ]/.test(line))).toHaveLength(steps.length)
    expect(lines.filter(line => line.includes('▶'))).toHaveLength(2)
  })

  test('names the word that a sleeper waits for and the notify that it missed', () => {
    const { message } = failureOf('sleepWithoutRecheck')
    expect(message).toContain('lost wakeup: sleeper is asleep and no thread is left that could wake it')
    expect(message).toContain('waker notified before it slept')
    expect(message).toMatch(/wait memory\[SIGNAL = 1\] while 0 → sleeps/)
  })

  test('shows the value that a compare-exchange expected, and the one that it found when it failed', () => {
    const { message } = failureOf('unlockForgetsWaiters')
    expect(message).toMatch(/compareExchange memory\[0\] 0 ⇒ 1, done/)
    expect(message).toMatch(/compareExchange memory\[0\] 0 ⇒ 1, failed: it is [12]/)
    expect(message).toContain('changed the word that it sleeps on, without waking it')
  })

  test('gives the error with the place that threw it, and the command that replays it', () => {
    const { message, result } = failureOf('tornRead')
    expect(message).toMatch(/Error: torn: ffffffff\n +at .*knownbad\.ts(?:\?checked)?:\d+/)
    const schedule = formatSchedule(result.failure!.schedule)
    expect(message).toContain(`schedule: ${schedule}\n`)
    expect(message).toContain(`{ explorer: 'replay', schedule: '${schedule}' }`)
  })

  test('shows only those lines of a stack that belong to the check', () => {
    const error = new Error('lost')
    error.stack = `Error: lost
    at final (/work/bad.check.ts:5:73)
    at Q.[heddle.method.0] (/work/bad.check.ts:4:100)
    at [heddle.method.0].next (<anonymous>)
    at searchHere (file:///p/node_modules/heddle/dist/checker/run/runner.js:139:37)
    at judge (file:///p/node_modules/heddle/dist/checker/chunk.js:1478:29)
    at CheckRunner.search (file:///p/node_modules/heddle/dist/checker/packages.js:341:34)
    at runtime (file:///p/node_modules/heddle/dist/compiler/runtime/chunk.js:34:3)
    at mine (/work/dist/checker/queue.js:1:2)
    at file:///p/node_modules/heddle/dist/checker/search/worker.js:1:1
    at async Command.<anonymous> (file:///p/node_modules/heddle/dist/cli/check.js:22:22)
    at async Command.parseAsync (/p/node_modules/commander/lib/command.js:1122:5)`
    const { result, steps } = failureOf('publishBeforeWrite')
    const text = formatFailure({ ...result, failure: { ...result.failure!, error } }, steps, '')
    expect(text.match(/(?<=^ +)at .*$/gm)).toEqual([
      'at final (/work/bad.check.ts:5:73)',
      'at Q.<method> (/work/bad.check.ts:4:100)',
      'at mine (/work/dist/checker/queue.js:1:2)',
    ])
  })

  test('shows the shortest schedule', () => {
    const long = failureOf('abaFreeList', { shrink: 0, explorer: 'random', seed: 3 }).result.failure!
    const short = failureOf('abaFreeList', { explorer: 'random', seed: 3 }).result.failure!
    expect(short.kind).toBe(long.kind)
    // Two reads, the whole other thread, and the compare-exchange that must not succeed.
    expect(formatSchedule(short.schedule)).toBe('0x2.1x9.0')
    expect(short.schedule.threads.length).toBeLessThanOrEqual(long.schedule.threads.length)
    expect(formatSchedule(failureOf('tornRead').result.failure!.schedule)).toBe('0.1x2')
  })

  test('as JSON has the same content, as plain data', () => {
    const { result, steps } = failureOf('lockOrder')
    const json = JSON.parse(JSON.stringify(toJson(result, steps, 'lock.check.ts'))) as {
      file: string
      failure: { kind: string; schedule: string; steps: { thread: number; line: number; marked: boolean }[] }
    }
    expect(json).toMatchObject({ name: 'lockOrder', file: 'lock.check.ts', ok: false, complete: false })
    expect(json.failure.kind).toBe('deadlock')
    expect(json.failure.steps.map(({ thread }) => thread)).toEqual(
      parseSchedule(json.failure.schedule).threads,
    )
    expect(json.failure.steps.filter(({ marked }) => marked)).toHaveLength(2)
    expect(json.failure.steps.every(({ line }) => line > 0)).toBe(true)
  })

  test('as a timeline has a track for each thread and an event for each step', () => {
    const { result, steps } = failureOf('lockOrder')
    const { traceEvents } = toTimeline(result, steps) as { traceEvents: Record<string, unknown>[] }
    const names = traceEvents
      .filter(({ name }) => name === 'thread_name')
      .map(({ args }) => (args as { name: string }).name)
    expect(names).toEqual(['one', 'two'])
    const events = traceEvents.filter(({ ph }) => ph === 'X')
    expect(events.map(({ tid }) => tid)).toEqual(result.failure!.schedule.threads)
    expect(events.map(({ ts }) => ts)).toEqual(events.map((_, i) => i))
    expect(traceEvents.at(-1)).toMatchObject({ ph: 'i', cat: 'deadlock' })
  })

  test('of a check that passes says how much was covered', () => {
    const result = check('lockOrder', {}, () => programs.lockOrder(true))
    expect(formatSummary(result)).toMatch(
      /^✓ lockOrder: 4 executions .*; complete: every interleaving is covered$/,
    )
  })
})

describe('a schedule', () => {
  test('is written with runs counted and deaths first, and can be read back', () => {
    const schedule = { threads: [0, 0, 0, 1, 0, 0, 12], crashes: [{ thread: 2, step: 7 }] }
    expect(formatSchedule(schedule)).toBe('2!7/0x3.1.0x2.12')
    expect(parseSchedule('2!7/0x3.1.0x2.12')).toEqual(schedule)
    expect(parseSchedule('')).toEqual({ threads: [], crashes: [] })
  })
})
