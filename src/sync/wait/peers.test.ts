import { describe, expect, test } from 'vitest'
import { Schedule } from '../../coroutine/index.ts'
import { sleep } from '../../coroutine/core/blocking.ts'
import { Channel, Condition, Mutex, RwLock, select, Semaphore } from '../index.ts'

/** What other libraries are known to get wrong. */
const soon = (): Promise<void> => new Promise(resolve => setTimeout(resolve, 5))

describe('a semaphore with 3 permits, all held, and waiters for 3 and then for 1', () => {
  function start(): { semaphore: Semaphore; order: string[]; stop: AbortController; done: Promise<unknown> } {
    const semaphore = new Semaphore(3)
    semaphore.acquireSync(3)
    const order: string[] = []
    const stop = new AbortController()
    const large = semaphore.acquireAsync(3, { signal: stop.signal }).then(
      () => order.push('3'),
      () => order.push('3 gave up'),
    )
    const small = semaphore.acquireAsync(1).then(() => order.push('1'))
    return { semaphore, order, stop, done: Promise.all([large, small]) }
  }

  test('a released permit is kept for the first waiter, and the small request does not overtake', async () => {
    const { semaphore, order, done } = start()
    semaphore.release(1)
    await soon()
    expect(order).toEqual([])
    expect(semaphore.tryAcquire(1)).toBeNull()
    semaphore.release(2)
    await soon()
    expect(order).toEqual(['3'])
    semaphore.release(3)
    await done
    expect(order).toEqual(['3', '1'])
    expect(semaphore.available).toBe(2)
  })

  test('when the large request gives up, the small one is served immediately, without another release', async () => {
    const { semaphore, order, stop, done } = start()
    semaphore.release(1)
    stop.abort()
    await done
    expect(order).toEqual(['3 gave up', '1'])
    expect(semaphore.available).toBe(0)
  })
})

test('a condition that is notified between the unlock and the wait is not missed', async () => {
  const mutex = new Mutex()
  const condition = new Condition()
  const token = await mutex.lockAsync()
  const waiting = condition.waitAsync(token)
  // The call has unlocked, and nothing has slept yet: not a turn of the event loop has passed.
  expect(mutex.locked).toBe(false)
  expect(condition.notify(1)).toBe(1)
  await waiting
  expect(token.locked).toBe(true)
  token.unlock()
})

test('of a thousand notified waiters, those that cannot have the mutex are not woken in vain', async () => {
  const mutex = new Mutex()
  const condition = new Condition()
  const schedule = new Schedule()
  const arrived = { count: 0, inside: 0, most: 0 }
  const all = Array.from({ length: 1000 }, () =>
    schedule.run(function* () {
      using token = yield* mutex.lock()
      arrived.count++
      yield* condition.wait(token)
      arrived.inside++
      arrived.most = Math.max(arrived.most, arrived.inside)
      arrived.inside--
    }),
  )
  while (arrived.count < 1000) await soon()
  const token = await mutex.lockAsync()
  const before = schedule.statistics.switches
  expect(condition.notify()).toBe(1000)
  await soon()
  // The mutex is held: not one of them has run.
  expect(schedule.statistics.switches).toBe(before)
  token.unlock()
  await Promise.all(all)
  schedule.exit()
  expect(arrived.most).toBe(1)
})

test('a value that is put back from a cancelled receiver makes no room for another', async () => {
  const channel = new Channel<number>(0)
  const schedule = new Schedule({ onError: () => undefined })
  const receiver = schedule.go(function* () {
    yield* channel.receive()
  })
  const all = schedule.run()
  await soon()
  expect(channel.trySend(1)).toBe(true)
  schedule.cancel(receiver)
  await all
  schedule.exit()
  const ended: string[] = []
  const sending = channel.sendAsync(2).then(() => ended.push('sent'))
  expect(await channel.receiveAsync()).toBe(1)
  await soon()
  expect(ended).toEqual([])
  expect(await channel.receiveAsync()).toBe(2)
  await sending
})

