import { AsyncLocalStorage } from 'node:async_hooks'
import { EventEmitter, once } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setInterval as every, setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { check } from '../check.ts'
import { failureOf, wrong } from '../../../testing/checker/programs/attempts.ts'
import type { AsyncCheckOptions } from './options.ts'
import type { AsyncProgram, AsyncSetup } from './program.ts'

/** The outcomes of all executions. */
async function outcomes(
  setup: (log: (text: string) => void) => AsyncSetup,
  options: AsyncCheckOptions = {},
): Promise<string[]> {
  const all = new Set<string>()
  await check.async('outcomes', options, outside => {
    const log: string[] = []
    const program = setup(text => void log.push(text))(outside)
    return { ...program, final: () => void all.add(log.join(' ')) }
  })
  return [...all].sort()
}

describe('a check of asynchronous code', () => {
  test('counts every order once', async () => {
    const steps: AsyncSetup = ({ io }) => {
      const body = async (): Promise<void> => {
        for (let i = 0; i < 3; i++) await io(`step ${i}`)
      }
      return { tasks: [body, body] }
    }
    // Two tasks of a start and three operations each: 8! / (4! 4!).
    expect(await check.async('two', steps)).toMatchObject({
      executions: 70,
      outcome: 'passed',
      complete: true,
    })
  })

  test('finds a lost update across an await, and shows the order of the operations', async () => {
    const { message, result } = await failureOf(({ io }) => {
      const store = new Map([['visits', 0]])
      const visit = async (): Promise<void> => {
        const visits = await io('read', () => store.get('visits') ?? 0)
        await io('write', () => store.set('visits', visits + 1))
      }
      return {
        tasks: { ann: visit, bob: visit },
        final: () => expect(store.get('visits')).toBe(2),
      }
    })
    expect(result.failure?.kind).toBe('assertion')
    expect(message).toContain('✗ broken: the final assertion failed: expected 1 to be 2')
    expect(message).toMatch(/0: ann +│ 1: bob +│ where/)
    expect(message).toMatch(/calls read +│ +│ check\.test\.ts:\d+/)
    expect(message).toMatch(/│ read → 0 +│ check\.test\.ts:\d+/)
    expect(message).toContain("check(\"broken\", { explorer: 'replay', schedule: '")
  })

  test('replays the schedule of a report, and only that', async () => {
    const setup: AsyncSetup = ({ io }) => {
      let at = ''
      const go = (name: string) => async (): Promise<void> => {
        await io(name)
        at += name
      }
      return { tasks: { a: go('a'), b: go('b'), c: go('c') }, final: () => expect(at).not.toBe('cba') }
    }
    const { result } = await failureOf(setup)
    const schedule = result.failure?.schedule.threads.join('.') ?? ''
    const again = await failureOf(setup, { explorer: 'replay', schedule })
    expect(again.result).toMatchObject({ executions: 1, failure: { title: result.failure?.title } })
    expect((await wrong(setup, { explorer: 'replay', schedule: '9' })).code).toBe('ERR_CHECK_SCHEDULE')
  })

  test('shows the failing order with the fewest events that overtake others', async () => {
    const { result } = await failureOf(({ io }) => {
      let last = ''
      const go = (name: string) => async (): Promise<void> => {
        await io('one')
        await io('two')
        last = name
      }
      return { tasks: { a: go('a'), b: go('b'), c: go('c') }, final: () => expect(last).toBe('c') }
    })
    expect(result.failure?.schedule.threads.filter(choice => choice > 0)).toHaveLength(1)
  })

  test('runs microtasks and ticks as Node does', async () => {
    const seen = await outcomes(log => () => ({
      tasks: {
        async one() {
          process.nextTick(() => log('tick'))
          queueMicrotask(() => log('microtask'))
          await Promise.resolve()
          log('awaited')
        },
      },
    }))
    const real: string[] = []
    await new Promise<void>(done => {
      setImmediate(() => {
        process.nextTick(() => real.push('tick'))
        queueMicrotask(() => real.push('microtask'))
        void Promise.resolve().then(() => real.push('awaited'))
        setImmediate(done)
      })
    })
    expect(seen).toEqual([real.join(' ')])
  })

  test('has timers in the order of their deadlines, and operations before or after them', async () => {
    const seen = await outcomes(log => ({ io }) => ({
      tasks: {
        one() {
          setTimeout(() => log('20'), 20)
          setTimeout(() => log('10'), 10)
          setTimeout(() => log('never'), 5).close()
          void io('io').then(() => log('io'))
        },
      },
    }))
    expect(seen).toEqual(['10 20 io', '10 io 20', 'io 10 20'])
  })

  test('lets a timer that is set after an operation be due after one that was set earlier', async () => {
    const seen = await outcomes(log => ({ io }) => ({
      tasks: {
        async one() {
          setTimeout(() => log('100'), 100)
          await io('io')
          await sleep(50)
          log('50')
        },
      },
    }))
    expect(seen).toEqual(['100 50', '50 100'])
  })

  test('has the timers of node:timers/promises, of promisify, of signals, and immediates', async () => {
    const seen = await outcomes(log => () => ({
      tasks: {
        async one() {
          await Promise.all([
            sleep(3, 'sleep').then(log),
            promisify(setTimeout)(2).then(() => log('promisify')),
            new Promise<void>(done =>
              AbortSignal.timeout(4).addEventListener('abort', () => done(log('signal'))),
            ),
            new Promise<void>(done => void setImmediate(done)).then(() => log('immediate')),
            sleep(100, undefined, { signal: AbortSignal.timeout(1) }).catch((error: Error) =>
              log(error.name),
            ),
          ])
          for await (const tick of every(1, 'tick')) {
            log(tick)
            break
          }
        },
      },
    }))
    expect(seen).toEqual([
      'AbortError immediate promisify sleep signal tick',
      'immediate AbortError promisify sleep signal tick',
    ])
  })

  test('has ports, whose messages come in their order', async () => {
    const seen = await outcomes(log => () => {
      const one = new MessageChannel()
      const two = new MessageChannel()
      one.port2.onmessage = ({ data }) => log(String(data))
      two.port2.onmessage = ({ data }) => log(String(data))
      return {
        tasks: {
          send() {
            one.port1.postMessage(1)
            one.port1.postMessage(2)
            two.port1.postMessage('a')
          },
        },
      }
    })
    expect(seen).toEqual(['1 2 a', '1 a 2', 'a 1 2'])
  })

  test('runs emitters, streams and the context of async calls as they are', async () => {
    const storage = new AsyncLocalStorage<string>()
    const seen = await outcomes(log => ({ io }) => ({
      tasks: {
        async one() {
          const emitter = new EventEmitter()
          storage.run('request 1', () => setTimeout(() => emitter.emit('done', storage.getStore()), 5))
          log(String(await once(emitter, 'done')))
          let sum = 0
          await pipeline(Readable.from([1, 2, 3]), async (numbers: AsyncIterable<number>) => {
            for await (const number of numbers) sum += await io('add', number)
          })
          log(String(sum))
        },
      },
    }))
    expect(seen).toEqual(['request 1 6'])
  })

  test('tries every value of choose, of takes and of random', async () => {
    const seen = await outcomes(
      log =>
        ({ io, choose }) => ({
          tasks: {
            async one() {
              const chosen = choose('a', 'b')
              const from = Date.now()
              await io('io', 1, { takes: [0, 7] })
              log(`${chosen} ${Date.now() - from} ${Math.random()}`)
            },
          },
        }),
      { random: [0, 0.5], starts: 0 },
    )
    expect(seen).toEqual(['a 0 0', 'a 0 0.5', 'a 7 0', 'a 7 0.5', 'b 0 0', 'b 0 0.5', 'b 7 0', 'b 7 0.5'])
  })

  test('runs events that outlive the tasks, but not an interval without an end', async () => {
    const seen = await outcomes(log => ({ io }) => ({
      tasks: {
        one() {
          setInterval(() => undefined, 1000)
          setTimeout(() => log('unref'), 10).unref()
          AbortSignal.timeout(5).addEventListener('abort', () => log('signal'))
          void io('late', undefined, { takes: 7 }).then(() => log('late'))
        },
      },
    }))
    expect(seen).toEqual(['signal late'])
  })

  test('rejects an operation whose signal is aborted', async () => {
    const seen = await outcomes(log => ({ io }) => {
      const controller = new AbortController()
      return {
        tasks: {
          ask: () =>
            io('ask', 'answer', { signal: controller.signal }).then(log, (error: unknown) =>
              log(String(error)),
            ),
          abort: () => controller.abort('aborted'),
        },
      }
    })
    expect(seen).toEqual(['aborted', 'answer'])
  })

  test('checks the invariant after every event', async () => {
    const { message } = await failureOf(({ io }) => {
      let open = 0
      const use = async (): Promise<void> => {
        open++
        await io('use')
        open--
      }
      return {
        tasks: { ann: use, bob: use },
        always: () => {
          if (open > 1) throw new Error('two have it')
        },
      }
    })
    expect(message).toContain('an invariant does not hold after "starts" of bob: two have it')
  })

  test('lets the final assertion await', async () => {
    const setup =
      (wanted: number): AsyncSetup =>
      ({ io }) => ({
        tasks: [() => undefined],
        final: async () => expect(await io('read', 1)).toBe(wanted),
      })
    await check.async('right', setup(1))
    expect((await failureOf(setup(2))).message).toContain('the final assertion failed: expected 1 to be 2')
  })
})

