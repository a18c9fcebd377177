import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Kernel } from '../boot/kernel.ts'
import type { ModuleView } from './modules.ts'

type Work = typeof import('../../../testing/kernel/fixtures/mapwork.ts')

describe.each(['threads', 'simulated'] as const)('on %s', machine => {
  let kernel: Kernel
  let work: ModuleView<Work>

  beforeAll(async () => {
    kernel = await Kernel.boot({ cpus: 2, machine, queue: 64 })
    work = await kernel.import<Work>(new URL('../../../testing/kernel/fixtures/mapwork.ts', import.meta.url))
  })
  afterAll(() => kernel.close())

  async function collect<T>(results: AsyncIterable<T>): Promise<T[]> {
    const all: T[] = []
    for await (const result of results) all.push(result)
    return all
  }

  /** No task of a map is left when it has ended. */
  async function expectNoTasks(): Promise<void> {
    await expect.poll(() => kernel.active).toBe(0)
  }

  test('a map yields the results in the order of the items', async () => {
    const items = Array.from({ length: 6 }, (_, index) => ({ index, of: 6 }))
    expect(await collect(kernel.map(work.backwards, items, { concurrency: 6 }))).toEqual([0, 1, 2, 3, 4, 5])
  })

  test('an unordered map yields each result once, in order of completion', async () => {
    const items = Array.from({ length: 6 }, (_, index) => ({ index, of: 6 }))
    const results = await collect(kernel.map(work.backwards, items, { concurrency: 6, ordered: false }))
    expect(results.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5])
    expect(results).not.toEqual([0, 1, 2, 3, 4, 5])
  })

  test('a map over more items than the kernel has room for waits for room', async () => {
    const items = Array.from({ length: 1000 }, (_, index) => index)
    const results = await collect(kernel.map(work.double, items, { concurrency: 500 }))
    expect(results).toEqual(items.map(item => item * 2))
  })

  test('a map takes items only as fast as results are taken', async () => {
    let pulled = 0
    async function* endless(): AsyncGenerator<number> {
      try {
        for (;;) yield pulled++
      } finally {
        pulled = -1
      }
    }
    const map = kernel.map(work.double, endless(), { concurrency: 3 })
    expect(pulled).toBe(0)
    for (let index = 0; index < 5; index++) {
      expect(await map.next()).toEqual({ done: false, value: index * 2 })
      expect(pulled).toBeLessThanOrEqual(index + 1 + 3)
    }
    await map.return()
    expect(pulled).toBe(-1)
    expect(await map.next()).toEqual({ done: true, value: undefined })
    await expectNoTasks()
  })

  test('no more tasks run at the same time than `concurrency` allows', async () => {
    const word = new Int32Array(new SharedArrayBuffer(4))
    const atOnce = await collect(
      kernel.map(
        work.counted,
        Array.from({ length: 20 }, () => word),
        { concurrency: 3 },
      ),
    )
    expect(Math.max(...atOnce)).toBeLessThanOrEqual(3)
    expect(Math.max(...atOnce)).toBeGreaterThan(1)
  })

  test('a map reports its progress', async () => {
    const seen: number[] = []
    const map = kernel.map(work.double, new Set([1, 2, 3]), {
      onProgress: ({ finished }) => seen.push(finished),
    })
    expect(map.progress).toEqual({ started: 0, finished: 0, taken: 0, total: 3 })
    await collect(map)
    expect(map.progress).toEqual({ started: 3, finished: 3, taken: 3, total: 3 })
    expect(seen).toEqual([1, 2, 3])
    const unknown = kernel.map(work.double, [1, 2].values())
    expect(unknown.progress.total).toBeUndefined()
    await collect(unknown)
    expect(unknown.progress.total).toBe(2)
  })

  test('the first failure ends the map: earlier results arrive, the other tasks are killed', async () => {
    const map = kernel.map(work.failsAt, [0, 1, 2, 3, 4, 5, 6], { concurrency: 2 })
    for (const value of [0, 1, 2]) expect(await map.next()).toEqual({ done: false, value })
    await expect(map.next()).rejects.toThrow(new RangeError('three'))
    expect(await map.next()).toEqual({ done: true, value: undefined })
    await expectNoTasks()
  })

  test('an aborted signal ends the map with its reason, and leaving the loop kills the other tasks', async () => {
    const log = new Int32Array(new SharedArrayBuffer(4))
    const controller = new AbortController()
    const map = kernel.map(work.forever, [log, log, log], { concurrency: 3, signal: controller.signal })
    const next = map.next()
    await expect.poll(() => map.progress.started).toBe(3)
    controller.abort(new Error('enough'))
    await expect(next).rejects.toThrow('enough')
    await expectNoTasks()
    await expect(collect(kernel.map(work.double, [1], { signal: controller.signal }))).rejects.toThrow(
      'enough',
    )

    for await (const _ of kernel.map(work.failsAt, [0, 4, 5, 6], { concurrency: 4 })) break
    await expectNoTasks()
  })

  test('an item that cannot travel, or a failing source, ends the map with that error', async () => {
    await expect(collect(kernel.map(work.double, [1, (() => 1) as never]))).rejects.toThrow(
      'args[0]: a function',
    )
    const source = (function* () {
      yield 1
      throw new SyntaxError('source')
    })()
    await expect(collect(kernel.map(work.double, source))).rejects.toThrow(new SyntaxError('source'))
    expect(() => kernel.map(work.double, [1], { concurrency: 0 })).toThrow('concurrency')
    expect(() => kernel.map(work.double, 5 as never)).toThrow('cannot be iterated')
    await expectNoTasks()
  })
})