describe('a readers-writer lock starves no waiter', () => {
  test('a reader that comes while a writer waits goes behind it, and readers go together', async () => {
    const lock = new RwLock()
    const order: string[] = []
    const first = lock.lockReadSync()
    const writer = lock.lockWriteAsync().then(guard => {
      order.push('writer')
      return guard
    })
    const readers = ['one', 'two'].map(name =>
      lock.lockReadAsync().then(guard => {
        order.push(name)
        return guard
      }),
    )
    await soon()
    expect(order).toEqual([])
    expect(lock.tryLockRead()).toBeNull()
    first.unlock()
    ;(await writer).unlock()
    for (const reader of readers) (await reader).unlock()
    expect(order).toEqual(['writer', 'one', 'two'])
  })

  test('a writer is admitted although another thread always reads before it has woken up', async () => {
    const lock = new RwLock()
    let guard = lock.lockReadSync()
    const written: string[] = []
    const writer = lock.lockWriteAsync().then(held => {
      written.push('writer')
      held.unlock()
    })
    let overtakings = 0
    while (written.length === 0 && overtakings < 100) {
      guard.unlock()
      guard = await lock.lockReadAsync()
      overtakings++
      await soon()
    }
    guard.unlock()
    await writer
    expect(overtakings).toBeGreaterThan(1)
    expect(overtakings).toBeLessThan(10)
  })

  test('readers behind a second writer are admitted with the first reader, and the writer right after them', async () => {
    const lock = new RwLock()
    const order: string[] = []
    const held = lock.lockWriteSync()
    const note = (name: string) => (guard: { unlock(): unknown }) => {
      order.push(name)
      guard.unlock()
    }
    const all = [
      lock.lockReadAsync().then(note('r1')),
      lock.lockWriteAsync().then(note('w')),
      lock.lockReadAsync().then(note('r2')),
    ]
    held.unlock()
    await Promise.all(all)
    expect(order).toEqual(['r1', 'r2', 'w'])
  })

  test('an upgrade goes before all writers, a second one is refused, and a downgrade lets no writer in between', async () => {
    const lock = new RwLock()
    const schedule = new Schedule()
    const order: string[] = []
    const upgrader = schedule.run(function* () {
      using _read = yield* lock.lockRead()
      yield* sleep(2)
      using _write = yield* lock.upgrade()
      order.push('upgraded')
    })
    const second = schedule.run(function* () {
      using _read = yield* lock.lockRead()
      yield* sleep(4)
      try {
        using _write = yield* lock.upgrade()
      } catch (error) {
        order.push((error as { code: string }).code)
      }
    })
    const writer = schedule.run(function* () {
      yield* sleep(1)
      using _ = yield* lock.lockWrite()
      order.push('writer')
    })
    await Promise.all([upgrader, second, writer])
    schedule.exit()
    expect(order).toEqual(['ERR_HEDDLE_DEADLOCK', 'upgraded', 'writer'])
    const guard = lock.lockWriteSync()
    const waiting = lock.lockWriteAsync()
    const reading = lock.downgrade()
    expect([guard.locked, lock.readers, lock.isWriting]).toEqual([false, 1, false])
    reading.unlock()
    ;(await waiting).unlock()
  })
})

describe('a channel of one thread', () => {
  test('passes the object itself, and a copy once it has left the thread', async () => {
    const value = { n: 1 }
    const channel = new Channel<{ n: number }>(2)
    channel.trySend(value)
    expect(await channel.receiveAsync()).toBe(value)
    channel.trySend(value)
    void channel.handle
    const copy = await channel.receiveAsync()
    expect(copy).toEqual(value)
    expect(copy).not.toBe(value)
  })

  test('waiters go on waiting when the channel leaves the thread', async () => {
    const channel = new Channel<number>()
    const schedule = new Schedule()
    const receiving = [channel.receiveAsync(), schedule.run(() => channel.receive({ timeout: 5000 }))]
    await soon()
    const elsewhere = Channel.from<number>(channel.handle)
    await elsewhere.sendAsync(1)
    await elsewhere.sendAsync(2)
    expect((await Promise.all(receiving)).sort()).toEqual([1, 2])
    schedule.exit()
  })

  test('a coroutine that is cancelled as it receives a value puts it back', async () => {
    const channel = new Channel<number>()
    const schedule = new Schedule()
    const stop = new AbortController()
    const cancelled = schedule.run({ signal: stop.signal }, function* () {
      return yield* channel.receive()
    })
    await soon()
    expect(channel.trySend(7)).toBe(true)
    stop.abort(new Error('enough'))
    await expect(cancelled).rejects.toThrow('enough')
    expect(channel.tryReceive()).toEqual({ done: false, value: 7 })
    schedule.exit()
  })

  test('select takes what is ready, and no channel is always preferred', async () => {
    const schedule = new Schedule()
    const [a, b] = [new Channel<string>(100), new Channel<string>(100)]
    for (let i = 0; i < 50; i++) {
      a.trySend('a')
      b.trySend('b')
    }
    const taken = await schedule.run(function* () {
      let seen = ''
      for (let i = 0; i < 40; i++) seen += (yield* select([{ receive: a }, { receive: b }])).value as string
      return seen
    })
    schedule.exit()
    expect(taken).toContain('a')
    expect(taken).toContain('b')
  })
})
