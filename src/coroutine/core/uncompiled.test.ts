import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Schedule } from '../schedule/schedule.ts'
import { saysTask } from './uncompiled.ts'

const loader = Symbol.for('heddle.loader')
const said: string[] = []

beforeEach(() => {
  said.length = 0
  vi.spyOn(process, 'emitWarning').mockImplementation((message: unknown) => void said.push(String(message)))
})
afterEach(() => {
  vi.restoreAllMocks()
  Reflect.deleteProperty(globalThis, loader)
})

// Made here, so that no test runner and no loader has compiled them.
const make = (text: string): ((...args: any[]) => unknown) => new Function(`return (${text})`)() as never

test('the directive is found where it is one, whatever stands before it, and nowhere else', () => {
  for (const text of [
    "function f() { 'use task'; }",
    'function f() {"use task"}',
    "function f(a, { b } = {}) {\n  // a comment\n  /* 'and' another */ 'use strict'\n  'use task frames'\n}".replace(
      'a, { b } = {}',
      '',
    ),
    "() => { 'use task generator' }",
    "async function f() { 'use task' }",
  ]) {
    expect(saysTask(make(text)), text).toBe(true)
  }
  for (const text of [
    'function f() { return "use task" }',
    "function f() { g(); 'use task' }",
    "() => 'use task'",
    "function f() { 'use tasks' }",
    'function f() {}',
  ]) {
    expect(saysTask(make(text)), text).toBe(false)
  }
})

test('a schedule says once of a marked function that it was not compiled, and what to do', async () => {
  const fn = make("function marked() { 'use task'; return 1 }")
  const schedule = new Schedule()
  expect(await schedule.run(fn)).toBe(1)
  expect(await schedule.run(fn)).toBe(1)
  expect(said).toHaveLength(1)
  expect(said[0]).toMatch(
    /^marked says 'use task' and was not compiled.*no loader.*npx heddle run .*heddle\/register/,
  )
  await schedule.run(make('function plain() { return 1 }'))
  expect(said).toHaveLength(1)
})

test('with a loader the reason is another; and what the loader has told of is not told again', async () => {
  const warned: string[] = []
  const face = {
    hasTold: (name: string) => name === 'known',
    warnOnce: (_: string, message: string) => void warned.push(message),
  }
  Object.defineProperty(globalThis, loader, { value: face, configurable: true })
  const schedule = new Schedule()
  await schedule.run(make("function known() { 'use task' }"))
  await schedule.run(make("function made() { 'use task' }"))
  expect(said).toEqual([])
  expect(warned).toHaveLength(1)
  expect(warned[0]).toMatch(/^made says .*new Function/)
})
