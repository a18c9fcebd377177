import { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CMP_EQ, OP_ADD } from '../futex/index.ts'
import { futex, type FutexView, Kernel } from '../index.ts'
import type * as Tasks from './fixtures/futextasks.ts'

let kernel: Kernel
let tasks: Awaited<ReturnType<typeof load>>

function load(): Promise<Awaited<ReturnType<typeof Kernel.prototype.import<typeof Tasks>>>> {
  return kernel.import<typeof Tasks>(new URL('./fixtures/futextasks.ts', import.meta.url))
}

beforeAll(async () => {
  kernel = await Kernel.boot({ cpus: 2 })
  tasks = await load()
})

afterAll(async () => {
  await kernel.close({ abort: true })
})

const words = (count = 4): Int32Array<SharedArrayBuffer> => new Int32Array(new SharedArrayBuffer(count * 4))

/** Wakes as soon as so many wait. */
async function wakeAll(view: FutexView, index: number, count: number, options = {}): Promise<number> {
  let woken = 0
  while (woken < count) {
    woken += futex.wake(view, index, Infinity, options)
    if (woken < count) await new Promise(resolve => setTimeout(resolve, 1))
  }
  return woken
}

describe('futexes on shared memory, with nothing set up:', () => {
  test('tasks of two CPUs, compiled and not, and promises wait at one word', async () => {
    const view = words()
    const waiting = [
      kernel.spawn(tasks.waitsInTask, [view, 2, 0], { affinity: [0] }),
      kernel.spawn(tasks.waitsPlainly, [view, 2, 0], { affinity: [1] }),
      futex.waitAsync(view, 2, 0),
    ]
    expect(await wakeAll(view, 2, 3)).toBe(3)
    expect(await Promise.all(waiting)).toEqual(['ok', 'ok', 'ok'])
    expect(futex.wake(view, 2)).toBe(0)
  })

  test('a thread blocks, and a task wakes it', async () => {
    const view = words()
    const waker = kernel.spawn(tasks.wakes, [view, 1, 1])
    expect(futex.waitSync(view, 1, 0)).toBe('ok')
    expect(await waker).toBe(1)
  })

  test('a word that has another value is not waited at, and a time limit ends the wait', async () => {
    const view = words()
    view[0] = 7
    expect(futex.waitSync(view, 0, 0)).toBe('not-equal')
    expect(await futex.waitAsync(view, 0, 0)).toBe('not-equal')
    expect(await kernel.spawn(tasks.waitsInTask, [view, 0, 0])).toBe('not-equal')
    expect(futex.waitSync(view, 0, 7, { timeout: 2 })).toBe('timed-out')
    expect(await futex.waitAsync(view, 0, 7, { until: Date.now() + 2 })).toBe('timed-out')
    expect(await kernel.spawn(tasks.waitsInTask, [view, 0, 7, { timeout: 2 }])).toBe('timed-out')
    await expect(futex.waitAsync(view, 0, 7, { signal: AbortSignal.abort('no') })).rejects.toBe('no')
    const abort = new AbortController()
    const waiting = futex.waitAsync(view, 0, 7, { signal: abort.signal })
    abort.abort('enough')
    await expect(waiting).rejects.toBe('enough')
    expect(futex.wake(view, 0)).toBe(0)
  })

  test.each([
    ['8 bits', () => new Uint8Array(new SharedArrayBuffer(8), 1), 200],
    ['8 bits, signed', () => new Int8Array(new SharedArrayBuffer(8), 1), -5],
    ['16 bits', () => new Int16Array(new SharedArrayBuffer(8), 2), -300],
    ['32 bits', () => new Uint32Array(new SharedArrayBuffer(8), 4), 0x8000_0001],
    ['64 bits', () => new BigInt64Array(new SharedArrayBuffer(32), 8), -(2n ** 40n)],
    ['64 bits, unsigned', () => new BigUint64Array(new SharedArrayBuffer(32), 8), 2n ** 63n],
  ] as [string, () => FutexView, number | bigint][])('words of %s', async (_, make, value) => {
    const view = make()
    view[0] = value as never
    const other = (typeof value === 'bigint' ? 1n : 1) as number
    expect(await futex.waitAsync(view, 0, other)).toBe('not-equal')
    const waiting = [
      futex.waitAsync(view, 0, value),
      kernel.spawn(tasks.waitsInTask, [view as Int32Array, 0, value]),
    ]
    expect(await wakeAll(view, 0, 2)).toBe(2)
    expect(await Promise.all(waiting)).toEqual(['ok', 'ok'])
  })

  test('bitsets choose who is woken', async () => {
    const view = words()
    const [odd, even] = [1, 2].map(bitset => futex.waitAsync(view, 0, 0, { bitset, timeout: 60_000 }))
    expect(futex.wake(view, 0, Infinity, { bitset: 2 })).toBe(1)
    expect(await even).toBe('ok')
    expect(futex.wake(view, 0, Infinity, { bitset: 4 })).toBe(0)
    expect(futex.wake(view, 0)).toBe(1)
    expect(await odd).toBe('ok')
  })

  test('waiters are moved from one word to another, and to one of another buffer', async () => {
    const [from, to] = [words(), words()]
    const waiting = [1, 2, 3].map(() => futex.waitAsync(from, 0, 0))
    expect(futex.cmpRequeue(from, 0, to, 3, 9)).toBe('not-equal')
    expect(futex.cmpRequeue(from, 0, to, 3, 0, { wake: 1, move: 1 })).toBe(2)
    expect(futex.wake(to, 3, 5)).toBe(1)
    expect(futex.requeue(from, 0, from, 1, { wake: 0 })).toBe(1)
    expect(futex.wake(from, 1)).toBe(1)
    expect(await Promise.all(waiting)).toEqual(['ok', 'ok', 'ok'])
  })

  test('wakeOp changes one word and wakes at both', async () => {
    const view = words()
    view[1] = 3
    const waiting = [futex.waitAsync(view, 0, 0), futex.waitAsync(view, 1, 3)]
    const change = { op: OP_ADD, oparg: 5, cmp: CMP_EQ, cmparg: 3 }
    expect(futex.wakeOp(view, 0, view, 1, change)).toBe(2)
    expect(view[1]).toBe(8)
    expect(await Promise.all(waiting)).toEqual(['ok', 'ok'])
  })

  test('waitv gives the word that was woken', async () => {
    const [one, two] = [words(), new BigInt64Array(new SharedArrayBuffer(16))]
    const entries = [
      { view: one, index: 1, value: 0 },
      { view: two, index: 1, value: 0n },
    ]
    const task = kernel.spawn(tasks.waitsAtSeveral, [entries])
    const promise = futex.waitvAsync(entries)
    expect(await wakeAll(two, 1, 2)).toBe(2)
    expect([await task, await promise]).toEqual([1, 1])
    expect(futex.waitvSync([entries[0], { view: one, index: 0, value: 3 }])).toBe('not-equal')
    expect(futex.waitvSync(entries, { timeout: 1 })).toBe('timed-out')
    expect(futex.wake(one, 1)).toBe(0)
  })

  test('a word is a lock that tasks, this thread and async code take in turn', async () => {
    const view = words()
    const running = [
      kernel.spawn(tasks.addsUnderPi, [view, 100], { affinity: [0] }),
      kernel.spawn(tasks.addsUnderPi, [view, 100], { affinity: [1] }),
      kernel.spawn(tasks.addsPlainly, [view, 100]),
    ]
    for (let time = 0; time < 50; time++) {
      const owner = await futex.lockPiAsync(view, 0)
      const seen = view[1]
      await Promise.resolve()
      view[1] = seen + 1
      futex.unlockPi(view, 0, owner!)
      futex.lockPiSync(view, 0)
      view[1]++
      futex.unlockPi(view, 0)
    }
    await Promise.all(running)
    expect([view[0], view[1]]).toEqual([0, 400])
    expect(futex.tryLockPi(view, 0)).toBe(true)
    expect(await futex.lockPiAsync(view, 0, { timeout: 1 })).toBeNull()
    expect(() => futex.lockPiSync(view, 0)).toThrow(/EDEADLK/)
    futex.unlockPi(view, 0)
    expect(() => futex.unlockPi(view, 0)).toThrow(/EPERM/)
  })

  test('what is wrong is said with the codes of Linux', () => {
    const view = words()
    const code = (call: () => unknown): unknown => {
      try {
        return call()
      } catch (error) {
        return (error as { code?: string }).code
      }
    }
    expect(code(() => futex.wake(new Int32Array(4), 0))).toBe('EFAULT')
    expect(code(() => futex.wake(view, 4))).toBe('EFAULT')
    expect(code(() => futex.wake(view, 0.5))).toBe('EFAULT')
    expect(code(() => futex.wake(view, 0, -1))).toBe('EINVAL')
    expect(code(() => futex.waitSync(view, 0, 0, { bitset: 0 }))).toBe('EINVAL')
    expect(code(() => futex.waitSync(view, 0, 0, { timeout: Number.NaN }))).toBe('EINVAL')
    expect(code(() => futex.waitSync(view, 0, 0n))).toBe('EINVAL')
    expect(code(() => futex.waitvSync([]))).toBe('EINVAL')
    expect(code(() => futex.lockPiSync(new Int16Array(new SharedArrayBuffer(4)) as never, 0))).toBe('EINVAL')
    expect(code(() => futex.unlockPi(view, 0))).toBe('EPERM')
  })
})

test('threads without a kernel meet by the id of the buffer', async () => {
  const program = `
    const { parentPort, workerData, Worker, isMainThread } = require('node:worker_threads')
    import(workerData.index).then(async ({ futex }) => {
      const { view, id } = workerData
      if (id === undefined) {
        const own = new Int32Array(new SharedArrayBuffer(8))
        const other = new Worker(workerData.program, { eval: true, workerData: { ...workerData, view: own, id: futex.idOf(own.buffer) } })
        const ended = new Promise(resolve => other.once('message', resolve))
        const slept = futex.waitSync(own, 1, 0)
        parentPort.postMessage([slept, await ended])
      } else {
        futex.join(view.buffer, id)
        while (futex.wake(view, 1) === 0) await new Promise(resolve => setTimeout(resolve, 1))
        parentPort.postMessage('woke')
      }
    })`
  const index = new URL('../index.ts', import.meta.url).href
  const worker = new Worker(program, { eval: true, workerData: { program, index } })
  expect(await new Promise(resolve => worker.once('message', resolve))).toEqual(['ok', 'woke'])
  await worker.terminate()
})
