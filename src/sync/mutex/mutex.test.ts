import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { describe, expect, test, vi } from 'vitest'
import { Schedule } from '../../coroutine/index.ts'
import { sleep } from '../../coroutine/core/blocking.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import { wakeOrphans } from '../../futex/recovery/recover.ts'
import { ID } from '../wait/objectwords.ts'
import { AtomicBigInt64, Channel, Mutex, RwLock, Semaphore, SharedQueue, UnlockToken } from '../index.ts'
import { Atomics as Structs } from '../small/structs.ts'

test('a lock without contention does not use the futexes', () => {
  const mutex = new Mutex()
  const semaphore = new Semaphore(2)
  const lock = new RwLock()
  for (let i = 0; i < 10; i++) {
    mutex.lockSync().unlock()
    semaphore.acquireSync().release()
    lock.lockReadSync().unlock()
    lock.lockWriteSync().unlock()
  }
  for (const { i32, at } of [mutex, semaphore, lock]) expect(i32[at + ID]).toBe(0)
})

test('locking and unlocking allocate nothing, on a thread and in a task', () => {
  const fixture = new URL('../../../testing/sync/fixtures/allocation.ts', import.meta.url)
  const printed = execFileSync(process.execPath, [fileURLToPath(fixture)], { encoding: 'utf8' })
  const bytes = Object.entries(JSON.parse(printed) as Record<string, number>)
  expect(bytes).toHaveLength(8)
  // The smallest object has 16.
  expect(bytes.filter(([, each]) => each > 4)).toEqual([])
})

describe('a token', () => {
  test('it is locked until it is unlocked, and `using` unlocks', () => {
    const mutex = new Mutex()
    {
      using token = mutex.lockSync()
      expect([token.locked, mutex.locked]).toEqual([true, true])
    }
    expect(mutex.locked).toBe(false)
    const token = mutex.lockSync()
    expect([token.unlock(), token.locked]).toEqual([true, false])
    expect(() => token.unlock()).toThrow(/is not locked/)
  })

  test('a token of async code is its own: another flow of the same thread waits', async () => {
    const mutex = new Mutex()
    const first = await mutex.lockAsync()
    expect(mutex.tryLock()).toBeNull()
    expect(await mutex.lockIfAvailableAsync(1)).toBeNull()
    const second = mutex.lockAsync()
    first.unlock()
    expect((await second).locked).toBe(true)
    expect(first.locked).toBe(false)
    ;(await second).unlock()
  })
})

test('waits time out and are aborted, and the waiters behind them still get the lock', async () => {
  const mutex = new Mutex()
  const token = await mutex.lockAsync()
  const stopping = new AbortController()
  const late = mutex.lockAsync({ timeout: 5 })
  const aborted = mutex.lockAsync({ signal: stopping.signal })
  const patient = mutex.lockAsync()
  await expect(late).rejects.toMatchObject({ name: 'TimeoutError' })
  stopping.abort(new Error('enough'))
  await expect(aborted).rejects.toThrow('enough')
  token.unlock()
  ;(await patient).unlock()
  expect(mutex.locked).toBe(false)
  await expect(mutex.lockAsync({ signal: AbortSignal.abort(new Error('before')) })).rejects.toThrow('before')
})

test('a recursive mutex is unlocked as often as it was locked; each coroutine is an owner of its own', async () => {
  const mutex = new Mutex({ type: 'recursive' })
  const schedule = new Schedule()
  const order: string[] = []
  function* twice(name: string): Generator<number, void, unknown> {
    using _outer = yield* mutex.lock()
    using _inner = yield* mutex.lock()
    order.push(`${name} in`)
    yield* sleep(1)
    order.push(`${name} out`)
  }
  await Promise.all([schedule.run(twice, 'a'), schedule.run(twice, 'b')])
  schedule.exit()
  expect(order).toEqual(['a in', 'a out', 'b in', 'b out'])
  expect(mutex.locked).toBe(false)
})

test('a coroutine that checks again because a thread has died waits on, and gets the lock', async () => {
  const mutex = new Mutex()
  const schedule = new Schedule()
  const token = mutex.lockSync()
  const waiting = schedule.run(function* (): Generator<number, boolean, unknown> {
    using got = yield* mutex.lock()
    return got.locked
  })
  await expect.poll(() => mutex.i32[mutex.at] < 0).toBe(true)
  wakeOrphans(currentFutexes().context)
  await new Promise(resolve => setTimeout(resolve, 1))
  token.unlock()
  expect(await waiting).toBe(true)
  schedule.exit()
})

