import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Mutex } from '../../sync/index.ts'
import type * as asyncwork from '../../../testing/kernel/fixtures/asyncwork.ts'
import { Kernel } from '../boot/kernel.ts'
import type { ModuleView } from '../spawn/modules.ts'

const words = (): Int32Array => new Int32Array(new SharedArrayBuffer(8))
const asyncworkUrl = new URL('../../../testing/kernel/fixtures/asyncwork.ts', import.meta.url)

describe('async functions that are marked, on one CPU', () => {
  let kernel: Kernel
  let work: ModuleView<typeof asyncwork>

  beforeAll(async () => {
    kernel = await Kernel.boot({ cpus: 1 })
    work = await kernel.import<typeof asyncwork>(asyncworkUrl)
  })
  afterAll(() => kernel.close())

  test('one that only chains promises lets others in', async () => {
    const shared = words()
    const chain = kernel.spawn(work.awaitsUntil, [shared])
    await expect.poll(() => Atomics.load(shared, 1)).toBe(1)
    await kernel.spawn(work.raise, [shared, 0], { priority: 'high' })
    expect(await chain).toBe('let in')
  })

  test('two such tasks of one priority share the CPU', async () => {
    const [first, second] = [words(), words()]
    const chains = [kernel.spawn(work.awaitsUntil, [first]), kernel.spawn(work.awaitsUntil, [second])]
    await kernel.spawn(work.raise, [second, 0])
    expect(await chains[1]).toBe('let in')
    await kernel.spawn(work.raise, [first, 0])
    expect(await chains[0]).toBe('let in')
  })

  test('one that loops after an await is preempted inside', async () => {
    const shared = words()
    const loop = kernel.spawn(work.loopsAfterAwait, [shared])
    await expect.poll(() => Atomics.load(shared, 1)).toBe(1)
    await kernel.spawn(work.raise, [shared, 0], { priority: 'high' })
    expect(await loop).toBe('let in')
    expect(loop.status.preemptions).toBeGreaterThan(0)
  })

  test('blocks after an await as before it, also for functions that await themselves', async () => {
    const mutex = new Mutex()
    const tasks = [1, 2, 3].map(n => kernel.spawn(work.blocks, [mutex], { name: `blocks ${n}` }))
    expect(await Promise.all(tasks)).toEqual([1, 2, 3].map(n => [`blocks ${n}`, `blocks ${n}`, 7, 7, 7, 7]))
  })

  test('a kill is thrown into what follows an await', async () => {
    const shared = words()
    const task = kernel.spawn(work.tidiesAfterAwait, [shared], { name: 'tidies' })
    await expect.poll(() => Atomics.load(shared, 0)).toBe(1)
    task.kill('enough')
    await expect(task).rejects.toThrow('task tidies was killed: enough')
    expect(Atomics.load(shared, 1)).toBe(1)
    expect(task.status.state).toBe('killed')
  })

  test('an AsyncLocalStorage keeps its value across awaits and waits', async () => {
    expect(await kernel.spawn(work.keepsContext)).toEqual([
      ['first', 'store of first'],
      ['second', 'store of second'],
    ])
  })

  test('what is thrown after an await is the task’s error', async () => {
    await expect(kernel.spawn(work.rejects)).rejects.toThrow(new RangeError('after the await'))
  })

  test('a function that is left behind when its task ends goes on in the event loop', async () => {
    const shared = words()
    expect(await kernel.spawn(work.leavesOneBehind, [shared])).toBe('gone')
    // The event loop turns for those that wait.
    await expect
      .poll(async () => {
        await kernel.spawn(work.blocks, [new Mutex()])
        return Atomics.load(shared, 0)
      })
      .toBe(1)
  })
})

/** After so many awaits of `awaitsUnmarked` its CPU waits for the event loop, and not for microtasks. */
const AWAITS_ALONE = 1000

describe('the watchdog sees an event loop that does not come to an end', () => {
  test('and names the async task', async () => {
    await using watched = await Kernel.boot({ cpus: 1, watchdog: { limit: 30 } })
    const its = await watched.import<typeof asyncwork>(asyncworkUrl)
    const shared = words()
    const told = new Promise(resolve => watched.on('stuck', resolve))
    const chain = watched.spawn(its.awaitsUnmarked, [shared], { name: 'chain' })
    await expect.poll(() => Atomics.load(shared, 1)).toBeGreaterThan(AWAITS_ALONE)
    // Something that the CPU should run, and cannot.
    const behind = watched.spawn(its.raise, [words(), 0], { priority: 'high' })
    expect(await told).toMatchObject({ name: 'chain', cpu: 0, where: 'event loop', evicted: false })
    Atomics.store(shared, 0, 1)
    await behind
    expect(await chain).toBe('let in')
  })

  test('and takes its CPU from it, on request', async () => {
    await using watched = await Kernel.boot({ cpus: 1, watchdog: { limit: 500, evict: true } })
    const its = await watched.import<typeof asyncwork>(asyncworkUrl)
    const shared = words()
    const chain = watched.spawn(its.awaitsUnmarked, [shared], { name: 'chain' })
    await expect.poll(() => Atomics.load(shared, 1)).toBeGreaterThan(AWAITS_ALONE)
    const behind = watched.spawn(its.raise, [words(), 0], { priority: 'high', restartable: true })
    await expect(chain).rejects.toMatchObject({ how: 'evicted' })
    await behind
  })
})
