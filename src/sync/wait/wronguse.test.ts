import { expect, test } from 'vitest'
import { Schedule } from '../../coroutine/index.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import {
  AtomicInt32,
  Barrier,
  Channel,
  Condition,
  Event,
  Latch,
  Mutex,
  Once,
  RwLock,
  selectAsync,
  selectSync,
  Semaphore,
  SharedQueue,
  SyncError,
  WaitGroup,
} from '../index.ts'

function codeOf(fn: () => unknown): unknown {
  try {
    fn()
  } catch (error) {
    return error instanceof SyncError ? error.code : error instanceof RangeError ? 'RangeError' : error
  }
  return 'nothing was thrown'
}

async function inCoroutine(fn: () => unknown): Promise<unknown> {
  const schedule = new Schedule()
  try {
    return await schedule.run(() => codeOf(fn))
  } finally {
    schedule.exit()
  }
}

test('unlocking a lock that is free, or that another owner holds', async () => {
  const mutex = new Mutex({ name: 'm' })
  expect(codeOf(() => mutex.unlock())).toBe('ERR_HEDDLE_NOT_HELD')
  const lock = new RwLock()
  expect(codeOf(() => lock.unlockRead())).toBe('ERR_HEDDLE_NOT_HELD')
  expect(codeOf(() => lock.unlockWrite())).toBe('ERR_HEDDLE_NOT_HELD')
  expect(codeOf(() => lock.downgrade())).toBe('ERR_HEDDLE_NOT_HELD')
  expect(codeOf(() => lock.upgradeSync())).toBe('ERR_HEDDLE_NOT_HELD')
  mutex.lockSync()
  lock.lockWriteSync()
  expect(await inCoroutine(() => mutex.unlock())).toBe('ERR_HEDDLE_NOT_HELD')
  expect(await inCoroutine(() => lock.unlockWrite())).toBe('ERR_HEDDLE_NOT_HELD')
  mutex.unlock()
  lock.unlockWrite()
})

test('upgrading a lock that another writes, while others wait for it', async () => {
  const lock = new RwLock()
  const writer = await lock.lockWriteAsync()
  const next = lock.lockWriteAsync()
  await expect(lock.upgradeAsync()).rejects.toMatchObject({ code: 'ERR_HEDDLE_NOT_HELD' })
  expect(writer.locked).toBe(true)
  writer.unlock()
  ;(await next).unlock()
  expect([lock.isWriting, lock.readers]).toEqual([false, 0])
})

test('releasing more permits than there can be, while others wait for some', async () => {
  const most = 0x3fff_ffff
  const semaphore = new Semaphore(1)
  const waiting = semaphore.acquireAsync(most)
  expect(codeOf(() => semaphore.release(most))).toBe('RangeError')
  semaphore.release(most - 1)
  expect((await waiting).count).toBe(most)
  expect(semaphore.available).toBe(0)
})

test('releasing the permits or the read of async code twice takes none from others', async () => {
  const semaphore = new Semaphore(2)
  const lock = new RwLock()
  using other = semaphore.acquireSync()
  const read = await lock.lockReadAsync()
  {
    using permits = await semaphore.acquireAsync()
    using mine = await lock.lockReadAsync()
    permits.release()
    mine.unlock()
    expect(codeOf(() => permits.release())).toBe('ERR_HEDDLE_NOT_HELD')
    expect(codeOf(() => mine.unlock())).toBe('ERR_HEDDLE_NOT_HELD')
  }
  expect([semaphore.available, lock.readers]).toEqual([1, 1])
  {
    using two = new Semaphore(2).acquireSync(2)
    two.release()
    expect(two.semaphore.available).toBe(2)
  }
  read.unlock()
  expect([other.count, lock.readers]).toEqual([1, 0])
})

test('waiting at a condition without the mutex, or with another mutex than its waiters', async () => {
  const [mutex, other] = [new Mutex(), new Mutex()]
  const condition = new Condition()
  expect(codeOf(() => condition.waitSync(mutex))).toBe('ERR_HEDDLE_NOT_HELD')
  const token = await mutex.lockAsync()
  const waiting = condition.waitAsync(token)
  const wrong = await other.lockAsync()
  await expect(condition.waitAsync(wrong)).rejects.toMatchObject({ code: 'ERR_HEDDLE_WRONG_MUTEX' })
  expect(wrong.locked).toBe(true)
  condition.notify()
  await waiting
  token.unlock()
  wrong.unlock()
})

test('the verb of a task where none runs', () => {
  const verbs = [
    () => new Mutex().lock(),
    () => new Semaphore(1).acquire(),
    () => new RwLock().lockRead(),
    () => new RwLock().lockWrite(),
    () => new Barrier(1).arrive(),
    () => new Latch(0).wait(),
    () => new Event().wait(),
    () => new Once().run(() => 1),
    () => new Channel().send(1),
    () => new Channel().receive(),
    () => new SharedQueue({ capacity: 1 }).push([1]),
  ]
  for (const verb of verbs) expect(codeOf(verb)).toBe('ERR_HEDDLE_WRONG_VERB')
})

