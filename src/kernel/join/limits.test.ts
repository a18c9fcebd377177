import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Kernel } from '../boot/kernel.ts'
import type { ModuleView } from '../spawn/modules.ts'

type Work = typeof import('../../../testing/kernel/fixtures/limitwork.ts')
const address = new URL('../../../testing/kernel/fixtures/limitwork.ts', import.meta.url)

describe.each(['threads', 'simulated'] as const)('on %s', machine => {
  let kernel: Kernel
  let work: ModuleView<Work>
  const failures: unknown[] = []

  beforeAll(async () => {
    kernel = await Kernel.boot({ cpus: 2, machine })
    kernel.on('failure', ({ error }) => failures.push(error))
    work = await kernel.import<Work>(address)
  })
  afterAll(() => kernel.close())
  afterEach(async () => {
    await expect.poll(() => kernel.active).toBe(0)
    failures.length = 0
  })

  test('a failure after its only join gave up is reported', async () => {
    for (const limit of [{ timeout: 1 }, { signal: AbortSignal.abort(new Error('left')) }]) {
      failures.length = 0
      const word = new Int32Array(new SharedArrayBuffer(4))
      const task = kernel.spawn(work.failsLate, [word])
      await expect(task.join(limit)).rejects.toThrow(/left|1 ms have passed/)
      Atomics.store(word, 0, 1)
      await expect.poll(() => failures).toEqual([new RangeError('late')])
    }
  })

  test('a failure with another join is not reported', async () => {
    const word = new Int32Array(new SharedArrayBuffer(4))
    const task = kernel.spawn(work.failsLate, [word])
    const joined = task.join().catch((error: unknown) => error)
    await expect(task.join({ timeout: 1 })).rejects.toThrow('1 ms have passed')
    Atomics.store(word, 0, 1)
    expect(await joined).toEqual(new RangeError('late'))
    await new Promise(resolve => setTimeout(resolve, 0))
    expect(failures).toEqual([])
  })

  test('a time limit of a child ends with the child, also when its parent is gone', async () => {
    for (const detached of [false, true]) {
      await kernel.spawn(work.leavesLimited, [detached])
      await expect.poll(() => kernel.active).toBe(0)
    }
    expect(failures).toEqual([])
  })

  test('a signal kills a child that is detached, and one that has outlived its parent', async () => {
    const ended = new Int32Array(new SharedArrayBuffer(4))
    let count = 0
    for (const detached of [false, true]) {
      for (const late of [false, true]) {
        await kernel.spawn(work.leavesWatched, [ended, detached, late])
        await expect.poll(() => ended[0]).toBe(++count)
        await expect.poll(() => kernel.active).toBe(0)
      }
    }
    await kernel.spawn(work.spawnsAborted, [ended])
    await expect.poll(() => kernel.active).toBe(0)
  })

  test('a wrong limit or argument throws at the call, with its value', async () => {
    expect(await kernel.spawn(work.wrongUse)).toEqual([
      'timeout: NaN is not a time; give a number of milliseconds, 0 or more',
      'timeout: -1 is not a time; give a number of milliseconds, 0 or more',
      'signal: 5 is not an AbortSignal; give the signal of an AbortController',
      'join(options): null is not an object with options; give { signal, timeout }, or nothing',
      'spawn(rests, args): the arguments are a list, as in spawn(fn, [1, 2]); got 5',
      expect.stringContaining('spawn(fn, args, options): null is not an object'),
      'spawn(5): not a function; give a function of this module or of another',
      'rested',
    ])
    const task = kernel.spawn(work.rests, [1])
    const odd = Object.create(null) as never
    expect(() => task.join({ signal: 5 as never })).toThrow('signal: 5 is not an AbortSignal')
    expect(() => task.join(null as never)).toThrow('join(options): null')
    expect(() => task.kill('x', null as never)).toThrow('kill(reason, options): null')
    expect(() => task.on('ended' as never, () => undefined)).toThrow(
      "task.on('ended'): there is no such event",
    )
    expect(() => task.on('end', 5 as never)).toThrow("task.on('end', 5): the listener is not a function")
    expect(() => kernel.on('failed' as never, () => undefined)).toThrow("kernel.on('failed'): there is no")
    expect(() => kernel.spawn(work.rests, [1], { priority: odd })).toThrow('priority: an object that cannot')
    expect(() => kernel.spawn(work.rests, [1], { priority: ['high'] as never })).toThrow("priority: ['high']")
    expect(() => kernel.map(work.rests, [1], { signal: 5 as never })).toThrow('signal: 5')
    expect(await task).toBe('rested')
  })

  test('a listener that throws is an uncaught error, and every outcome still arrives', async () => {
    const uncaught: unknown[] = []
    const others = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException')
    process.on('uncaughtException', error => uncaught.push(error))
    try {
      const tasks = Array.from({ length: 20 }, () => kernel.spawn(work.rests, [1]))
      const mine = new Error('of a listener')
      for (const at of [0, 7]) {
        tasks[at].on('end', () => {
          throw mine
        })
      }
      expect(await Promise.all(tasks)).toEqual(tasks.map(() => 'rested'))
      expect(await kernel.spawn(work.rests, [1])).toBe('rested')
      await expect.poll(() => uncaught).toEqual([mine, mine])
    } finally {
      process.removeAllListeners('uncaughtException')
      for (const other of others) process.on('uncaughtException', other)
    }
  })
})

test('a program that waits for room gets an answer when the kernel gives its tasks up', async () => {
  const kernel = await Kernel.boot({ cpus: 1, queue: 1, grace: 10 })
  const work = await kernel.import<Work>(address)
  const task = kernel.spawn(work.rests, [3_600_000])
  const ended = expect(task).rejects.toThrow('was killed')
  const ready = kernel.ready
  await kernel.close({ abort: true })
  await ready
  await ended
})
