import { spawn } from 'node:child_process'
import { lookup } from 'node:dns/promises'
import { writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { gzip } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { failureOf, wrong } from '../../../testing/checker/programs/attempts.ts'
import { check, CheckIncomplete, type CheckResult } from '../check.ts'
import type { AsyncCheckOptions } from './options.ts'
import type { AsyncSetup } from './program.ts'

describe('what a check does not control', () => {
  const early = setTimeout

  test.for([
    ['a real timer', (): void => void early(() => undefined, 1), 'a real timer was started'],
    ['a file', () => readFile('/etc/hosts'), 'a real file was used'],
    ['a connection', (): void => void connect(1).on('error', () => undefined), 'a real connection was made'],
    ['a server', (): void => void createServer().listen(0).unref(), 'a real server was opened'],
    ['a process', (): void => void spawn('true'), 'a real process was started'],
    ['a worker', () => new Worker('', { eval: true }), 'a real worker was started'],
    ['a name', () => lookup('localhost'), 'a real host name was looked up'],
    ['a digest', () => crypto.subtle.digest('SHA-256', new Uint8Array(1)), 'something real was begun'],
    ['an archive', () => promisify(gzip)('x'), 'something real was begun'],
    ['a write', () => writeFileSync('/dev/null', ''), 'fs.writeFileSync() was called'],
    ['fetch', () => fetch('http://127.0.0.1:1').catch(() => undefined), 'fetch() was called'],
    ['chance', () => Math.random(), 'Math.random() was called'],
    ['random bytes', () => crypto.getRandomValues(new Uint8Array(1)), 'crypto.getRandomValues() was called'],
    [
      'shared memory',
      () => Atomics.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0),
      'Atomics.waitAsync() was called',
    ],
    [
      'a compiler',
      () => WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])),
      'WebAssembly.compile() was called',
    ],
    ['a channel of the process', () => new BroadcastChannel('x'), 'a real MessagePort was made'],
    [
      'a finalizer',
      () => new FinalizationRegistry(() => undefined).register({}, 1),
      'a FinalizationRegistry was used',
    ],
  ] as const)('%s is refused with its place, also when the error is caught', async ([, use, text]) => {
    const setup: AsyncSetup = () => ({
      tasks: {
        async ann() {
          try {
            await use()
          } catch {}
        },
      },
    })
    const { code, message } = await wrong(setup)
    expect(code).toBe('ERR_CHECK_UNCONTROLLED')
    expect(message).toContain(text)
    expect(message).toMatch(/in ann, at control\.test\.ts:\d+:\d+/)
  })

  test('the console is not part of the program', async () => {
    const setup: AsyncSetup = ({ io }) => ({
      tasks: {
        async ann() {
          console.log('before')
          await io('ask')
          process.stderr.write('')
          console.table([{ after: structuredClone(1) }])
        },
      },
    })
    expect(await check.async('it prints', setup)).toMatchObject({ executions: 1, complete: true })
  })

  test('a promise of the real world does not let a check pass', async () => {
    const real = new Promise(done => void early(done, 60_000).unref())
    const { message } = await failureOf(() => ({ tasks: { ann: () => real } }))
    expect(message).toContain('never settles inside a check')
  })

  test('state that survives from one execution to the next is found', async () => {
    const cache = new Set<string>()
    const { code, message } = await wrong(({ io }) => ({
      tasks: {
        async ann() {
          if (!cache.has('a')) await io('load')
          cache.add('a')
        },
      },
    }))
    expect(code).toBe('ERR_CHECK_NONDETERMINISTIC')
    expect(message).toContain('state of a module')
  })

  test('the real world is restored after a check, whatever its result', async () => {
    const names = ['setTimeout', 'Date', 'MessageChannel', 'queueMicrotask'] as const
    const before = names.map(name => globalThis[name])
    const [{ emit, nextTick }, { now }, { random }] = [process, Date, Math]
    await failureOf(() => ({ tasks: [boom] }))
    await wrong(() => ({ tasks: [() => Math.random()] }))
    expect(names.map(name => globalThis[name])).toEqual(before)
    expect([process.emit, process.nextTick, Date.now, Math.random]).toEqual([emit, nextTick, now, random])
    expect(Date.now()).toBeLessThan(Date.UTC(2100))
    await sleep(1)
  })
})

