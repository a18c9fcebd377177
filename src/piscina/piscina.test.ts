import { execFile } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { MessageChannel } from 'node:worker_threads'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ArrayTaskQueue, FixedQueue, move, Piscina, type PoolOptions } from './index.ts'

const filename = fileURLToPath(new URL('../../testing/piscina/fixtures/work.cjs', import.meta.url))

function pool(options: PoolOptions = {}): Piscina {
  const made = new Piscina({ filename, minThreads: 1, maxThreads: 1, ...options })
  onTestFinished(() => made.destroy())
  return made
}

function words(): Int32Array<SharedArrayBuffer> {
  return new Int32Array(new SharedArrayBuffer(16))
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(resolve => setTimeout(resolve, 1))
}

function release(held: Int32Array): void {
  Atomics.store(held, 1, 1)
  Atomics.notify(held, 1)
}

describe('tasks:', () => {
  test('those that wait for a worker run, also if its thread is terminated while it starts', async () => {
    const p = pool({ minThreads: 0 })
    for (let times = 0; times < 3; times++) {
      const runs = [1, 2, 3].map(n => p.run(n))
      await until(() => p.threads.length > 0)
      await p.threads[0]!.terminate()
      expect(await Promise.all(runs)).toEqual([2, 4, 6])
      // The next one starts again.
      await p.threads[0]?.terminate()
    }
  })

  test('the default export, a named one, an async one, and errors', async () => {
    const p = pool()
    expect(await p.run(21)).toBe(42)
    expect(await p.run({ ms: 1, value: 'a' }, { name: 'later' })).toBe('a')
    await expect(p.run('no such row', { name: 'fails' })).rejects.toThrow(new RangeError('no such row'))
    await expect(p.run(1, { name: 'nothing' })).rejects.toThrow('No handler function exported from')
    expect(p.completed).toBe(4)
    expect(p.utilization).toBeGreaterThan(0)
    expect(p.histogram.runTime.max).toBeGreaterThan(0)
  })

  test('they run while the thread that made the pool is blocked, and the program ends by itself', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [
      fileURLToPath(new URL('../../testing/piscina/fixtures/blocked.ts', import.meta.url)),
    ])
    expect(stdout).toBe('ran\n')
  })

  test('moved objects are gone here: a buffer by move, a port by transferList', async () => {
    const p = pool()
    const bytes = new Uint8Array(8)
    expect(await p.run(move(bytes), { name: 'size' })).toBe(8)
    expect(bytes.byteLength).toBe(0)
    const { port1, port2 } = new MessageChannel()
    await p.run(port2, { name: 'default', transferList: [port2] })
    port1.close()
  })

  test('each worker has its data, environment and arguments', async () => {
    const p = pool({ workerData: { a: 1 }, env: { ONLY: 'this' }, argv: ['x'] })
    expect(await p.run(null, { name: 'given' })).toEqual({ data: { a: 1 }, only: 'this', argv: ['x'] })
    expect(() => pool({ workerData: () => undefined })).toThrow(/could not be cloned/)
  })

  test('a message to the parent is an event of the pool', async () => {
    const p = pool()
    const heard = once(p, 'message')
    await p.run('hello', { name: 'shouts' })
    expect(await heard).toEqual(['hello'])
  })
})

describe('queues and workers:', () => {
  test('tasks run while there is room, then wait, and are refused beyond the limit', async () => {
    const p = pool({ maxQueue: 1 })
    const held = words()
    const first = p.run(held, { name: 'holds' })
    const second = p.run(2)
    expect(p.queueSize).toBe(1)
    await expect(p.run(3)).rejects.toThrow('Task queue is at limit')
    release(held)
    await first
    expect(await second).toBe(4)
  })

  test('tasks of workers that are still starting wait for their own worker, not for each other', async () => {
    const p = pool({ minThreads: 3, maxThreads: 3 })
    const met = words()
    const threads = await Promise.all([1, 2, 3].map(() => p.run({ words: met, count: 3 }, { name: 'meets' })))
    expect(new Set(threads).size).toBe(3)
  })

  test('workers start when tasks wait, and end when they are idle', async () => {
    const p = pool({ minThreads: 1, maxThreads: 2, idleTimeout: 1 })
    const [a, b] = [words(), words()]
    const both = [p.run(a, { name: 'holds' }), p.run(b, { name: 'holds' })]
    expect(p.threads).toHaveLength(2)
    await until(() => Atomics.load(a, 0) === 1 && Atomics.load(b, 0) === 1)
    release(a)
    release(b)
    await Promise.all(both)
    await until(() => p.threads.length === 1)
    expect(await p.run(1)).toBe(2)
  })

  test.each([FixedQueue, ArrayTaskQueue])('%o can be the queue of a pool', async Queue => {
    const p = pool({ taskQueue: new Queue() })
    expect(await Promise.all([1, 2, 3, 4].map(n => p.run(n)))).toEqual([2, 4, 6, 8])
  })

  test('a load balancer chooses the worker of a task, or none yet', async () => {
    const asked: string[] = []
    const p = pool({
      loadBalancer: (task, workers) => {
        asked.push(task.name)
        return workers.find(({ currentUsage }) => currentUsage === 0) ?? null
      },
    })
    expect(await Promise.all([p.run(1), p.run(2)])).toEqual([2, 4])
    expect(asked.length).toBeGreaterThan(2)
  })

  test('drain and needsDrain follow the use of the workers', async () => {
    const p = pool()
    const drained = once(p, 'drain')
    const needed = once(p, 'needsDrain')
    await p.run(1)
    await needed
    await drained
    expect(p.needsDrain).toBe(false)
  })
})

