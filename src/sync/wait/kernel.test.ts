import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Barrier, Channel, Condition, Kernel, Mutex, RwLock, Semaphore, WaitGroup } from '../../index.ts'
import type * as Tasks from '../../../testing/sync/fixtures/kerneltasks.ts'

let kernel: Kernel
let tasks: Awaited<ReturnType<typeof load>>

function load(): Promise<Awaited<ReturnType<typeof Kernel.prototype.import<typeof Tasks>>>> {
  return kernel.import<typeof Tasks>(
    new URL('../../../testing/sync/fixtures/kerneltasks.ts', import.meta.url),
  )
}

beforeAll(async () => {
  kernel = await Kernel.boot({ cpus: 2 })
  tasks = await load()
})

afterAll(async () => {
  await kernel.close()
})

const shared = (words: number): Int32Array<SharedArrayBuffer> =>
  new Int32Array(new SharedArrayBuffer(words * 4))

describe.each([
  {},
  { type: 'recursive' },
  { type: 'errorcheck' },
  { protocol: 'inherit' },
  { protocol: 'handoff' },
  { robust: true },
  { protocol: 'inherit', robust: true },
] as const)('a mutex with %o', options => {
  test('excludes tasks of two CPUs and the booting thread from one another', async () => {
    const mutex = new Mutex(options)
    const counter = shared(1)
    const running = [
      kernel.spawn(tasks.addUnder, [mutex, counter, 300]),
      kernel.spawn(tasks.addUnder, [mutex, counter, 300]),
      kernel.spawn(tasks.addPlainly, [mutex, counter, 300]),
    ]
    for (let i = 0; i < 100; i++) {
      using _ = await mutex.lockAsync()
      const seen = counter[0]
      await Promise.resolve()
      counter[0] = seen + 1
    }
    await Promise.all(running)
    expect(counter[0]).toBe(1000)
    expect(mutex.locked).toBe(false)
  })

  test('is used for waits at a condition, which wakes tasks and promises', async () => {
    const mutex = new Mutex(options)
    const condition = new Condition()
    const word = shared(2)
    const waiting = [1, 2, 3].map(() => kernel.spawn(tasks.waitFor, [mutex, condition, word]))
    const here = (async () => {
      using token = await mutex.lockAsync()
      word[1]++
      while (word[0] === 0) await condition.waitAsync(token)
      return word[0]
    })()
    for (;;) {
      {
        using _ = await mutex.lockAsync()
        if (word[1] === 4) break
      }
      // A promise that another thread woke resolves in the event loop, which must turn.
      await new Promise(resolve => setImmediate(resolve))
    }
    {
      using _ = await mutex.lockAsync()
      word[0] = 7
      expect(condition.notify()).toBe(4)
    }
    expect(await Promise.all([...waiting, here])).toEqual([7, 7, 7, 7])
  })
})

const values = [1, 'two', { three: [3, { four: 4n }] }, null, undefined, true, -0, Number.NaN]

test.each([0, 1, 16])(
  'a channel of capacity %i carries every kind of value between CPUs, in order',
  async capacity => {
    const channel = new Channel<unknown>(capacity)
    const collecting = kernel.spawn(tasks.collectAll, [channel])
    await kernel.spawn(tasks.produce, [channel, values])
    expect(await collecting).toEqual(values)
  },
)

test('a channel passes between tasks and the booting thread', async () => {
  const channel = new Channel<number>(2)
  const collecting = kernel.spawn(tasks.collect, [channel, 5])
  for (let i = 0; i < 5; i++) await channel.sendAsync(i)
  expect(await collecting).toEqual([0, 1, 2, 3, 4])
})

test('a task selects over channels that the booting thread sends to', async () => {
  const [a, b] = [new Channel<string>(), new Channel<string>()]
  const selecting = kernel.spawn(tasks.selectOne, [a, b])
  await b.sendAsync('hello')
  expect(await selecting).toEqual({ index: 1, value: 'hello', closed: false })
})

test('a barrier lets tasks of all CPUs go on together, and returns true to one of them', async () => {
  const barrier = new Barrier(4)
  const group = new WaitGroup(4)
  const arriving = [1, 2, 3, 4].map(() => kernel.spawn(tasks.meet, [barrier, group]))
  await group.waitAsync()
  expect((await Promise.all(arriving)).filter(Boolean)).toHaveLength(1)
})

test('readers never see a partial write', async () => {
  const lock = new RwLock()
  const pair = shared(2)
  const torn = await Promise.all([1, 2, 3].map(() => kernel.spawn(tasks.readAndWrite, [lock, pair, 200])))
  expect(torn).toEqual([0, 0, 0])
  expect([...pair]).toEqual([150, 150])
})

test('a semaphore never grants more permits than it has', async () => {
  const semaphore = new Semaphore(4)
  const out = shared(1)
  const worst = await Promise.all([1, 2, 3].map(() => kernel.spawn(tasks.takePermits, [semaphore, out, 200])))
  expect(Math.max(...worst)).toBeLessThanOrEqual(4)
  expect(semaphore.available).toBe(4)
})

test('a task that is cancelled while it waits leaves the queue, and one that held the lock unlocks it', async () => {
  const mutex = new Mutex()
  const holder = kernel.spawn(tasks.holdForEver, [mutex])
  while (!mutex.locked) await new Promise(resolve => setTimeout(resolve, 1))
  const stopping = new AbortController()
  const waiter = kernel.spawn(tasks.lockOnce, [mutex], { signal: stopping.signal })
  const next = kernel.spawn(tasks.lockOnce, [mutex])
  await new Promise(resolve => setTimeout(resolve, 10))
  stopping.abort()
  await expect(waiter).rejects.toThrow()
  holder.kill()
  await expect(holder).rejects.toThrow()
  expect(await next).toBe('locked')
  expect(mutex.locked).toBe(false)
})