describe('what is not explored', () => {
  const incomplete = async (setup: AsyncSetup, options: AsyncCheckOptions): Promise<CheckResult> => {
    const error: unknown = await check.async('part', options, setup).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(CheckIncomplete)
    expect(await check.async('part', { ...options, allowIncomplete: true }, setup)).toMatchObject({
      outcome: 'incomplete',
    })
    return (error as CheckIncomplete).result
  }
  const many: AsyncSetup = ({ io }) => {
    const body = async (): Promise<void> => {
      for (let i = 0; i < 3; i++) await io('step')
    }
    return { tasks: [body, body, body] }
  }

  test('a bound of executions', async () => {
    expect((await incomplete(many, { executions: 5 })).why).toBe('it was to stop after 5 executions')
  })

  test('a bound of overtakings', async () => {
    const { executions, why } = await incomplete(many, { explorer: 'preemption-bounded', preemptions: 1 })
    expect(executions).toBeLessThan(34_650)
    expect(why).toContain('at most 1 events that came before an older one')
  })

  test('random orders', async () => {
    expect(await incomplete(many, { explorer: 'random', runs: 20 })).toMatchObject({
      executions: 20,
      why: '20 random orders were tried',
    })
  })

  test('a clock that is read when the time is not determined', async () => {
    const clock: AsyncSetup = ({ io }) => ({
      tasks: {
        async ann() {
          await io('ask')
          return Date.now()
        },
      },
    })
    expect((await incomplete(clock, {})).why).toMatch(
      /the clock was read at control\.test\.ts:\d+:\d+ after events that may come at any time/,
    )
  })

  test('a poll without an end', async () => {
    const poll: AsyncSetup = ({ io }) => {
      const state = { ready: false }
      return {
        tasks: {
          async ann() {
            while (!state.ready) await sleep(10)
          },
          async bob() {
            await io('prepare')
            state.ready = true
          },
        },
      }
    }
    const { why, executions } = await incomplete(poll, { turns: 3 })
    expect(why).toContain('an event that 3 others of one name and task had overtaken was forced')
    expect(executions).toBeGreaterThan(3)
  })
})

describe('a wrong check of asynchronous code', () => {
  test.for([
    ['no tasks', { tasks: {} }, /no tasks/],
    ['a task that is no function', { tasks: { a: 1 } }, /tasks\.a is not a function/],
    ['an unknown part', { tasks: [() => 1], threads: [] }, /`threads`, which means nothing here/],
    ['a promise', Promise.resolve({}), /must be synchronous/],
  ] as const)('says so: %s', async ([, program, text]) => {
    const { code, message } = await wrong(() => program as never)
    expect(code).toBe('ERR_CHECK_SETUP')
    expect(message).toMatch(text)
  })

  test.for([
    [{ crashes: 1 }, /no option `crashes`/],
    [{ random: [1] }, /`random` is \[1\]/],
    [{ starts: -1 }, /`starts` is -1/],
    [{ patience: 0 }, /`patience` is 0/],
    [{ steps: 0 }, /`steps` is 0/],
  ] as const)('says what is wrong with the options %o', async ([options, text]) => {
    const { code, message } = await wrong(() => ({ tasks: [() => 1] }), options as AsyncCheckOptions)
    expect(code).toBe('ERR_CHECK_OPTION')
    expect(message).toMatch(text)
  })

  test('says what is wrong with an operation', async () => {
    for (const [options, text] of [
      [{ takes: [-1] }, '`takes` is [-1]'],
      [{ take: 5 }, 'there is no option "take"; it takes takes, line, signal'],
      [{ signal: new AbortController() }, '`signal` is '],
      [5, '5 is not an object with options'],
      [null, 'null is not an object with options'],
    ] as const) {
      const { code, message } = await wrong(({ io }) => ({ tasks: [() => io('x', 1, options as never)] }))
      expect(code, text).toBe('ERR_CHECK_SETUP')
      expect(message).toContain(text)
    }
    await check.async('no signal', ({ io }) => ({ tasks: [() => io('x', 1, { signal: null as never })] }))
    expect((await wrong(({ io }) => ({ tasks: [() => io(1 as never)] }))).message).toContain(
      'names the operation',
    )
  })
})

function boom(): never {
  throw new Error('boom')
}