test('a verb that blocks the thread, in a coroutine', async () => {
  const verbs = [
    () => new Mutex().lockSync(),
    () => new Semaphore(1).acquireSync(),
    () => new RwLock().lockReadSync(),
    () => new Barrier(1).arriveSync(),
    () => new Latch(0).waitSync(),
    () => new Event().waitSync(),
    () => new Once().runSync(() => 1),
    () => new Channel(1).sendSync(1),
    () => new SharedQueue({ capacity: 1 }).pushSync([1]),
    () => [...new Channel()],
  ]
  for (const verb of verbs) expect(await inCoroutine(verb)).toBe('ERR_HEDDLE_WRONG_VERB')
})

test('blocking on a thread that may not', () => {
  const futexes = currentFutexes()
  const mutex = new Mutex()
  mutex.lockSync()
  // As a page's main thread is.
  Object.assign(futexes, { mayBlock: false })
  try {
    expect(codeOf(() => mutex.lockSync())).toBe('ERR_HEDDLE_WRONG_VERB')
    expect(mutex.lockIfAvailableSync()).toBeNull()
    mutex.unlock()
    mutex.lockSync().unlock()
  } finally {
    Object.assign(futexes, { mayBlock: true })
  }
})

test('negative and broken counts', () => {
  expect(codeOf(() => new Semaphore(-1))).toBe('RangeError')
  expect(codeOf(() => new Semaphore(1).acquireSync(0))).toBe('RangeError')
  expect(codeOf(() => new Semaphore(1).release(-1))).toBe('RangeError')
  expect(codeOf(() => new Semaphore(1).release(0.5))).toBe('RangeError')
  expect(codeOf(() => new WaitGroup(1).done(2))).toBe('RangeError')
  expect(codeOf(() => new WaitGroup().add(-1))).toBe('RangeError')
  expect(codeOf(() => new Latch(-1))).toBe('RangeError')
  expect(codeOf(() => new Latch(1).countDown(2))).toBe('RangeError')
  expect(codeOf(() => new Barrier(0))).toBe('RangeError')
  expect(codeOf(() => new Channel(-1))).toBe('RangeError')
  expect(codeOf(() => new Condition().notify(-1))).toBe('RangeError')
  expect(codeOf(() => new AtomicInt32().notify(Number.NaN))).toBe('RangeError')
  expect(codeOf(() => new Mutex().lockSync({ timeout: -1 }))).toBe('RangeError')
})

test('wrong limits, cases and tokens: each error has the value, and the object is as before', async () => {
  const mutex = new Mutex()
  const channel = new Channel<number>()
  const signals = [5, null, {}, new EventTarget()]
  for (const signal of signals) {
    const wrong = { signal } as never
    const text = /^signal: .* is not an AbortSignal; give the signal of an AbortController$/
    expect(() => mutex.lockSync(wrong)).toThrow(text)
    await expect(mutex.lockAsync(wrong)).rejects.toThrow(text)
    await expect(channel.receiveAsync(wrong)).rejects.toThrow(text)
    await expect(selectAsync([{ receive: channel }, wrong])).rejects.toThrow(text)
  }
  expect(mutex.tryLock()?.unlock()).toBe(true)

  const cases: [unknown, string][] = [
    [null, 'select(cases): null is not a list'],
    [[null], 'select: case 0 has none of receive'],
    [[{ receive: channel }, 5], 'select: case 1 has none of receive'],
    [[{ receive: 5 }], 'select: case 0: 5 is not a Channel'],
    [[{ send: null, value: 1 }], 'select: case 0: null is not a Channel'],
    [[{ otherwise: false }], 'select: case 0: otherwise: false is not true'],
    [[{ timeout: '5' }], "select: timeout: '5' is not a time"],
    [[{ receive: channel, timeout: 5 }], 'select: case 0 has receive and timeout'],
    [[{ receive: channel, send: channel, value: 1 }], 'select: case 0 has receive and send'],
  ]
  for (const [wrong, text] of cases) {
    await expect(selectAsync(wrong as never)).rejects.toThrow(text)
    expect(() => selectSync(wrong as never)).toThrow(text)
  }
  expect(channel.trySend(1)).toBe(false)

  const queue = new SharedQueue({ capacity: 2, fields: 2 })
  queue.tryPush(1, 2)
  for (const into of [{ timeout: 5 }, new Float64Array(1), null] as never[]) {
    expect(() => queue.popSync(into)).toThrow('pop(into, options): into: got')
    await expect(queue.popAsync(into)).rejects.toThrow('pop(into, options): into: got')
  }
  expect(queue.popSync(new Float64Array(2))).toEqual(new Float64Array([1, 2]))

  for (const token of [{}, null, 5])
    await expect(new Condition().waitAsync(token as never)).rejects.toThrow(
      'the caller does not hold a mutex',
    )
})