test.each<[string, () => Partial<AsyncProgram>, RegExp]>([
  ['always that returns false', () => ({ always: () => false as never }), /`always` returned false/],
  ['always that awaits', () => ({ always: (async () => undefined) as never }), /`always` returned a promise/],
  ['final that returns false', () => ({ final: () => false as never }), /final assertion returned false/],
  [
    'an async final with an error',
    () => ({ final: async () => new Error('x') as never }),
    /returned an error/,
  ],
  ['final that returns a function', () => ({ final: () => () => undefined as never }), /returned a function/],
])('%s judges nothing, and is refused', async (_, parts, message) => {
  const refused = check.async('refused', () => ({ tasks: [() => undefined], ...parts() }))
  await expect(refused).rejects.toThrow(message)
})

describe('a failure of asynchronous code', () => {
  const earlyTick = process.nextTick

  test('a task that throws', async () => {
    const { message } = await failureOf(({ io }) => ({
      tasks: {
        async ann() {
          await io('ask')
          throw new Error('no')
        },
      },
    }))
    expect(message).toContain('✗ broken: uncaught exception in ann: no')
  })

  test('a rejection that is not handled when microtasks are done, even if it is handled later', async () => {
    const { message } = await failureOf(({ io }) => ({
      tasks: {
        async ann() {
          const late = io('ask', () => {
            throw new Error('refused')
          })
          await io('other')
          await late.catch(() => undefined)
        },
      },
    }))
    expect(message).toContain('✗ broken: unhandled rejection in ann: refused')
  })

  test.for([
    ['a timer', (): void => void setTimeout(() => boom(), 1)],
    ['a microtask', () => queueMicrotask(boom)],
    ['a tick', () => process.nextTick(boom)],
    ['a tick of a function that was taken before', () => earlyTick(boom)],
    [
      'a listener',
      () => {
        const target = new EventTarget()
        target.addEventListener('x', boom)
        target.dispatchEvent(new Event('x'))
      },
    ],
  ] as const)('an error that is thrown in %s', async ([, throws]) => {
    const { message } = await failureOf(() => ({ tasks: { ann: throws } }))
    expect(message).toContain('✗ broken: uncaught exception in ann: boom')
  })

  test('a deadlock, with the lines of the promises that never settle', async () => {
    const { message, result } = await failureOf(() => {
      const never = new Promise(() => undefined)
      return {
        tasks: {
          async ann() {
            await sleep(5)
            await never
          },
          async bob() {},
        },
      }
    })
    expect(result.failure?.kind).toBe('deadlock')
    expect(message).toContain('deadlock: ann waits for a promise that never settles')
    expect(message).toMatch(/ann has promises that never settle, made at check\.test\.ts:\d+/)
  })

  test('events that never end', async () => {
    const { result } = await failureOf(
      () => {
        setInterval(() => undefined, 10)
        return { tasks: { ann: () => new Promise(() => undefined) } }
      },
      { steps: 50 },
    )
    expect(result.failure).toMatchObject({
      kind: 'livelock',
      title: 'livelock: the execution has not ended after 100 events',
    })
  })

  test('a loop of microtasks that never ends, after which the check and the process continue', async () => {
    const setup: AsyncSetup = ({ io }) => {
      const state = { done: false }
      return {
        tasks: {
          async ann() {
            await io('ask')
            state.done = true
          },
          async bob() {
            while (!state.done) await Promise.resolve()
          },
        },
      }
    }
    const { message } = await failureOf(setup, { patience: 200 })
    expect(message).toContain('livelock: the event loop stands still')
    expect(message).toMatch(/0: ann +│ 1: bob/)
    expect(await check.async('after it', ({ io }) => ({ tasks: [() => io('x')] }))).toMatchObject({
      executions: 1,
    })
    await new Promise(done => void setTimeout(done, 1))
  })
})

function boom(): never {
  throw new Error('boom')
}
