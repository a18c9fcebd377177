import { beforeAll, describe, expect, test } from 'vitest'
import { check, CheckFailure, type CheckOptions, type FailureKind } from '../check.ts'
import { formatSchedule } from '../machine/schedule.ts'
import { loadInstrumented } from '../../../testing/checker/programs/load.ts'

type KnownBad = typeof import('../../../testing/checker/programs/knownbad.ts')

let programs: KnownBad
beforeAll(async () => {
  programs = await loadInstrumented<KnownBad>(
    new URL('../../../testing/checker/programs/knownbad.ts', import.meta.url),
  )
})

const mistakes: readonly [keyof KnownBad, FailureKind, string][] = [
  ['sleepWithoutRecheck', 'lost-wakeup', 'a sleep without a second check'],
  ['publishBeforeWrite', 'data-race', 'a ring that publishes before it writes'],
  ['doubleCheckedFlag', 'data-race', 'a double-checked flag that is not atomic'],
  ['unlockForgetsWaiters', 'lost-wakeup', 'a mutex whose unlock forgets waiters, with three threads'],
  ['abaFreeList', 'assertion', 'an ABA in a free list'],
  ['lockOrder', 'deadlock', 'two locks in two orders'],
  ['tornRead', 'exception', 'a 64-bit value read in halves'],
  ['tornPlainRead', 'data-race', 'a 64-bit value read plainly'],
]

function failureOf(name: keyof KnownBad, options: CheckOptions = {}): CheckFailure {
  try {
    check(name, options, () => programs[name](false))
  } catch (error) {
    if (error instanceof CheckFailure) return error
    throw error
  }
  throw new Error(`${name} passes`)
}

describe('a known mistake', () => {
  for (const [name, kind, what] of mistakes) {
    test(`${what} is found, and the correct version passes exhaustively`, () => {
      expect(failureOf(name).result.failure?.kind).toBe(kind)
      expect(check(name, {}, () => programs[name](true))).toMatchObject({ ok: true, complete: true })
    })

    test(`${what} fails again on the schedule of its report`, () => {
      const { failure } = failureOf(name).result
      const schedule = formatSchedule(failure!.schedule)
      const again = failureOf(name, { explorer: 'replay', schedule }).result
      expect(again.failure?.kind).toBe(kind)
      expect(formatSchedule(again.failure!.schedule)).toBe(schedule)
      expect(again.executions + again.redundant).toBeLessThanOrEqual(1)
    })

    test(`${what} is found by the other explorers, which do not claim to be complete`, () => {
      for (const options of [
        { explorer: 'preemption-bounded', preemptions: 2 },
        { explorer: 'pct', depth: 3, runs: 5000 },
        { explorer: 'random', runs: 5000 },
      ] as const) {
        const { result } = failureOf(name, options)
        expect(result.failure?.kind).toBe(kind)
        expect(result.complete).toBe(false)
      }
    })
  }

  test('the mutex that forgets waiters needs its third thread', () => {
    const two = (): ReturnType<KnownBad['unlockForgetsWaiters']> => {
      const program = programs.unlockForgetsWaiters(false)
      return { threads: (program.threads as (() => unknown)[]).slice(0, 2) }
    }
    expect(check('two threads', {}, two)).toMatchObject({ ok: true, complete: true })
  })

  test('the ring that publishes early also delivers a wrong value when the check ignores data races', () => {
    expect(failureOf('publishBeforeWrite', { races: false }).result.failure?.title).toContain('the value is')
  })
})