describe('endings:', () => {
  test('an abort rejects immediately, and ends a worker that cannot be interrupted; the pool continues', async () => {
    const p = pool()
    const held = words()
    const signal = new EventEmitter()
    const task = p.run(held, { name: 'holds', signal })
    await until(() => Atomics.load(held, 0) === 1)
    const gone = once(p, 'workerDestroy')
    signal.emit('abort')
    await expect(task).rejects.toMatchObject({ name: 'AbortError', message: 'The task has been aborted' })
    await gone
    expect(await p.run(4)).toBe(8)
  })

  test('a worker that exits, or throws, rejects its task and is replaced', async () => {
    const p = pool()
    const thread = await p.run(null, { name: 'thread' })
    await expect(p.run(3, { name: 'exits' })).rejects.toThrow('worker exited with code: 3')
    await expect(p.run(null, { name: 'throwsLater' })).rejects.toThrow('thrown later')
    expect(await p.run(null, { name: 'thread' })).not.toBe(thread)
  })

  test('close waits for the tasks; destroy does not', async () => {
    const p = pool()
    const last = p.run({ ms: 5, value: 'done' }, { name: 'later' })
    const closed = p.close()
    await expect(p.run(1)).rejects.toMatchObject({ cause: 'queue is being terminated' })
    await closed
    expect(await last).toBe('done')
    const q = pool()
    const held = q.run(words(), { name: 'holds' })
    const [ended] = await Promise.allSettled([held, q.destroy()])
    expect(ended).toMatchObject({ reason: { message: 'Terminating worker thread' } })
    expect(q.threads).toHaveLength(0)
  })

  test.each<[object, RegExp]>([
    [{ filename: 12 }, /options.filename must be a string or null/],
    [{ minThreads: -1 }, /options.minThreads must be a non-negative integer/],
    [{ minThreads: 3, maxThreads: 2 }, /must not conflict/],
    [{ maxQueue: -1 }, /options.maxQueue/],
    [{ taskQueue: {} }, /options.taskQueue must be a TaskQueue object/],
    [{ compile: 5 }, /compile: 5 is not a list/],
  ])('%j is refused', (options, message) => {
    expect(() => pool(options as PoolOptions)).toThrow(message)
  })
})

describe('with compile, tasks are preempted:', () => {
  test('short tasks run on a single worker beside a task that never ends', async () => {
    const p = pool({ compile: [filename] })
    const spinning = words()
    const controller = new AbortController()
    const endless = p.run(spinning, { name: 'spins', signal: controller.signal })
    await until(() => Atomics.load(spinning, 0) === 1)
    expect(await Promise.all([1, 2, 3].map(n => p.run(n)))).toEqual([2, 4, 6])
    const thread = await p.run(null, { name: 'thread' })
    controller.abort('enough')
    await expect(endless).rejects.toMatchObject({ name: 'AbortError', cause: 'enough' })
    // The abort was thrown into its loop: the worker is the same.
    expect(await p.run(null, { name: 'thread' })).toBe(thread)
  })

  test('a task of high priority runs before others', async () => {
    const p = pool({ compile: [filename] })
    const spinning = words()
    const controller = new AbortController()
    const endless = [1, 2, 3].map(() => p.run(spinning, { name: 'spins', signal: controller.signal }))
    await until(() => Atomics.load(spinning, 0) === 1)
    expect(await p.run(5, { priority: 'high' })).toBe(10)
    await expect(p.run(5, { priority: 'best' as never })).rejects.toThrow(
      /priority: 'best' is not a priority/,
    )
    controller.abort()
    await Promise.allSettled(endless)
  })
})
