import { describe, expect, expectTypeOf, test } from 'vitest'
import { progress, sleep, suspend, wait, yieldNow } from '../core/blocking.ts'
import { needResched, PREEMPTED } from '../core/coroutine.ts'
import { Schedule } from './schedule.ts'
import { VirtualTime } from './virtualtime.ts'

type Body = Generator<number, any, any>

function virtual(): Schedule {
  const time = new VirtualTime()
  return new Schedule({ platform: time, ticks: time.slices(0.01) })
}

function* forever(log: string[] = []): Body {
  try {
    for (;;) if (needResched()) yield PREEMPTED
  } finally {
    log.push('let go')
  }
}

describe('run(fn, ...args)', () => {
  test('gives what the function returns: generators, plain and async functions alike', async () => {
    const schedule = new Schedule()
    const sum: number = await schedule.run(
      function* (a: number, b: number): Generator<number, number> {
        yield* sleep(1)
        return a + b
      },
      1,
      2,
    )
    expect(sum).toBe(3)
    expect(await schedule.run((text: string) => text.length, 'four')).toBe(4)
    expect(await schedule.run(async () => 'later')).toBe('later')
    expect(await schedule.run({ name: 'named' }, () => 'named')).toBe('named')
  })

  test('rejects with what the function throws, be it an error or not', async () => {
    const schedule = new Schedule()
    const error = new TypeError('mine')
    await expect(
      schedule.run(() => {
        throw error
      }),
    ).rejects.toBe(error)
    await expect(
      schedule.run(function* (): Body {
        yield* yieldNow()
        // oxlint-disable-next-line no-throw-literal
        throw 'text'
      }),
    ).rejects.toBe('text')
  })

  test('many at once, each with its own result', async () => {
    const schedule = new Schedule()
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        schedule.run(function* (): Body {
          yield* sleep(i % 3)
          return i
        }),
      ),
    )
    expect(results).toEqual(Array.from({ length: 50 }, (_, i) => i))
  })
})

test('a function that could not be preempted, and that delayed the others, is named once', () => {
  const time = new VirtualTime()
  const warnings: string[] = []
  const platform = {
    ...time,
    block: () => {},
    setTimer: () => 0,
    clearTimer: () => {},
    now: time.now,
    warn: (text: string) => void warnings.push(text),
  }
  const schedule = new Schedule({ platform, ticks: time.slices(0.01) })
  const crunch = (): void => time.advance(1000)
  schedule.go(() => time.advance(20))
  schedule.go(crunch)
  schedule.go(crunch)
  schedule.go(function* (): Body {
    time.advance(1000)
    yield PREEMPTED
  })
  schedule.runSync()
  expect(warnings).toHaveLength(1)
  expect(warnings[0]).toMatch(/^crunch ran for 1000 ms in one go: .*'use task'.*heddle\/register/)
})

describe('a signal', () => {
  test('cancels a hog at its safepoint, and finally runs', async () => {
    const schedule = new Schedule({ slice: 1 })
    const controller = new AbortController()
    const log: string[] = []
    setTimeout(() => controller.abort(new Error('stop')), 5)
    await expect(schedule.run({ signal: controller.signal }, forever, log)).rejects.toThrow('stop')
    expect(log).toEqual(['let go'])
    expect(schedule.coroutines.size).toBe(0)
  })

  test('cancels a wait immediately, and ignores its event from then on', async () => {
    const schedule = new Schedule()
    const controller = new AbortController()
    let settle!: (value: string) => void
    const promise = new Promise<string>(resolve => {
      settle = resolve
    })
    const log: unknown[] = []
    const run = schedule.run({ signal: controller.signal }, function* (): Body {
      try {
        log.push(yield* wait(promise))
      } catch (error) {
        log.push((error as Error).name)
        settle('too late')
        return yield* suspend(waker => setTimeout(() => waker.wake('next wait'), 2))
      }
    })
    setTimeout(() => controller.abort(), 2)
    expect(await run).toBe('next wait')
    expect(log).toEqual(['AbortError'])
  })

  test('that was aborted before never starts the function; one aborted after does nothing', async () => {
    const schedule = new Schedule()
    let ran = 0
    const signal = AbortSignal.abort(new Error('before'))
    await expect(schedule.run({ signal }, () => ran++)).rejects.toThrow('before')
    expect(ran).toBe(0)
    const controller = new AbortController()
    expect(await schedule.run({ signal: controller.signal }, () => 'done')).toBe('done')
    controller.abort()
    expect(schedule.coroutines.size).toBe(0)
  })

  test('aborted by the coroutine itself arrives where it next stops', async () => {
    const schedule = virtual()
    const controller = new AbortController()
    const log: string[] = []
    const run = schedule.run({ signal: controller.signal }, function* (): Body {
      controller.abort(new Error('self'))
      log.push('still runs')
      yield* sleep(1000)
      log.push('never')
    })
    await expect(run).rejects.toThrow('self')
    expect(log).toEqual(['still runs'])
  })
})