test('a robust mutex whose holder died after two locks goes to the next owner, which unlocks it once', async () => {
  const mutex = new Mutex({ robust: true, type: 'recursive' })
  const worker = new Worker(new URL('../../../testing/sync/fixtures/lockstwice.ts', import.meta.url), {
    workerData: mutex.handle,
  })
  await new Promise(resolve => worker.on('exit', resolve))
  mutex.lockSync()
  expect(mutex.ownerDied).toBe(true)
  mutex.makeConsistent()
  mutex.unlock()
  expect(mutex.locked).toBe(false)
})

test('async code gets a robust mutex whose holder died, and makes it consistent', async () => {
  const mutex = new Mutex({ robust: true, type: 'recursive' })
  const worker = new Worker(new URL('../../../testing/sync/fixtures/lockstwice.ts', import.meta.url), {
    workerData: mutex.handle,
  })
  await new Promise(resolve => worker.on('exit', resolve))
  const token = await mutex.lockAsync()
  expect(mutex.ownerDied).toBe(true)
  mutex.makeConsistent()
  token.unlock()
  mutex.lockSync().unlock()
  expect(mutex.locked).toBe(false)
})

test('a lock that failed because the arena was full works when there is room', () => {
  const mutex = new Mutex({ robust: true })
  const map = vi.spyOn(currentFutexes().space, 'map').mockImplementationOnce(() => {
    throw new RangeError('mappings is full')
  })
  const find = vi.spyOn(currentFutexes().space, 'findBuffer').mockReturnValueOnce(undefined)
  expect(() => mutex.lockSync()).toThrow('mappings is full')
  map.mockRestore()
  find.mockRestore()
  mutex.lockSync().unlock()
  expect(mutex.locked).toBe(false)
})

test('an errorcheck mutex throws when its holder locks it again', () => {
  const mutex = new Mutex({ type: 'errorcheck', name: 'accounts' })
  using _ = mutex.lockSync()
  expect(() => mutex.lockSync()).toThrow(/'accounts'.*already/)
})

test('a mutex in memory of the caller: zeros are a free mutex, and two objects over the same words are one lock', async () => {
  const view = new Int32Array(new SharedArrayBuffer(64), 16)
  const one = new Mutex({ view, index: 4 })
  const other = new Mutex({ view, index: 4 })
  const token = one.lockSync()
  expect(other.tryLock()).toBeNull()
  const waiting = other.lockAsync()
  token.unlock()
  ;(await waiting).unlock()
  expect(() => new Mutex({ view, index: 9 })).toThrow(/needs 4 words/)
  expect(() => new Mutex({ buffer: new ArrayBuffer(64) as never })).toThrow(TypeError)
  const { buffer } = view
  expect(() => new Mutex({ view, buffer })).toThrow('give one of them')
  // An index in bytes would name another word, or a part of one.
  for (const wrong of [new Uint8Array(buffer, 1), new Float64Array(buffer), new DataView(buffer)])
    expect(() => new Mutex({ view: wrong as never })).toThrow('give an Int32Array')
})

test('objects in the part by which a buffer has grown', async () => {
  const Growable = SharedArrayBuffer as new (
    bytes: number,
    options: { maxByteLength: number },
  ) => SharedArrayBuffer & { grow(bytes: number): void }
  const buffer = new Growable(64, { maxByteLength: 4096 })
  const before = new Mutex({ buffer, robust: true })
  const old = await before.lockAsync()
  buffer.grow(4096)
  for (const options of [{}, { robust: true }]) {
    const mutex = new Mutex({ buffer, index: 100, ...options })
    const token = await mutex.lockAsync()
    const waiting = mutex.lockAsync()
    token.unlock()
    ;(await waiting).unlock()
  }
  const view = new Int32Array(buffer, 1024)
  const channel = new Channel<number>({ view, capacity: 2 })
  const received = channel.receiveAsync()
  await channel.sendAsync(5)
  expect(await received).toBe(5)
  const count = new AtomicBigInt64({ view, index: 500 })
  expect([count.add(3n), count.load()]).toEqual([0n, 3n])
  const other = new Mutex({ buffer, robust: true })
  expect(other.tryLock()).toBeNull()
  old.unlock()
  other.lockSync().unlock()
})

