import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from 'vitest'
import { failureOf, sharedWords as shared, until } from '../../../testing/kernel/fixtures/ending.ts'
import { Condition, Semaphore, sleep, TaskLocal } from '../../index.ts'
import { Kernel } from './kernel.ts'
import type { ModuleView } from '../spawn/modules.ts'
import type { KernelOptions } from './options.ts'
import type { Task } from '../join/task.ts'

type Work = typeof import('../../../testing/kernel/fixtures/work.ts')

let kernel: Kernel
let work: ModuleView<Work>
const workUrl = new URL('../../../testing/kernel/fixtures/work.ts', import.meta.url)

beforeAll(async () => {
  kernel = await Kernel.boot({ cpus: 2, slice: 5, debug: true })
  work = await kernel.import<Work>(workUrl)
})

afterAll(async () => {
  await kernel.close({ abort: true })
})

describe('every kind of function is a task:', () => {
  test('a plain function', async () => {
    expect(await kernel.spawn(work.add, [1, 2])).toBe(3)
  })

  test('a generator function', async () => {
    expect(await kernel.spawn(work.primes, [10_000])).toBe(1229)
  })

  test('an async function, whose event loop turns while it waits', async () => {
    expect(await kernel.spawn(work.later, [5])).toBe('after 5')
  })

  test("a 'use task' function, compiled on the CPU though this thread has no loader", async () => {
    expect(await kernel.spawn(work.crunch, [1e6])).toBe(999_989)
  })

  test("a 'use task' function that blocks with a plain call", async () => {
    expect(await kernel.spawn(work.napsPlainly, [2])).toBe('slept')
  })

  test('a generator that waits for a promise', async () => {
    expect(await kernel.spawn(work.waits, ['value'])).toBe('value')
  })

  test('their arguments and results have the types of the function', () => {
    expectTypeOf(kernel.spawn(work.add, [1, 2])).toEqualTypeOf<Task<number>>()
    expectTypeOf(kernel.spawn(work.primes, [10])).toEqualTypeOf<Task<number>>()
    expectTypeOf(kernel.spawn(work.later, [1])).toEqualTypeOf<Task<string>>()
    expectTypeOf(work).not.toHaveProperty('notAFunction')
    // @ts-expect-error: a string is no number
    kernel.spawn(work.add, ['1', 2])
  })
})

