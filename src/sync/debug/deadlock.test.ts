import { afterEach, describe, expect, test } from 'vitest'
import { Worker } from 'node:worker_threads'
import { Kernel, Mutex, type MutexOptions, RwLock } from '../../index.ts'
import type * as Tasks from '../../../testing/sync/fixtures/circletasks.ts'

const tasksUrl = new URL('../../../testing/sync/fixtures/circletasks.ts', import.meta.url)

let kernel: Kernel | undefined

async function boot(options: { readonly debug?: boolean } = {}): Promise<{
  kernel: Kernel
  tasks: Awaited<ReturnType<typeof Kernel.prototype.import<typeof Tasks>>>
  found: Promise<string>
  reports: string[]
}> {
  kernel = await Kernel.boot({ cpus: 2, ...options })
  const reports: string[] = []
  const found = new Promise<string>(resolve => {
    kernel?.on('deadlock', ({ message }) => {
      reports.push(message)
      resolve(message)
    })
  })
  return { kernel, tasks: await kernel.import<typeof Tasks>(tasksUrl), found, reports }
}

afterEach(async () => {
  await kernel?.close({ abort: true })
  kernel = undefined
})

const words = (count: number): Int32Array => new Int32Array(new SharedArrayBuffer(count * 4))

describe.each([{}, { robust: true }, { protocol: 'handoff' }] as const)('mutexes with %o:', options => {
  test('two tasks that take two locks in opposite order are reported, with their lines', async () => {
    const { kernel, tasks, found, reports } = await boot()
    const [a, b] = ['a', 'b'].map(name => new Mutex({ ...options, name }))
    const both = words(2)
    const one = kernel.spawn(tasks.locksInOrder, [a, b, both], { name: 'one', affinity: [0] })
    const two = kernel.spawn(tasks.locksPlainly, [b, a, both], { name: 'two', affinity: [1] })
    const message = await found
    expect(message).toMatch(/^deadlock: each of these waits for the next/)
    expect(message).toMatch(/task 'one' .* waits for mutex 'b'/)
    expect(message).toMatch(/task 'two' .* waits for mutex 'a'/)
    // The lines of the program, and none of the library.
    expect(message).toMatch(/locksInOrder.*circletasks\.ts:9/)
    expect(message).toMatch(/locksPlainly.*circletasks\.ts/)
    expect(message).not.toMatch(/src\/(sync|futex|kernel|sched|coroutine)\/[\w/]+\.ts/)
    one.kill()
    await expect(one).rejects.toThrow()
    expect(await two).toBe('both')
    expect(reports).toHaveLength(1)
  })

  test('a task that takes one lock twice is reported', async () => {
    const { kernel, tasks, found } = await boot()
    const task = kernel.spawn(tasks.locksTwice, [new Mutex({ ...options, name: 'mine' })], { name: 'twice' })
    if (options.protocol === undefined && options.robust === undefined) {
      expect(await found).toMatch(/task 'twice' .* waits for mutex 'mine'[^]*which task 'twice' .* holds/)
      task.kill()
    }
    // Those that keep their own queue say so themselves.
    await expect(task).rejects.toThrow()
  })
})

test.each(['readsThenWrites', 'writesThenReads'] as const)(
  'a cycle through readers and writers of two RwLocks is reported: %s',
  async way => {
    const { kernel, tasks, found, reports } = await boot()
    const [a, b] = ['a', 'b'].map(name => new RwLock({ name }))
    const both = words(2)
    const one = kernel.spawn(tasks[way], [a, b, both], { name: 'one', affinity: [0] })
    const two = kernel.spawn(tasks[way], [b, a, both], { name: 'two', affinity: [1] })
    const message = await found
    expect(message).toMatch(/task 'one' .* waits for rwlock 'b'/)
    expect(message).toMatch(/task 'two' .* waits for rwlock 'a'/)
    expect(message).toMatch(new RegExp(`${way}.*circletasks\\.ts`))
    one.kill()
    await expect(one).rejects.toThrow()
    expect(await two).toBe('both')
    expect(reports).toHaveLength(1)
  },
)

test('a task and a thread that wait for one another are found', async () => {
  const { kernel, tasks, found } = await boot()
  const [a, b] = [new Mutex({ name: 'a' }), new Mutex({ name: 'b' })]
  const both = words(2)
  const task = kernel.spawn(tasks.locksInOrder, [a, b, both], { name: 'task' })
  while (Atomics.load(both, 0) === 0) await new Promise(resolve => setTimeout(resolve, 1))
  b.lockSync()
  Atomics.add(both, 0, 1)
  // This thread hears of it while it is blocked.
  expect(() => a.lockSync({ timeout: 3000 })).toThrow(/3000 ms have passed/)
  expect(await found).toMatch(/thread \d+ waits for mutex 'a'/)
  b.unlock()
  expect(await task).toBe('both')
})

test('with debug the wait that completes the cycle throws, and the report says where each lock was taken', async () => {
  const { kernel, tasks, found } = await boot({ debug: true })
  const [a, b] = [new Mutex({ name: 'a' }), new Mutex({ name: 'b' })]
  const both = words(2)
  const running = [
    kernel.spawn(tasks.locksInOrder, [a, b, both], { affinity: [0] }),
    kernel.spawn(tasks.locksInOrder, [b, a, both], { affinity: [1] }),
  ]
  const ended = await Promise.allSettled(running)
  expect(ended.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  const failure = ended.find(({ status }) => status === 'rejected') as PromiseRejectedResult
  expect(failure.reason).toMatchObject({ code: 'ERR_HEDDLE_DEADLOCK' })
  const message = await found
  expect(message.match(/holds since\n\s+at locksInOrder.*circletasks\.ts:6/g)).toHaveLength(2)
})

test('long waits without a deadlock are not reported', async () => {
  const { kernel, tasks, reports } = await boot()
  const [a, b] = [new Mutex(), new Mutex({ robust: true })]
  const running = [a, b, a, b].map(mutex => kernel.spawn(tasks.holdsLong, [mutex, 2, 320]))
  expect(await Promise.all(running)).toEqual([2, 2, 2, 2])
  expect(reports).toEqual([])
})

test('threads without a kernel are warned', async () => {
  const program = `
    const { workerData, parentPort } = require('node:worker_threads')
    process.on('warning', ({ message }) => parentPort.postMessage(message))
    import(workerData.sync).then(({ Mutex }) => {
      const mutex = new Mutex({ name: 'alone' })
      mutex.lockSync()
      try { mutex.lockSync({ timeout: 1200 }) } catch {}
      setTimeout(() => {}, 50)
    })`
  const worker = new Worker(program, {
    eval: true,
    workerData: { sync: new URL('../index.ts', import.meta.url).href },
  })
  const message = await new Promise(resolve => worker.once('message', resolve))
  expect(message).toMatch(/^deadlock: [^]*thread \d+ waits for mutex 'alone'/)
  await worker.terminate()
})

describe('a token', () => {
  test.each([{}, { protocol: 'inherit' }, { robust: true }] as MutexOptions[])(
    'that is unlocked twice is an error, with %o',
    async options => {
      const mutex = new Mutex(options)
      const sync = mutex.lockSync()
      expect(sync.unlock()).toBe(true)
      expect(() => sync.unlock()).toThrow(/is not locked/)
      const later = await mutex.lockAsync()
      expect(later.unlock()).toBe(true)
      expect(() => later.unlock()).toThrow(/unlocked before/)
      // One that a block owns may be unlocked early.
      using early = mutex.lockSync()
      early.unlock()
    },
  )
})