test('objects beyond 2 GiB of a buffer', async () => {
  const view = new Int32Array(new SharedArrayBuffer(2 ** 31 + 4096), 2 ** 31)
  for (const options of [{}, { robust: true }]) new Mutex({ view, ...options }).lockSync().unlock()
  const channel = new Channel<number>({ view, index: 100, capacity: 2 })
  await channel.sendAsync(5)
  expect(await channel.receiveAsync()).toBe(5)
  const queue = new SharedQueue({ view, index: 200, capacity: 2 })
  expect([queue.tryPush(7), queue.tryPop()]).toEqual([true, [7]])
  expect(new AtomicBigInt64({ view, index: 300 }).add(3n)).toBe(0n)
})

test.each([
  {},
  { protocol: 'inherit' },
  { robust: true },
  { protocol: 'inherit', robust: true },
  { protocol: 'handoff' },
] as const)('a waiter that gives up does not cost the others their places: %o', async options => {
  const mutex = new Mutex(options)
  const token = await mutex.lockAsync()
  const abort = new AbortController()
  const order: string[] = []
  const waits = ['first', 'aborted', 'last'].map(async name => {
    try {
      const got = await mutex.lockAsync(name === 'aborted' ? { signal: abort.signal } : {})
      order.push(name)
      got.unlock()
    } catch (error) {
      order.push(error as string)
    }
  })
  await new Promise(resolve => setImmediate(resolve))
  abort.abort('gave up')
  await waits[1]
  token.unlock()
  await Promise.all(waits)
  expect(order).toEqual(['gave up', 'first', 'last'])
  expect(mutex.locked).toBe(false)
})

test('a waiter that keeps losing the race for the lock is handed it', async () => {
  const mutex = new Mutex()
  const order: string[] = []
  let token = await mutex.lockAsync()
  const waiting = mutex.lockAsync().then(got => {
    order.push('served')
    got.unlock()
  })
  // Unlocked and locked again before the woken waiter can run: after a few losses it is handed the lock
  // instead.
  for (let turn = 0; turn < 50; turn++) {
    token.unlock()
    const barged = mutex.tryLock()
    if (barged === null) break
    order.push('barged')
    await new Promise(resolve => setTimeout(resolve, 1))
    barged.unlock()
    const again = await mutex.lockIfAvailableAsync(0)
    if (again === null) break
    token = again
    await new Promise(resolve => setTimeout(resolve, 1))
  }
  await waiting
  expect(order.at(-1)).toBe('served')
  expect(order.length).toBeLessThan(20)
})

describe("the structs proposal's static API", () => {
  test('lock fills the given token, or makes one', () => {
    const mutex = new Structs.Mutex()
    const token = UnlockToken.empty()
    expect(token.locked).toBe(false)
    expect(Structs.Mutex.lock(mutex, token)).toBe(token)
    expect(token.locked).toBe(true)
    expect(() => Structs.Mutex.lock(new Structs.Mutex(), token)).toThrow('holds a lock already')
    expect(() => Structs.Mutex.lock(mutex, {} as never)).toThrow('is not a token')
    expect(() => Structs.Mutex.lockIfAvailable({} as never, 1)).toThrow('is not a Mutex')
    expect(Structs.Mutex.lockIfAvailable(mutex, 1)).toBeNull()
    expect(token.unlock()).toBe(true)
    using made = Structs.Mutex.lockIfAvailable(mutex, 0)
    expect(made?.locked).toBe(true)
    expect(made).not.toBe(token)
  })

  test('a condition is waited at for a time, and notified', () => {
    const mutex = new Structs.Mutex()
    const condition = new Structs.Condition()
    using token = Structs.Mutex.lock(mutex)
    expect(Structs.Condition.waitFor(condition, token, 2)).toBe(false)
    expect(Structs.Condition.waitFor(condition, token, 2, () => true)).toBe(true)
    expect(Structs.Condition.notify(condition)).toBe(0)
    expect(token.locked).toBe(true)
  })
})