test('a channel that is closed', async () => {
  for (const shared of [false, true]) {
    const channel = new Channel<number>(2)
    if (shared) channel.share()
    channel.trySend(1)
    channel.close()
    channel.close()
    expect(codeOf(() => channel.trySend(2))).toBe('ERR_HEDDLE_CLOSED')
    await expect(channel.sendAsync(2)).rejects.toMatchObject({ code: 'ERR_HEDDLE_CLOSED' })
    expect(await channel.receiveAsync()).toBe(1)
    await expect(channel.receiveAsync()).rejects.toMatchObject({ code: 'ERR_HEDDLE_CLOSED' })
    expect(channel.tryReceive()).toEqual({ done: true, value: undefined })
  }
})

test('an object that was disposed of, and disposing of one that is in use', async () => {
  const disposed = <T extends Disposable>(object: T): T => {
    object[Symbol.dispose]()
    return object
  }
  const uses = [
    () => disposed(new Mutex()).lockSync(),
    () => disposed(new Mutex()).tryLock(),
    () => disposed(new Mutex({ protocol: 'inherit' })).lockSync(),
    () => disposed(new Semaphore(1)).acquireSync(),
    () => disposed(new Semaphore(1)).release(),
    () => disposed(new RwLock()).lockReadSync(),
    () => disposed(new RwLock()).lockWriteSync(),
    () => disposed(new Condition()).notify(),
    () => disposed(new Barrier(2)).arriveSync(),
    () => disposed(new Latch(1)).waitSync(),
    () => disposed(new Latch(1)).countDown(),
    () => disposed(new Event()).waitSync(),
    () => disposed(new Event()).set(),
    () => disposed(new Once()).runSync(() => 1),
  ]
  for (const use of uses) expect(codeOf(use)).toBe('ERR_HEDDLE_DISPOSED')
  for (const protocol of ['none', 'inherit', 'handoff'] as const) {
    // A second object of the same lock, as another thread has it, that has used the fast path.
    const first = new Mutex({ protocol })
    const second = Mutex.from(first.handle)
    for (let turn = 0; turn < 3; turn++) second.lockSync().unlock()
    first[Symbol.dispose]()
    first[Symbol.dispose]()
    expect(codeOf(() => second.lockSync())).toBe('ERR_HEDDLE_DISPOSED')
    expect(codeOf(() => second.unlock())).toBe('ERR_HEDDLE_DISPOSED')
    expect(second.locked).toBe(false)
  }
  const mutex = new Mutex()
  const token = mutex.lockSync()
  expect(codeOf(() => mutex[Symbol.dispose]())).toBe('ERR_HEDDLE_BUSY')
  token.unlock()
  const lock = new RwLock()
  for (const guard of [lock.lockReadSync(), lock.lockWriteSync.bind(lock)]) {
    const held = typeof guard === 'function' ? guard() : guard
    expect(codeOf(() => lock[Symbol.dispose]())).toBe('ERR_HEDDLE_BUSY')
    held.unlock()
  }
  const once = new Once()
  expect(once.runSync(() => expect(codeOf(() => once[Symbol.dispose]())).toBe('ERR_HEDDLE_BUSY'))).toBe(true)
  for (const unused of [lock, once]) unused[Symbol.dispose]()
  expect(codeOf(() => lock.lockReadSync())).toBe('ERR_HEDDLE_DISPOSED')
  const latch = new Latch(1)
  const waiting = latch.waitAsync()
  expect(codeOf(() => latch[Symbol.dispose]())).toBe('ERR_HEDDLE_BUSY')
  latch.countDown()
  await waiting
})

test('a function that Once would not wait for', async () => {
  const once = new Once()
  let ran = false
  const later = async (): Promise<void> => void (ran = true)
  const generator = function* (): Generator<number, void> {
    ran = true
    yield 0
  }
  expect(() => once.runSync(later)).toThrow('use runAsync')
  for (const wrong of [generator, 5, undefined] as (() => void)[]) {
    expect(() => once.runSync(wrong)).toThrow(TypeError)
    await expect(once.runAsync(wrong)).rejects.toThrow(TypeError)
  }
  expect([ran, once.done]).toEqual([false, false])
  expect(await once.runAsync(later)).toBe(true)
  expect([ran, once.done]).toEqual([true, true])
})

test('the handle of an object of another class', () => {
  expect(() => Mutex.from(new Semaphore(1).handle)).toThrow(/not the handle of a Mutex/)
  for (const at of [undefined, -2, 0.5, 1e9, '4'] as never[]) {
    const objects = [
      new Mutex(),
      new Channel(1),
      new SharedQueue({ capacity: 1 }),
      new AtomicInt32(),
      new Once(),
    ]
    for (const object of objects) {
      const { from } = object.constructor as unknown as { from(this: unknown, handle: unknown): unknown }
      expect(() => from.call(object.constructor, { ...object.handle, at })).toThrow(
        'is no word of its buffer',
      )
    }
  }
})
