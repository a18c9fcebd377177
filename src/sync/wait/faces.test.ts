import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compile } from '../../compiler/compile.ts'
import { evaluateModule } from '../../../test/compiler/differential/evaluate.ts'
import * as runtime from '../../compiler/runtime.ts'
import { blocks } from '../../coroutine/core/faces.ts'
import { twin } from '../../coroutine/core/coroutine.ts'
import * as heddle from '../../index.ts'
import { Kernel, Schedule, sleep, yieldNow } from '../../index.ts'
import * as subjects from '../../../testing/sync/fixtures/facesubjects.ts'
import type * as Subjects from '../../../testing/sync/fixtures/facesubjects.ts'
import type * as Tasks from '../../../testing/sync/fixtures/facetasks.ts'

/** A blocking call that cannot suspend says so. It never does nothing. */

const fixture = new URL('../../../testing/sync/fixtures/facetasks.ts', import.meta.url)
const plainFixture = new URL('../../../testing/sync/fixtures/facesubjects.ts', import.meta.url)

function blocksIn(value: any): boolean {
  return typeof value === 'function' && value[twin]?.[blocks] === true
}

/** The blocking calls of the package, found by their marks. */
function blockingCalls(): string[] {
  const found = new Set<string>()
  for (const [name, value] of Object.entries<any>(heddle)) {
    if (blocksIn(value)) found.add(name)
    else if (typeof value === 'function') {
      for (let at = value.prototype; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
        for (const key of Object.getOwnPropertyNames(at)) {
          if (blocksIn(Object.getOwnPropertyDescriptor(at, key)?.value)) found.add(`${name}.${key}`)
        }
      }
    } else if (typeof value === 'object' && value !== null) {
      for (const key of Object.keys(value)) if (blocksIn(value[key])) found.add(`${name}.${key}`)
    }
  }
  return [...found].toSorted()
}

test('the table has every blocking call', () => {
  expect(subjects.names.toSorted()).toEqual(blockingCalls())
})

/** Of another schedule than the one that runs: that is said first. */
const ofSchedule = (name: string): boolean => name.startsWith('Schedule.')

function expectRefused(name: string, { code, message }: Subjects.Refusal): void {
  const verb = name.startsWith('futex.') ? name : name.split('.').at(-1)!
  if (ofSchedule(name)) expect(code).toBe('ERR_HEDDLE_RUNNING_CO_NULL')
  else {
    expect(code, message).toBe('ERR_HEDDLE_CANNOT_SUSPEND')
    expect(message).toContain(`${verb}()`)
  }
}

type Context = (name: string) => Promise<Subjects.Refusal>

async function refusalOf(running: PromiseLike<unknown>): Promise<Subjects.Refusal> {
  try {
    return { code: 'none', message: `returned ${JSON.stringify(await running)}` }
  } catch (error) {
    return error as Subjects.Refusal
  }
}

function contexts(
  start: (module: 'tasks' | 'plain', fn: string, name: string) => PromiseLike<unknown>,
): Record<string, Context> {
  return {
    callback: async name => (await start('tasks', 'inCallback', name)) as Subjects.Refusal,
    uncompiled: async name => (await start('tasks', 'inPlainFunction', name)) as Subjects.Refusal,
    field: async name => (await start('tasks', 'inField', name)) as Subjects.Refusal,
    plainTask: name => refusalOf(start('plain', 'inPlainTask', name)),
    generator: name => refusalOf(start('plain', 'inGenerator', name)),
  }
}

function load(): typeof Tasks {
  const { code } = compile(readFileSync(fixture, 'utf8'), fileURLToPath(fixture))
  return evaluateModule(code, 'facetasks.ts', {
    'heddle/runtime': runtime,
    './facesubjects.ts': subjects as never,
    '../../../src/index.ts': heddle as never,
  }) as unknown as typeof Tasks
}

describe('in a coroutine of a schedule', () => {
  const tasks = load()
  const modules = { tasks, plain: subjects } as unknown as Record<string, Record<string, () => unknown>>
  const all = contexts((module, fn, name) => new Schedule().run(modules[module][fn] as never, name as never))

  describe.each(Object.entries(all))('%s', (_, context) => {
    test.each(subjects.names)('%s throws', async name => {
      expectRefused(name, await context(name))
    })
  })

  test('the message names the built-in, the field or the caller', async () => {
    expect((await all.callback('sleep')).message).toMatch(/is called by the built-in JSON\.parse/)
    expect((await all.field('Mutex.lock')).message).toMatch(/the value of a field/)
    expect((await all.uncompiled('sleep')).message).toMatch(/it is called by .*perform .*'use task'/)
    expect((await all.generator('sleep')).message).toContain('yield* sleep()')
  })

  test('a compiled function that a generator calls plainly is refused at the call', async () => {
    const failing = new Schedule().run(function* () {
      tasks.compiled('Mutex.lock')
      yield* sleep(1)
    })
    expectRefused('Mutex.lock', await refusalOf(failing))
  })

  test('a face that a generator runs later, or that a function returns, is no mistake', async () => {
    const schedule = new Schedule()
    const kept = schedule.run(function* () {
      const [first, second] = [sleep(1), sleep(2)]
      yield* yieldNow()
      yield* second
      yield* first
      return 'both'
    })
    expect(await kept).toBe('both')
    expect(await schedule.run(() => sleep(1))).toBe(undefined)
    expect(await schedule.run(() => heddle.wait(Promise.resolve(7)))).toBe(7)
    const channel = new heddle.Channel<number>({ capacity: 1 })
    const received = schedule.run(() => channel.receive())
    await schedule.run(() => channel.send(8))
    expect(await received).toBe(8)
    channel.trySend(9)
    expect(await schedule.run(() => channel.receive())).toBe(9)
  })

  test('an error of the coroutine itself is the one that is reported', async () => {
    const failing = new Schedule().run(function* () {
      sleep(1)
      yield* yieldNow()
      throw new Error('its own')
    })
    expect((await refusalOf(failing)).message).toBe('its own')
  })
})

test.each(subjects.names)('on a plain thread %s throws', name => {
  expect(() => subjects.perform(subjects.prepare(name))).toThrow(/task|coroutine/)
})

describe('in a task of the kernel', () => {
  let kernel: Kernel
  let all: Record<string, Context>
  let tasks: Awaited<ReturnType<typeof importTasks>>
  const importTasks = () => kernel.import<typeof Tasks>(fixture)

  beforeAll(async () => {
    kernel = await Kernel.boot({ cpus: 1 })
    tasks = await importTasks()
    const modules: any = {
      tasks,
      plain: await kernel.import<typeof Subjects>(plainFixture),
    }
    all = contexts((module, fn, name) => kernel.spawn(modules[module][fn], [name] as never) as never)
  })

  afterAll(() => kernel.close())

  test('a task joins its children by their method, with a plain call', async () => {
    expect(await kernel.spawn(tasks.joins, [2])).toBe('joins of 1 of 2')
  })

  test('the message names no function that only the compiler has named', async () => {
    const { message } = await refusalOf(kernel.spawn(tasks.inUnnamedCallback))
    expect(message).toMatch(
      /the function without a name \(.*facetasks\.ts:\d+:\d+\) is called by the built-in/,
    )
    expect(message).not.toContain('$h_')
  })

  test('every call throws in every place', async () => {
    for (const context of Object.values(all)) {
      await Promise.all(subjects.names.map(async name => expectRefused(name, await context(name))))
    }
  })
})
