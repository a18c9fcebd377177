import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import workerpool, {
  Promise as PoolPromise,
  type Task,
  TerminateError,
  type WorkerArg,
  type WorkerPoolOptions,
} from './index.ts'
import type { Pool } from './pool.ts'

const script = fixture('work.cjs')

function fixture(name: string): string {
  return fileURLToPath(new URL(`../../testing/workerpool/fixtures/${name}`, import.meta.url))
}

function pool(options: WorkerPoolOptions = {}, file: string | null = script): Pool {
  const all = { maxWorkers: 1, ...options }
  const made = file === null ? workerpool.pool(all) : workerpool.pool(file, all)
  onTestFinished(async () => void (await made.terminate(true)))
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

const hasBegun = (task: Int32Array) => (): boolean => Atomics.load(task, 0) === 1

describe('tasks:', () => {
  const shared = workerpool.pool(script, { maxWorkers: 1 })
  afterAll(async () => void (await shared.terminate()))

  test('a function, sync or async, runs in a worker, with its arguments', async () => {
    const p = pool({}, null)
    expect(await p.exec((a: number, b: number) => a + b, [3, 4])).toBe(7)
    expect(await p.exec(async () => process.getBuiltinModule('node:worker_threads').isMainThread)).toBe(false)
    await expect(p.exec('nothing')).rejects.toThrow('Unknown method "nothing"')
  })

  test('methods of a script, by name and by proxy; the proxy also has the methods of every worker', async () => {
    const p = shared
    expect(await p.exec('add', [1, 2])).toBe(3)
    const proxy = await p.proxy<{ add(a: number, b: number): number }>()
    expect(await proxy.add(5, 6)).toBe(11)
    expect(Object.keys(proxy)).toEqual(expect.arrayContaining(['run', 'methods', 'add', 'emits']))
  })

  test('an error of a method arrives with message, stack and properties', async () => {
    const failure = await shared.exec('fails', ['no such row']).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(Error)
    expect(failure).toMatchObject({ message: 'no such row', row: 7, details: { table: 'cats' } })
    expect((failure as Error).stack).toContain('work.cjs')
  })

  test('a worker takes tasks when its script has registered its methods; a script that fails says why', async () => {
    expect(await pool({}, fixture('late.cjs')).exec('late')).toBe('registered')
    const failure = await pool({}, fixture('broken.cjs'))
      .exec('late')
      .catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(TerminateError)
    expect((failure as Error).message).toBe('Workerpool Worker error: no such table')
  })

  test('every event arrives, in order, before the task settles', async () => {
    const heard: unknown[] = []
    await shared.exec('add', [1, 2])
    const emitted = words()
    const task = shared.exec('emits', [50, emitted], { on: payload => heard.push(payload) })
    // The events and the result have arrived when this thread reads either.
    Atomics.wait(emitted, 0, 0)
    Atomics.wait(emitted, 1, 0, 20)
    expect(await task).toBe(0)
    expect(heard.slice(0, -1)).toEqual(Array.from({ length: 50 }, (_, n) => ({ n })))
    expect(heard.at(-1)).toEqual(new Uint8Array(4))
  })

  test('the output of a task is an event if the pool asks for it', async () => {
    const heard: unknown[] = []
    await pool({ emitStdStreams: true }).exec('prints', [], { on: payload => heard.push(payload) })
    expect(heard).toEqual([{ stdout: 'to stdout\n' }, { stderr: 'to stderr\n' }])
  })

  test('buffers are moved to a worker and from it', async () => {
    const p = shared
    const bytes = new Uint8Array(8)
    expect(await p.exec('size', [bytes], { transfer: [bytes.buffer] })).toBe(8)
    expect(bytes.byteLength).toBe(0)
    expect(await p.exec('gives', [3])).toEqual(new Uint8Array([3, 3, 3]))
  })

  test('arguments that cannot travel reject the task, and leave the worker free', async () => {
    const p = shared
    await expect(p.exec('size', [() => undefined])).rejects.toThrow()
    expect(await p.exec('add', [1, 1])).toBe(2)
    expect(p.stats()).toMatchObject({ busyWorkers: 0, pendingTasks: 0 })
  })
})

describe('queues and workers:', () => {
  test('one task for each worker runs, the others wait, and beyond the limit exec throws', async () => {
    const p = pool({ maxWorkers: 1, maxQueueSize: 1 })
    const held = words()
    const first = p.exec('holds', [held])
    const second = p.exec('add', [1, 2])
    expect(p.stats()).toEqual({
      totalWorkers: 1,
      busyWorkers: 1,
      idleWorkers: 0,
      pendingTasks: 1,
      activeTasks: 1,
    })
    expect(() => p.exec('add', [1, 2])).toThrow('Max queue size of 1 reached')
    release(held)
    await first
    expect(await second).toBe(3)
  })

  test.each([
    ['fifo' as const, [1, 2, 3, 4]],
    ['lifo' as const, [1, 4, 3, 2]],
  ])('%s decides which of the waiting tasks goes next', async (queueStrategy, order) => {
    const p = pool({ queueStrategy })
    const ended: number[] = []
    await Promise.all([1, 2, 3, 4].map(n => p.exec('add', [n, 0]).then(sum => ended.push(sum))))
    expect(ended).toEqual(order)
  })

  test('a queue of the program sees the metadata of its tasks', async () => {
    const tasks: Task[] = []
    const p = pool({
      queueStrategy: {
        push: task => void tasks.push(task),
        pop: () => {
          tasks.sort((a, b) => a.options?.metadata - b.options?.metadata)
          return tasks.shift()
        },
        size: () => tasks.length,
        contains: task => tasks.includes(task),
        clear: () => void tasks.splice(0),
      },
    })
    const ended: number[] = []
    await Promise.all([3, 2, 1].map(n => p.exec('add', [n, 0], { metadata: n }).then(sum => ended.push(sum))))
    expect(ended).toEqual([3, 1, 2])
  })

  test('each worker has its own options where onCreateWorker gives them; onTerminateWorker gets them back', async () => {
    const ended: unknown[] = []
    let made = 0
    const p = pool({
      minWorkers: 2,
      maxWorkers: 2,
      onCreateWorker: arg => ({
        ...arg,
        workerThreadOpts: { env: { ONLY: `worker ${made++}` }, argv: ['x'], workerData: { a: 1 } },
      }),
      onTerminateWorker: arg => ended.push(arg.workerThreadOpts?.env),
    })
    expect(p.workers).toHaveLength(2)
    const given = await Promise.all([p.exec('given'), p.exec('given')])
    expect(given.map(({ only }) => only).toSorted()).toEqual(['worker 0', 'worker 1'])
    expect(given[0]).toMatchObject({ data: { a: 1 }, argv: ['x'] })
    await p.terminate()
    expect(ended).toHaveLength(2)
    expect(ended).toEqual(expect.arrayContaining([{ ONLY: 'worker 0' }, { ONLY: 'worker 1' }]))
  })
})

describe('endings:', () => {
  test('cancel rejects immediately; a worker that cannot be interrupted is replaced, and other workers continue', async () => {
    const p = pool({ maxWorkers: 2, minWorkers: 2, workerTerminateTimeout: 20 })
    const [stuck, other] = [words(), words()]
    const endless = p.exec('spins', [stuck])
    const neighbour = p.exec('holds', [other])
    await until(() => hasBegun(stuck)() && hasBegun(other)())
    const [thread] = p.workers.map(({ worker }) => worker.threadId)
    endless.cancel()
    expect(endless.rejected).toBe(true)
    await expect(endless).rejects.toBeInstanceOf(PoolPromise.CancellationError)
    await until(() => !p.workers.some(({ worker }) => worker.threadId === thread))
    release(other)
    await neighbour
    expect(p.stats().totalWorkers).toBe(2)
    expect(await p.exec('add', [1, 2])).toBe(3)
  })

  test('a waiting task can be cancelled; the next one runs', async () => {
    const p = pool()
    const held = words()
    const first = p.exec('holds', [held])
    const second = p.exec('add', [1, 1]).cancel()
    const third = p.exec('add', [2, 2])
    release(held)
    await first
    await expect(second).rejects.toThrow('promise cancelled')
    expect(await third).toBe(4)
  })

  test('a timeout begins with the task', async () => {
    const p = pool({ workerTerminateTimeout: 20 })
    const held = words()
    const first = p.exec('holds', [held])
    const second = p.exec('spins', [words()]).timeout(5)
    await until(hasBegun(held))
    await new Promise(resolve => setTimeout(resolve, 20))
    expect(second.pending).toBe(true)
    release(held)
    await first
    await expect(second).rejects.toBeInstanceOf(PoolPromise.TimeoutError)
  })

  test('the worker stays if the abort listeners succeed, and ends if one fails', async () => {
    const p = pool()
    const thread = await p.exec('thread')
    for (const isClean of [true, false]) {
      const begun = words()
      const heard: unknown[] = []
      const task = p.exec('listens', [begun, isClean], { on: payload => heard.push(payload) })
      await until(hasBegun(begun))
      task.cancel()
      const next = await p.exec('thread')
      expect(heard).toEqual(['aborted'])
      expect(next === thread).toBe(isClean)
    }
  })

  test('a worker that exits rejects its task and is replaced', async () => {
    const gone: WorkerArg[] = []
    const p = pool({ minWorkers: 1, onTerminateWorker: arg => gone.push(arg) })
    const failure = await p.exec('exits', [3]).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(TerminateError)
    expect((failure as Error).message).toMatch(/terminated Unexpectedly\s+exitCode: `3`/)
    expect(gone).toMatchObject([{ script }])
    expect(await p.exec('add', [1, 2])).toBe(3)
    const last = p.exec('exits', [4])
    await p.terminate()
    await expect(last).rejects.toBeInstanceOf(TerminateError)
    expect(gone).toHaveLength(2)
    expect(p.stats().totalWorkers).toBe(0)
  })

  test('terminate waits for tasks and for onTerminate; with force it does not wait; then the pool can be used again', async () => {
    const p = pool()
    const kept = words()
    await p.exec('keeps', [kept])
    const held = words()
    const last = p.exec('holds', [held])
    const waiting = p.exec('add', [1, 1])
    const ended = p.terminate()
    await expect(waiting).rejects.toThrow('Pool terminated')
    await until(hasBegun(held))
    expect(last.pending).toBe(true)
    release(held)
    await ended
    expect(last.resolved).toBe(true)
    expect(Atomics.load(kept, 2)).toBe(1)
    expect(p.stats().totalWorkers).toBe(0)
    const q = pool({ workerTerminateTimeout: 1 })
    const long = words()
    const awaited = q.exec('holds', [long])
    await until(hasBegun(long))
    const over = q.terminate()
    // Longer than a worker may take to clean up, which does not limit its task.
    await new Promise(resolve => setTimeout(resolve, 20))
    release(long)
    await awaited
    await over
    const endless = q.exec('spins', [words()])
    await q.terminate(true)
    await expect(endless).rejects.toThrow('Worker terminated')
    expect(await q.exec('add', [2, 2])).toBe(4)
  })

  test('terminate with a timeout rejects after that time', async () => {
    const p = pool()
    const held = words()
    const task = p.exec('holds', [held])
    await until(hasBegun(held))
    await expect(p.terminate(false, 5)).rejects.toBeInstanceOf(PoolPromise.TimeoutError)
    release(held)
    await task
  })
})

describe('with compile, tasks are preempted:', () => {
  test('short tasks run on a single worker beside a task that never ends; cancelling that one leaves the worker and the other tasks alone', async () => {
    const p = pool({ compile: [script] })
    const [first, second] = [words(), words()]
    const endless = p.exec('spins', [first])
    const neighbour = p.exec('spins', [second])
    await until(() => hasBegun(first)() && hasBegun(second)())
    const thread = await p.exec('thread')
    expect(await p.exec('add', [1, 2])).toBe(3)
    expect(p.stats()).toMatchObject({ totalWorkers: 1, busyWorkers: 1, activeTasks: 2 })
    endless.cancel()
    await expect(endless).rejects.toBeInstanceOf(PoolPromise.CancellationError)
    await until(() => p.stats().activeTasks === 1)
    release(second)
    await neighbour
    expect(await p.exec('thread', [], { priority: 'high' })).toBe(thread)
  })
})

describe('impossible options are refused:', () => {
  test.each<[object, RegExp]>([
    [{ maxWorkers: 0 }, /Option maxWorkers must be an integer number >= 1/],
    [{ minWorkers: 1.5 }, /Option minWorkers must be an integer number >= 0/],
    [{ workerType: 'process' }, /workerType: "process" is not possible: .* give 'thread' or 'auto'/],
    [{ workerType: 'web' }, /workerType: "web" is not possible: .* is for Node/],
    [{ queueStrategy: 'random' }, /Unknown queue strategy: random/],
    [{ queueStrategy: { push: () => undefined } }, /Queue strategy must implement method: pop/],
    [{ compile: 5 }, /compile: 5 is not a list/],
  ])('%j', (options, message) => {
    expect(() => pool(options as WorkerPoolOptions)).toThrow(message)
  })

  test.each<[object, RegExp]>([
    [{ foo: 1 }, /Object "workerThreadOpts" contains an unknown option "foo"/],
    [{ eval: true }, /workerThreadOpts.eval is not possible/],
    [{ stdout: true }, /workerThreadOpts.stdout is not possible: .* use emitStdStreams/],
  ])('%j of a thread, when a worker is needed', (workerThreadOpts, message) => {
    const p = pool({ workerThreadOpts })
    expect(() => p.exec('add', [1, 2])).toThrow(message)
    expect(p.stats()).toMatchObject({ totalWorkers: 0, pendingTasks: 0 })
  })

  test('a worker outside of a pool, and arguments of the wrong type', () => {
    expect(() => workerpool.worker({})).toThrow(/this thread is no worker of a pool/)
    expect(() => workerpool.workerEmit(1)).toThrow(/this thread is no worker of a pool/)
    expect(() => pool().exec(23 as never)).toThrow('Function or string expected as argument "method"')
    expect(() => pool().exec('add', 'a' as never)).toThrow('Array expected as argument "params"')
    expect(() => pool().proxy(1 as never)).toThrow('No arguments expected')
  })
})

test('where the code runs', () => {
  expect(workerpool.platform).toBe('node')
  expect(workerpool.cpus).toBeGreaterThan(0)
  // vitest runs tests in workers or in child processes.
  expect(workerpool.isMainThread).toBe(false)
})

describe('its promises:', () => {
  test('callbacks are called synchronously when it settles', () => {
    const { promise, resolve } = PoolPromise.defer<number>()
    const heard: number[] = []
    promise.then(n => heard.push(n)).always(() => heard.push(-1))
    resolve(1)
    expect(heard).toEqual([1, -1])
  })

  test('cancel and timeout apply to the first promise of the chain', async () => {
    const { promise } = PoolPromise.defer()
    const last = promise.then(() => 1).finally(() => undefined)
    last.cancel()
    expect(promise.rejected).toBe(true)
    await expect(last).rejects.toBeInstanceOf(PoolPromise.CancellationError)
    const late = PoolPromise.defer()
    await expect(late.promise.then(() => 1).timeout(1)).rejects.toThrow('Promise timed out after 1 ms')
  })
})
