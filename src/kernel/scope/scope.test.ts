import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { TaskKilledError } from '../join/errors.ts'
import { Kernel } from '../boot/kernel.ts'
import type { ModuleView } from '../spawn/modules.ts'
import type { Task } from '../join/task.ts'

type Work = typeof import('../../../testing/kernel/fixtures/mapwork.ts')

describe.each(['threads', 'simulated'] as const)('on %s', machine => {
  let kernel: Kernel
  let work: ModuleView<Work>

  beforeAll(async () => {
    kernel = await Kernel.boot({ cpus: 2, machine })
    work = await kernel.import<Work>(new URL('../../../testing/kernel/fixtures/mapwork.ts', import.meta.url))
  })
  afterAll(() => kernel.close())
  afterEach(async () => {
    await expect.poll(() => kernel.active).toBe(0)
  })

  const log = (): Int32Array => new Int32Array(new SharedArrayBuffer(16))

  test('leaving a scope waits for its tasks', async () => {
    const word = log()
    const given = await kernel.scope(scope => {
      for (let index = 0; index < 5; index++) scope.spawn(work.counted, [word])
      return 'body'
    })
    expect(given).toBe('body')
    expect(word[0]).toBe(0)
    expect(kernel.active).toBe(0)
  })

  test('a task that fails kills the others, and the scope throws all failures', async () => {
    const word = log()
    let survivor: Task<void> | undefined
    let signal: AbortSignal | undefined
    const failing = kernel.scope(async scope => {
      survivor = scope.spawn(work.forever, [word])
      scope.spawn(work.forever, [word])
      ;({ signal } = scope)
      await expect.poll(() => survivor?.status.state).toBe('sleeping')
      scope.spawn(work.fails, ['first'])
    })
    const error = await failing.catch((thrown: unknown) => thrown as AggregateError)
    expect(error).toBeInstanceOf(AggregateError)
    expect(error).toMatchObject({ message: 'a task of the scope failed: first' })
    expect((error as AggregateError).errors).toEqual([new TypeError('first')])
    expect(signal?.aborted).toBe(true)
    await expect(survivor).rejects.toThrow(TaskKilledError)
    expect(kernel.active).toBe(0)
  })

  test('a body that throws kills the tasks, and the scope throws the body’s error', async () => {
    const word = log()
    const thrown = new RangeError('body')
    await expect(
      kernel.scope(async scope => {
        const task = scope.spawn(work.forever, [word])
        await expect.poll(() => task.status.state).toBe('sleeping')
        throw thrown
      }),
    ).rejects.toBe(thrown)
    expect(word[0]).toBe(1)
  })

  test('a body that awaits a failed task does not count its error twice', async () => {
    const failing = kernel.scope(async scope => {
      await scope.spawn(work.fails, ['awaited'])
    })
    const error = await failing.catch((thrown: unknown) => thrown as AggregateError)
    expect((error as AggregateError).errors).toEqual([new TypeError('awaited')])
  })

  test('a scope can be cancelled, and refuses tasks after it was left', async () => {
    const word = log()
    const left = await kernel.scope(async scope => {
      const task = scope.spawn(work.forever, [word])
      await expect.poll(() => task.status.state).toBe('sleeping')
      scope.cancel(new Error('no more'))
      expect(() => scope.spawn(work.double, [1])).toThrow('no more')
      return scope
    })
    expect(word[0]).toBe(1)
    expect(() => left.spawn(work.double, [1])).toThrow('the scope has been left')
  })

  test('a scope without a body joins its tasks at the end of its block', async () => {
    const word = log()
    {
      await using scope = kernel.scope()
      scope.spawn(work.counted, [word])
    }
    expect(kernel.active).toBe(0)
  })

  test('inside a task, a scope spawns tasks and waits for them', async () => {
    expect(await kernel.spawn(work.scopeOfTwo, [10])).toBe(42)
  })

  test('inside a task, a failed child or a failed body kills the rest of the scope', async () => {
    const word = log()
    expect(await kernel.spawn(work.scopeThatFails, [word])).toBe(
      'AggregateError: TypeError: child; 0 children',
    )
    expect(word[0]).toBe(2)
    expect(await kernel.spawn(work.scopeWhoseBodyFails, [word])).toBe('RangeError: body')
    expect(word[0]).toBe(3)
  })

  test('killing a task kills the tasks of its scope', async () => {
    const word = log()
    const task = kernel.spawn(work.scopeThatIsKilled, [word])
    await expect.poll(() => Atomics.load(word, 1)).toBe(1)
    task.kill()
    await expect(task).rejects.toThrow(TaskKilledError)
    expect(word[0]).toBe(1)
  })

  test('async functions have scopes too', async () => {
    for (let round = 0; round < 40; round++) {
      expect(await kernel.spawn(work.asyncScope, [log()])).toBe('6 TypeError: async child')
    }
  })
})
