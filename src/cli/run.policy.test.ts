import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'

const main = resolve(import.meta.dirname, 'main.ts')
const program = resolve(import.meta.dirname, '../../testing/cli/fixtures/run/program.ts')

interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

const heddle = (...args: string[]): Promise<Ended> => heddleWith({}, ...args)

function heddleWith(env: Readonly<Record<string, string>>, ...args: string[]): Promise<Ended> {
  const options = { cwd: import.meta.dirname, env: { ...process.env, ...env } }
  return new Promise(done => {
    execFile(process.execPath, [main, ...args], options, (error, out, err) => {
      done({ code: error === null ? 0 : Number(error.code), out, err })
    })
  })
}

const counters =
  /^heddle: policy (\w+): (\d+) acquisitions, (\d+) contended, (\d+) handed off, (\d+) acquired by spinning, (\d+) fallbacks, (\d+) hint misses$/m

test('an unchanged program runs under hand-off, and the counters are printed', async () => {
  const { code, out, err } = await heddle('run', '--policy', 'handoff', program, '--flag', 'x')
  expect(out).toBe('sum 1600, args --flag x\n')
  expect(code).toBe(7)
  const [, name, acquisitions, contended, handedOff, spun, fallbacks] = counters.exec(err) ?? []
  expect(name).toBe('handoff')
  // The mutex is the program's own, made with `new Mutex()`.
  expect(Number(acquisitions)).toBe(1600)
  expect(Number(contended)).toBe(Number(handedOff) + Number(spun) + Number(fallbacks))
})

test('the counters are printed also for a program that does not close its kernel', async () => {
  const { out, err } = await heddle('run', '--policy', 'handoff', program, '--no-close')
  expect(out).toBe('sum 1600, args --no-close\n')
  expect(err).toMatch(counters)
})

test('a policy module is loaded by its path', async () => {
  const { code, out, err } = await heddle(
    'run',
    '--policy',
    '../../testing/cli/fixtures/run/mine.ts',
    program,
  )
  expect(code).toBe(7)
  expect(out).toBe('sum 1600, args \n')
  expect(err).toMatch(/^heddle: policy mine: 0 acquisitions/m)
})

test('a failing policy is ejected and reported, and the program ends as without a policy', async () => {
  const { code, out, err } = await heddle('run', '--policy', '../../testing/cli/fixtures/run/bad.ts', program)
  expect(code).toBe(7)
  expect(out).toBe('sum 1600, args \n')
  expect(err).toMatch(/policy 'bad' was ejected \(threw\): policy: enqueue threw Error: at the third task/)
  expect(err).toMatch(/^cpu 0: /m)
})

test('an unknown policy, or a module that is no policy, is refused before the program runs', async () => {
  expect(await heddle('run', '--policy', 'nix', program)).toMatchObject({ code: 2, out: '' })
  const { code, out, err } = await heddle(
    'run',
    '--policy',
    '../../testing/cli/fixtures/run/work.ts',
    program,
  )
  expect(code).not.toBe(7)
  expect(out).toBe('')
  expect(err).toMatch(/cannot load .*work\.ts: a policy module's default export/)
})

test('a flag sets the yield budget of the locks to 0, and an invalid budget is refused', async () => {
  const { out, err } = await heddle('run', '--policy', 'handoff', '--yield-budget', '0', program)
  expect(out).toBe('sum 1600, args \n')
  const [, , , contended, handedOff, spun, fallbacks] = counters.exec(err) ?? []
  // A waiter blocks when its first spin does not get the lock.
  expect([Number(handedOff), Number(contended)]).toEqual([0, Number(spun) + Number(fallbacks)])
  expect(await heddle('run', '--yield-budget', '-1', program)).toMatchObject({ code: 2, out: '' })
})

test('the options of hand-off reach every thread of the kernel; a flag overrides the environment', async () => {
  const knobs = resolve(import.meta.dirname, '../../testing/cli/fixtures/run/knobs.ts')
  const said = async (env: Readonly<Record<string, string>>, ...flags: string[]): Promise<string> =>
    (await heddleWith(env, 'run', ...flags, knobs)).out
  const both = (values: string): string => `${values}; ${values}\n`
  expect(await said({})).toBe(both('3 yields, 40 µs'))
  expect(await said({}, '--yield-budget', '8', '--fallback-us', '50')).toBe(both('8 yields, 50 µs'))
  const env = { LH_YIELD_BUDGET: '5', LH_FALLBACK_US: '250' }
  expect(await said(env)).toBe(both('5 yields, 250 µs'))
  expect(await said(env, '--fallback-us', '0')).toBe(both('5 yields, 0 µs'))
})

test('a policy schedules only the tasks that --policy-names or --policy-modules select', async () => {
  const listed = resolve(import.meta.dirname, '../../testing/cli/fixtures/run/listed.ts')
  const under = (...flags: string[]): Promise<Ended> => heddle('run', '--policy', 'fifo', ...flags, listed)
  expect((await under('--policy-names', 'render *')).out).toBe('listed: render 1, render 2\n')
  expect((await under('--policy-modules', '../../testing/cli/fixtures/run/listedwork.ts')).out).toBe(
    'listed: render 1, render 2, other\n',
  )
  expect((await under('--policy-modules', '../../testing/cli/fixtures/run/work.ts')).out).toBe('listed: \n')
})

test('an allowlist without a policy, or of a module that is not there, is refused', async () => {
  expect(await heddle('run', '--policy-names', 'a', program)).toMatchObject({
    code: 2,
    err: expect.stringContaining('add --policy'),
  })
  expect(await heddle('run', '--policy', 'fifo', '--policy-modules', 'none.ts', program)).toMatchObject({
    code: 2,
    err: expect.stringContaining('no file none.ts'),
  })
})
