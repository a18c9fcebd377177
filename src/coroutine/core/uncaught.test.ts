import { describe, expect, test } from 'vitest'
import { sleep, wait } from './blocking.ts'
import type { Co } from '../schedule/co.ts'
import { needResched, PREEMPTED } from './coroutine.ts'
import { resumable } from './generators.ts'
import { Schedule } from '../schedule/schedule.ts'

type Body = Generator<number, any, any>

const innermost = resumable(function* innermost(): Body {
  yield* sleep(1)
  if (needResched()) yield PREEMPTED
  yield* sleep(1)
  throw new Error('deep down')
})

const middle = resumable(function* middle(): Body {
  yield* sleep(1)
  return yield* innermost()
})

const outermost = resumable(function* outermost(): Body {
  return yield* middle()
})

async function failing(schedule: Schedule): Promise<Error & { coroutine?: unknown }> {
  try {
    await schedule.run({ name: 'report' }, outermost)
  } catch (error) {
    return error as Error
  }
  throw new Error('it did not fail')
}

/** The functions of a stack, in order. */
function frames(error: Error): string[] {
  const lines = error.stack!.split('\n').filter(line => /^\s+at /.test(line))
  return lines.map(line => /at (?:async )?([^(/]+?)(?: \(|$)/.exec(line)?.[1].trim() ?? line.trim())
}

describe('an error that a coroutine does not catch', () => {
  test('shows its own callers across suspensions, its name, and where it was made', async () => {
    const error = await failing(new Schedule())
    expect(frames(error).slice(0, 5)).toEqual([
      'innermost',
      'middle',
      'outermost',
      'coroutine report #1',
      'failing',
    ])
    expect(error.stack).not.toMatch(/schedule\.ts|switch\.ts|generators\.ts/)
    expect(error.message).toBe('deep down')
    expect(error.coroutine).toEqual({ id: 1, name: 'report' })
    expect(Object.keys(error)).toEqual([])
  })

  test('whose lines are those of the calls', async () => {
    const error = await failing(new Schedule())
    const lines = error.stack!.split('\n').filter(line => line.includes('uncaught.test.ts'))
    const at = (text: string): number =>
      Number(/:(\d+):\d+\)?$/.exec(lines.find(line => line.includes(text))!)![1])
    expect(at('innermost')).toBeLessThan(at('middle'))
    expect(at('middle')).toBeLessThan(at('outermost'))
  })

  test('caught by a caller shows the frames up to that one', async () => {
    let seen: string[] = []
    await new Schedule().run(function* catcher(): Body {
      try {
        yield* outermost()
      } catch (error) {
        seen = frames(error as Error)
      }
    })
    expect(seen.slice(0, 4)).toEqual(['innermost', 'middle', 'outermost', 'catcher'])
  })

  test('goes to onError with its coroutine when no caller waits for it', async () => {
    const told: [string, string][] = []
    const onError = (error: unknown, co: Co<any>): void => void told.push([(error as Error).message, co.name])
    const schedule = new Schedule({ onError })
    schedule.go({ name: 'lonely' }, outermost)
    await schedule.run()
    expect(told).toEqual([['deep down', 'lonely']])
  })

  test('is an unhandled rejection otherwise, and not when a caller reads the outcome', async () => {
    const unhandled: unknown[] = []
    const listener = (error: unknown): void => void unhandled.push((error as Error).message)
    const before = process.listeners('unhandledRejection')
    process.removeAllListeners('unhandledRejection')
    process.on('unhandledRejection', listener)
    try {
      const schedule = new Schedule()
      schedule.go(outermost)
      const watched = schedule.go(outermost)
      const outcome = watched.done.catch((error: Error) => `caught ${error.message}`)
      await schedule.run()
      expect(await outcome).toBe('caught deep down')
      await new Promise(resolve => setImmediate(resolve))
    } finally {
      process.off('unhandledRejection', listener)
      for (const each of before) process.on('unhandledRejection', each)
    }
    expect(unhandled).toEqual(['deep down'])
  })

  test('that is frozen, or no error at all, arrives as it is', async () => {
    const schedule = new Schedule()
    const frozen = Object.freeze(new Error('cold'))
    await expect(schedule.run(() => Promise.reject(frozen))).rejects.toBe(frozen)
    await expect(
      schedule.run(() => {
        throw frozen
      }),
    ).rejects.toBe(frozen)
    await expect(
      schedule.run(() => {
        // oxlint-disable-next-line no-throw-literal
        throw null
      }),
    ).rejects.toBe(null)
  })

  test('thrown on by a second coroutine names both', async () => {
    const schedule = new Schedule()
    const first = schedule.go({ name: 'first' }, outermost)
    const second = schedule.run({ name: 'second' }, function* (): Body {
      yield* wait(first.done)
    })
    const error: Error = await second.then(
      () => new Error('it did not fail'),
      (reason: Error) => reason,
    )
    const shown = frames(error)
    expect(shown.indexOf('coroutine first #1')).toBeGreaterThan(0)
    expect(shown.indexOf('coroutine second #2')).toBeGreaterThan(shown.indexOf('coroutine first #1'))
  })
})