describe('a time limit', () => {
  test('ends a hog and a sleeper with a TimeoutError, and releases what they hold', async () => {
    const schedule = virtual()
    const log: string[] = []
    const hog = schedule.run({ timeout: 100, name: 'hog' }, forever, log)
    const sleeper = schedule.run({ timeout: 50 }, function* (): Body {
      yield* sleep(1e9)
    })
    await expect(hog).rejects.toMatchObject({
      name: 'TimeoutError',
      message: 'run of hog: 100 ms have passed',
    })
    await expect(sleeper).rejects.toMatchObject({ name: 'TimeoutError' })
    expect(log).toEqual(['let go'])
  })

  test('that is not reached costs nothing', async () => {
    const schedule = virtual()
    const run = schedule.run({ timeout: 100 }, function* (): Body {
      yield* sleep(99)
      return 'in time'
    })
    expect(await run).toBe('in time')
    expect(schedule.statistics.sleeping).toBe(0)
    await expect(schedule.run({ timeout: -1 }, () => 0)).rejects.toThrow('timeout: -1')
  })

  test('of a single wait', async () => {
    const schedule = virtual()
    const run = schedule.run(function* (): Body {
      const names: string[] = []
      try {
        yield* wait(new Promise(() => {}), { timeout: 5 })
      } catch (error) {
        names.push((error as Error).name)
      }
      try {
        yield* suspend(undefined, { timeout: 5 })
      } catch (error) {
        names.push((error as Error).name)
      }
      return names
    })
    expect(await run).toEqual(['TimeoutError', 'TimeoutError'])
  })
})

describe('progress', () => {
  test('is heard at most once a slice, in order, the last value always', async () => {
    const schedule = virtual()
    const heard: number[] = []
    const onProgress = (value: number): void => void heard.push(value)
    await schedule.run({ onProgress }, function* (): Body {
      for (let i = 1; i <= 10_000; i++) {
        progress(i)
        if (needResched()) yield PREEMPTED
      }
    })
    // 10,000 safepoints of 0.01 ms are a hundred slices.
    expect(heard.length).toBeGreaterThanOrEqual(95)
    expect(heard.length).toBeLessThanOrEqual(102)
    expect(heard).toEqual(heard.toSorted((a, b) => a - b))
    expect(heard.at(-1)).toBe(10_000)
  })

  test('told to a listener that throws stops nobody', async () => {
    const unhandled: string[] = []
    const listener = (error: unknown): void => void unhandled.push((error as Error).message)
    const before = process.listeners('unhandledRejection')
    process.removeAllListeners('unhandledRejection')
    process.on('unhandledRejection', listener)
    try {
      const onProgress = (): void => {
        throw new Error('the listener')
      }
      expect(await virtual().run({ onProgress }, () => (progress(1), 'end'))).toBe('end')
      await new Promise(resolve => setImmediate(resolve))
    } finally {
      process.off('unhandledRejection', listener)
      for (const each of before) process.on('unhandledRejection', each)
    }
    expect(unhandled).toEqual(['the listener'])
  })

  test('goes to the listener of its own coroutine, and outside of one nowhere', async () => {
    const schedule = virtual()
    const heard: string[] = []
    progress('nobody listens')
    const run = (name: string): Promise<void> =>
      schedule.run({ onProgress: value => heard.push(`${name} ${value}`) }, function* (): Body {
        for (let i = 0; i < 2; i++) {
          progress(i)
          yield* sleep(1)
        }
      })
    await Promise.all([run('a'), run('b')])
    expect(heard).toEqual(['a 0', 'b 0', 'a 1', 'b 1'])
  })
})

test('a call without a function is refused, also one whose function is missing in its module', async () => {
  const schedule = new Schedule()
  const run = (...call: unknown[]): Promise<unknown> => Reflect.apply(schedule.run, schedule, call)
  await expect(run(undefined)).rejects.toThrow(/^run\(undefined\): not a function; give a function/)
  await expect(run(undefined, 5)).rejects.toThrow(/^run\(undefined\): not a function/)
  await expect(run('work', 5)).rejects.toThrow(/^run\('work'\): not a function/)
  await expect(run({ timeout: 5 }, undefined, 5)).rejects.toThrow(
    /^run\(options, undefined\): not a function/,
  )
  await expect(run()).resolves.toBe(undefined)
})

describe('wait', () => {
  test('has the type of the value as a plain call, and gives it through yield*', () => {
    const plain = (): [number, string] => [wait(Promise.resolve(1)), wait(Promise.resolve('text'))]
    const behind = function* (): Generator<number, [number, undefined]> {
      return [yield* wait(Promise.resolve(1)), yield* wait(Promise.resolve(undefined))]
    }
    expectTypeOf(plain).returns.toEqualTypeOf<[number, string]>()
    expectTypeOf(behind).toBeFunction()
    expect(plain).toThrow('needs a coroutine')
  })

  test('gives a promise’s value, throws its error, and passes what is no promise', async () => {
    const schedule = new Schedule()
    const run = schedule.run(function* (): Body {
      const values: unknown[] = [yield* wait(Promise.resolve(1)), yield* wait(2)]
      try {
        yield* wait(Promise.reject(new Error('three')))
      } catch (error) {
        values.push((error as Error).message)
      }
      // oxlint-disable-next-line unicorn/no-thenable
      values.push(yield* wait({ then: (resolve: (value: number) => void) => resolve(4) } as never))
      return values
    })
    expect(await run).toEqual([1, 2, 'three', 4])
  })

  test('lets other coroutines run in the meantime', async () => {
    const schedule = new Schedule()
    const order: string[] = []
    schedule.go(function* (): Body {
      order.push('asks')
      yield* wait(new Promise(resolve => setTimeout(resolve, 2)))
      order.push('has it')
    })
    schedule.go(() => void order.push('other'))
    await schedule.run()
    expect(order).toEqual(['asks', 'other', 'has it'])
  })
})