describe('results and failures:', () => {
  test('an error arrives with its class, its message, its stack, and the place that spawned the task', async () => {
    const error = await failureOf(kernel.spawn(work.fails, ['no such row']))
    expect(error).toBeInstanceOf(RangeError)
    expect(error.message).toBe('no such row')
    expect(error.stack).toMatch(/at fails \(.*work\.ts/)
    expect(error.stack).toMatch(/at task fails #\d+\n.*kernel\.test\.ts/)
  })

  test('a value that structured clone can copy comes back equal', async () => {
    const value = { map: new Map([[1, new Set(['a'])]]), date: new Date(5), big: 12n, cycle: {} as object }
    value.cycle = value
    expect(await kernel.spawn(work.echo, [value])).toEqual(value)
  })

  test('a shared array is shared, and the error for a value that cannot travel names its path', async () => {
    const words = shared()
    const back = (await kernel.spawn(work.echo, [words])) as Int32Array
    back[0] = 7
    expect(words[0]).toBe(7)
    expect(() => kernel.spawn(work.echo, [{ options: { onDone: () => 1 } }])).toThrow(
      /args\[0\]\.options\.onDone: a function/,
    )
  })

  test('a task can be awaited more than once, and after it has ended', async () => {
    const task = kernel.spawn(work.add, [2, 2])
    expect(await task).toBe(4)
    expect(await task).toBe(4)
    expect(await task.join()).toBe(4)
    expect(await task.then(value => value + 1)).toBe(5)
  })

  test('a join ends at its time limit, and the task goes on', async () => {
    const task = kernel.spawn(work.naps, [60])
    expect((await failureOf(task.join({ timeout: 1 }))).name).toBe('TimeoutError')
    expect(await task).toBe('slept')
  })

  test('the failure of an unjoined task is reported once, with its name', async () => {
    const told: unknown[] = []
    const stop = kernel.on('failure', failure => told.push(failure))
    kernel.spawn(work.fails, ['nobody asks'], { name: 'lonely' })
    await until('the failure is reported', () => told.length > 0)
    await new Promise(resolve => setTimeout(resolve, 20))
    stop()
    expect(told).toHaveLength(1)
    expect(told[0]).toMatchObject({ name: 'lonely', error: { message: 'nobody asks' } })
  })

  test('the failure of a child whose parent has ended is reported', async () => {
    const told: { error: unknown }[] = []
    const stop = kernel.on('failure', failure => told.push(failure))
    expect(await kernel.spawn(work.leavesChild, ['orphan'])).toBe('left')
    await until('the failure is reported', () => told.length > 0)
    stop()
    expect(told[0]).toMatchObject({ name: 'failsLater', error: { message: 'orphan' } })
  })
})

describe('inside a task:', () => {
  test('children are spawned, joined, and known; a closure runs on the same CPU', async () => {
    const family = await kernel.spawn(work.family, [5])
    expect(family).toEqual({ sum: 30, local: 'local 5', before: 5, after: 0, name: 'family' })
  })

  test('an async function awaits its children', async () => {
    expect(await kernel.spawn(work.asyncFamily, [5])).toEqual({ sum: 30, name: 'asyncFamily' })
  })

  test('a child knows its parent', async () => {
    const { id, child } = (await kernel.spawn(work.parentOf)) as { id: number; child: number }
    expect(child).toBe(id)
  })

  test('task-local values belong to one task, across its waits', async () => {
    const results = await Promise.all([3, 5, 7].map(turns => kernel.spawn(work.counts, [turns])))
    expect(results).toEqual([3, 5, 7])
  })

  test('exit ends the task with a value, and its finally runs', async () => {
    const words = shared()
    expect(await kernel.spawn(work.exits, [words])).toBe('early')
    expect(words[0]).toBe(2)
  })

  test('a child’s error is caught with its class and message', async () => {
    expect(await kernel.spawn(work.catchesChild)).toEqual(['RangeError', 'in the child', true])
  })

  test('a child’s time limit kills it, the time limit of a join does not', async () => {
    expect(await kernel.spawn(work.childWithLimit)).toBe('TimeoutError')
    expect(await kernel.spawn(work.joinWithLimit)).toEqual(['TimeoutError', 'slept'])
  })

  test('a child can be killed', async () => {
    expect(await kernel.spawn(work.killsChild)).toEqual([
      'TaskKilledError',
      'task victim was killed: not needed',
    ])
  })
})

describe('a task is controlled:', () => {
  test('a stopped task makes no progress, a resumed one goes on', async () => {
    const words = shared()
    const task = kernel.spawn(work.ticks, [words])
    task.join().catch(() => undefined)
    const events: string[] = []
    for (const event of ['stop', 'resume', 'kill', 'end'] as const) task.on(event, () => events.push(event))
    await until('it ticks', () => Atomics.load(words, 0) > 0)
    expect(task.stop()).toBe(true)
    expect(task.stop()).toBe(false)
    await until('it is off its CPU', () => task.status.state === 'stopped')
    expect(task.status).toMatchObject({ name: 'ticks', killed: false })
    const still = Atomics.load(words, 0)
    await new Promise(resolve => setTimeout(resolve, 10))
    expect(Atomics.load(words, 0)).toBe(still)
    expect(task.resume()).toBe(true)
    await until('it ticks again', () => Atomics.load(words, 0) > still)
    expect(task.kill()).toBe(true)
    expect((await failureOf(task)).name).toBe('TaskKilledError')
    expect(events).toEqual(['stop', 'resume', 'kill', 'end'])
    expect(task.kill()).toBe(false)
    expect(task.stop()).toBe(false)
    expect(task.setPriority('high')).toBe(false)
  })

  test('affinity decides where it starts', async () => {
    for (const cpu of [0, 1]) {
      const tasks = Array.from({ length: 10 }, () => kernel.spawn(work.where, [], { affinity: [cpu] }))
      expect(await Promise.all(tasks)).toEqual(Array.from({ length: 10 }, () => cpu))
    }
  })

  test('affinity, priority and nice can change until it has started, and are reported when it has ended', async () => {
    const hogs = [0, 1].map(cpu => kernel.spawn(work.hog, [], { affinity: [cpu], priority: 'high' }))
    const task = kernel.spawn(work.where, [], { affinity: [0], priority: 'low' })
    expect(task.status).toMatchObject({ state: 'queued', cpu: null, priority: 'low', nice: 0, affinity: [0] })
    expect(task.setAffinity([1])).toBe(true)
    expect(task.setNice(3)).toBe(true)
    expect(task.setPriority('realtime')).toBe(true)
    // It may run and end at any time from here on.
    const changed = { priority: 'realtime', nice: 3, affinity: [1] }
    expect(task.status).toMatchObject(changed)
    for (const hog of hogs) hog.kill()
    expect(await task).toBe(1)
    expect(task.status).toMatchObject({ ...changed, state: 'returned', cpu: 1 })
    await Promise.allSettled(hogs)
  })

  test('its status shows when it ran, for how long, and where', async () => {
    const task = kernel.spawn(work.crunch, [1e6], { affinity: [1], name: 'cruncher', nice: 5 })
    await task
    const { started, ended, runTime, waitTime } = task.status
    expect(task.status).toMatchObject({ state: 'returned', name: 'cruncher', cpu: 1, starts: 1, nice: 5 })
    expect(ended).toBeGreaterThan(started as number)
    expect(runTime).toBeGreaterThan(0)
    expect(waitTime).toBeGreaterThan(0)
    const napper = kernel.spawn(work.naps, [1])
    await napper
    expect(napper.status.switches).toBeGreaterThan(0)
    const brief = kernel.spawn(work.where, [])
    await brief
    expect(brief.status).toMatchObject({ switches: 1, preemptions: 0 })
  })

  test('it is queued again when another task has its CPU', async () => {
    const words = shared()
    const first = kernel.spawn(work.ticks, [words], { affinity: [1] })
    await until('it ticks', () => Atomics.load(words, 0) > 0)
    const hog = kernel.spawn(work.hog, [], { affinity: [1], priority: 'high' })
    await until('it waits behind the hog', () => first.status.state === 'queued')
    for (const task of [first, hog]) task.kill()
    await Promise.allSettled([first, hog])
  })

  test('it is queued, and waits, from the moment it is spawned', async () => {
    const one = await Kernel.boot({ cpus: 1, watchdog: false })
    const { holds, naps } = await one.import<Work>(workUrl)
    const words = shared()
    const holder = one.spawn(holds, [words])
    await until('the CPU is held', () => Atomics.load(words, 0) === 1)
    const task = one.spawn(naps, [1e6])
    const release = performance.now() + 20
    const states = new Set<string>()
    while (performance.now() < release) states.add(task.status.state)
    Atomics.store(words, 1, 1)
    await holder
    // Its times are published when it leaves its CPU, which is after it reports that it sleeps.
    await until('it has left its CPU', () => task.status.switches > 0)
    const { waitTime } = task.status
    await one.close({ abort: true })
    expect([...states]).toEqual(['queued'])
    expect(waitTime).toBeGreaterThan(19)
  })
})

describe('the error for a mistake says what to do instead:', () => {
  test.each<[string, () => unknown, RegExp]>([
    ['a function of this thread', () => kernel.spawn((() => 1) as never), /export it from a module/],
    ['no list of arguments', () => kernel.spawn(work.add, 1 as never), /the arguments are a list/],
    [
      'an unknown priority',
      () => kernel.spawn(work.add, [1, 2], { priority: 'urgent' as never }),
      /realtime, high/,
    ],
    [
      'a CPU that does not exist',
      () => kernel.spawn(work.add, [1, 2], { affinity: [9] }),
      /there is no CPU 9; the kernel has 0 to 1/,
    ],
    ['nice out of range', () => kernel.spawn(work.add, [1, 2], { nice: 40 }), /-20 to 19/],
    ['a negative time', () => kernel.spawn(work.add, [1, 2], { timeout: -1 }), /timeout: -1 is not a time/],
    [
      'an export that does not exist',
      () => (work as Record<string, unknown>).subtract,
      /exports no function subtract; it exports add/,
    ],
    [
      'a kernel that is not booted',
      () => Reflect.construct(Kernel, []),
      /write await Kernel\.boot\(options\)/,
    ],
    ['a scope of no function', () => kernel.scope(5 as never), /^kernel\.scope\(5\): .* give async scope/],
    [
      'a task-local without a function',
      () => new TaskLocal(5 as never),
      /^new TaskLocal\(5\): not a function/,
    ],
    ['a call for tasks outside of one', () => sleep(1), /runs as a task, by kernel\.spawn or schedule\.run/],
    ['a count that is a text', () => new Semaphore('3' as never), /\(permits\): '3' is not a count/],
    ['a number of waiters that is a text', () => new Condition().notify('all' as never), /: 'all' is not a/],
  ])('%s', (_, act, message) => {
    expect(act).toThrow(message)
  })

  test.each<[string, KernelOptions, RegExp]>([
    ['no CPUs', { cpus: 0 }, /cpus: 0 is not a number of CPUs; give an integer from 1 to 64/],
    ['too many', { cpus: 65 }, /cpus: 65/],
    ['a slice of 0', { cpus: 1, slice: 0 }, /slice: 0 is not a slice/],
    ['a function as data', { cpus: 1, workerData: () => 1 }, /^workerData: .* could not be cloned/],
    ['a seed that is a text', { machine: 'simulated', seed: '7' as never }, /^seed: '7' is not an integer/],
  ])('at boot, %s', async (_, options, message) => {
    await expect(Kernel.boot(options)).rejects.toThrow(message)
  })

  test('a module that does not exist, one that does not parse, and one with a relative address', async () => {
    await expect(
      kernel.import(new URL('../../../testing/kernel/fixtures/missing.ts', import.meta.url)),
    ).rejects.toThrow(/cannot load .*missing\.ts: there is no such file; check the path/)
    await expect(
      kernel.import(new URL('../../../testing/kernel/fixtures/broken.mjs', import.meta.url)),
    ).rejects.toThrow(/cannot load .*broken\.mjs/)
    await expect(kernel.import('./work.ts')).rejects.toThrow(/give new URL\('.\/work.ts', import.meta.url\)/)
  })
})
