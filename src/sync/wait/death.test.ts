import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Channel, Kernel, Mutex, RwLock, Semaphore, SeqLock, SharedQueue } from '../../index.ts'
import { failureOf, until } from '../../../testing/kernel/fixtures/ending.ts'
import type * as Tasks from '../../../testing/sync/fixtures/mortaltasks.ts'

/** CPU 0 is terminated in the middle of something; CPU 1 and this thread go on. */
let kernel: Kernel
let tasks: Awaited<ReturnType<typeof load>>

function load(): Promise<Awaited<ReturnType<typeof Kernel.prototype.import<typeof Tasks>>>> {
  return kernel.import<typeof Tasks>(
    new URL('../../../testing/sync/fixtures/mortaltasks.ts', import.meta.url),
  )
}

beforeEach(async () => {
  kernel = await Kernel.boot({ cpus: 2, watchdog: false })
  tasks = await load()
})

afterEach(async () => {
  await kernel.close()
})

const shared = (words: number): Int32Array<SharedArrayBuffer> =>
  new Int32Array(new SharedArrayBuffer(words * 4))
const terminate = (cpu: number): Promise<void> => kernel['booted'].machine.terminate(cpu)
const mortal = { affinity: [0] }
const survivor = { affinity: [1] }

/** Runs on CPU 0 until it says that it is where it should die. */
async function runsInto(task: PromiseLike<unknown>, words: Int32Array<SharedArrayBuffer>): Promise<void> {
  task.then(
    () => undefined,
    () => undefined,
  )
  await until('it is there', () => Atomics.load(words, 0) === 1)
}

test('the booting thread gets the error although it blocks, and so gets no event of the death', async () => {
  const mutex = new Mutex({ robust: true })
  const words = shared(4)
  await runsInto(kernel.spawn(tasks.exitWith, [mutex, words], mortal), words)
  const token = mutex.lockSync({ timeout: 30_000 })
  expect(mutex.ownerDied).toBe(true)
  mutex.makeConsistent()
  token.unlock()
  // The rest of the recovery comes with the event: another CPU takes its place.
  expect(await kernel.spawn(tasks.idle, [], mortal)).toBe('idle')
})

test('a task on another CPU goes on when one dies in the lock of a channel', async () => {
  const channel = new Channel<number>(4)
  const words = shared(4)
  await runsInto(kernel.spawn(tasks.dieInChannel, [channel, words], mortal), words)
  const received = kernel.spawn(tasks.receiveOne, [channel], survivor)
  await terminate(0)
  await channel.sendAsync(7)
  expect(await received).toBe(7)
})

test('the booting thread goes on, although it waits for the lock before the event of the death', async () => {
  const channel = new Channel<number>(4)
  const words = shared(4)
  await runsInto(kernel.spawn(tasks.dieInChannel, [channel, words], mortal), words)
  const gone = terminate(0)
  expect(channel.trySend(7)).toBe(true)
  await gone
  expect(await kernel.spawn(tasks.receiveOne, [channel], survivor)).toBe(7)
})

test('a task on another CPU goes on when one dies in the lock of a shared queue', async () => {
  const queue = new SharedQueue({ capacity: 4 })
  const words = shared(4)
  await runsInto(kernel.spawn(tasks.dieInQueue, [queue, words], mortal), words)
  const popped = kernel.spawn(tasks.popOne, [queue], survivor)
  await terminate(0)
  await queue.pushAsync([7])
  expect(await popped).toBe(7)
})

test.each([
  ['mutex', () => new Mutex()],
  ['readers-writer lock', () => new RwLock()],
] as const)(
  'waiters for a %s get an error when the task that holds it dies with its CPU',
  async (_, make) => {
    const lock = make()
    const words = shared(4)
    await runsInto(kernel.spawn(tasks.dieWith, [lock, words], mortal), words)
    const waiting = kernel.spawn(tasks.wantWrite, [lock, words], survivor)
    await until('it waits', () => Atomics.load(words, 2) === 1)
    await terminate(0)
    expect(await waiting).toBe('ERR_HEDDLE_NOT_RECOVERABLE')
  },
)

describe.each([
  { robust: true },
  { robust: true, protocol: 'inherit' },
  { robust: true, protocol: 'handoff' },
] as const)('a mutex with %o', options => {
  test.each([true, false])(
    'that was made on the CPU that dies with it, and that the booting thread never had, passes to the next; it waits already: %o',
    async waits => {
      const channel = new Channel<Mutex>(1)
      const words = shared(4)
      const maker = kernel.spawn(tasks.dieWithOwn, [channel, words, options], mortal)
      await runsInto(maker, words)
      const early = waits ? kernel.spawn(tasks.lockReceived, [channel, words], survivor) : null
      if (waits) await until('it waits', () => Atomics.load(words, 2) === 1)
      await terminate(0)
      expect(await (early ?? kernel.spawn(tasks.lockReceived, [channel, words], survivor))).toBe(true)
    },
  )
})

const DEATHS = process.env['HEDDLE_LONG'] === '1' ? 200 : 12
const SPAN = 10_000_000

test.each([0, 1, 64])(
  'senders die one after the other at a channel of capacity %i: the receiver gets the values of each of them, in order',
  async capacity => {
    const channel = new Channel<number>(capacity)
    const counts = shared(DEATHS)
    const following = kernel.spawn(tasks.follow, [channel, counts, SPAN], survivor)
    for (let death = 0; death < DEATHS; death++) {
      const back = new Promise(resolve => kernel.on('restart', resolve))
      const sender = kernel.spawn(tasks.sendOn, [channel, death * SPAN], mortal)
      await until('it sends', () => Atomics.load(counts, death) > 50 + death)
      void terminate(0)
      expect((await failureOf(sender)).name).toBe('CpuLostError')
      await back
    }
    await channel.sendAsync(-1)
    expect(await following).toBe('in order')
  },
)

test.each([0, 1])(
  'the values of waiting senders at a channel of capacity %i are freed when their CPU dies, repeatedly',
  async capacity => {
    const { view } = kernel['booted']
    const used = async (): Promise<number> => {
      await until('nothing lives', () => kernel.active === 0)
      return view.heap.usedBytes()
    }
    const before = await used()
    for (let round = 0; round < 4; round++) {
      const channels = [new Channel<unknown>(capacity), new Channel<unknown>(capacity)]
      for (const channel of channels) for (let n = 0; n < capacity; n++) await channel.sendAsync(n)
      const words = shared(8)
      const back = new Promise(resolve => kernel.on('restart', resolve))
      const sending = Array.from({ length: 3 }, () =>
        kernel.spawn(tasks.sendLarge, [channels[0], words, 1 << 20], mortal),
      )
      const selecting = kernel.spawn(tasks.selectLarge, [channels, words, 1 << 20], mortal)
      const failures = [...sending, selecting].map(failureOf)
      await until('they wait', () => [...sending, selecting].every(task => task.status.state === 'sleeping'))
      expect(view.heap.usedBytes() - before).toBeGreaterThan(5 << 20)
      void terminate(0)
      for (const failure of await Promise.all(failures)) expect(failure.name).toBe('CpuLostError')
      await back
      expect(await used()).toBe(before)
    }
  },
)

test('the booting thread writes a record although a CPU died in the middle of writing it, before the event of the death', async () => {
  const record = new SeqLock({ fields: 4096 })
  const words = shared(4)
  await runsInto(kernel.spawn(tasks.writeOn, [record, words], mortal), words)
  const gone = terminate(0)
  const value = new Int32Array(record.fields).fill(2)
  // Without a turn of the event loop: it finds the dead writer, which is always in the middle of a record.
  for (let n = 0; n < 2000; n++) record.write(value)
  expect(record.read()).toEqual(value)
  await gone
  record.write(new Int32Array(record.fields).fill(3))
  expect(record.read()).toEqual(new Int32Array(record.fields).fill(3))
})

test('the booting thread finishes the setup of a mutex that a CPU began when it died', async () => {
  const words = shared(64)
  const at = 16
  await runsInto(kernel.spawn(tasks.claimEngine, [words, at + 10], mortal), words)
  const gone = terminate(0)
  const mutex = new Mutex({ robust: true, buffer: words.buffer, index: at })
  mutex.lockSync()
  mutex.unlock()
  await gone
})

describe.each([
  ['readers', () => new RwLock()],
  ['permits', () => new Semaphore(4)],
] as const)('what a dead task held of %s', (kind, make) => {
  test.each([true, false])('comes back, and a task gets it that waits already: %o', async waits => {
    const held = make()
    const words = shared(8)
    await runsInto(kernel.spawn(tasks.dieHolding, [held, words, 3], mortal), words)
    const early = waits ? kernel.spawn(tasks.wantAll, [held, words, 4], survivor) : null
    if (early !== null) await until('it waits', () => early.status.state === 'sleeping')
    await terminate(0)
    expect(await (early ?? kernel.spawn(tasks.wantAll, [held, words, 4], survivor))).toBe('has it')
  })

  test('comes back although async code of the task took it', async () => {
    const held = make()
    const words = shared(8)
    await runsInto(kernel.spawn(tasks.dieHoldingAsync, [held, words, 3], mortal), words)
    await terminate(0)
    expect(await kernel.spawn(tasks.wantAll, [held, words, 4], survivor)).toBe('has it')
  })

  test('comes back to a caller that does not wait', async () => {
    const held = make()
    const words = shared(8)
    await runsInto(kernel.spawn(tasks.dieHolding, [held, words, 3], mortal), words)
    const tries = (): object | null => ('tryLockWrite' in held ? held.tryLockWrite() : held.tryAcquire(4))
    expect(tries()).toBe(null)
    await terminate(0)
    expect(tries()).not.toBe(null)
  })

  if (kind === 'readers') {
    test('comes back, and the share of a living reader does not', async () => {
      const lock = make() as RwLock
      const words = shared(8)
      const reading = kernel.spawn(tasks.readOn, [lock, words], survivor)
      await until('it reads', () => Atomics.load(words, 2) === 1)
      await runsInto(kernel.spawn(tasks.dieHolding, [lock, words, 2], mortal), words)
      await terminate(0)
      const writing = kernel.spawn(tasks.wantAll, [lock, words, 0], mortal)
      await until('it waits', () => writing.status.state === 'sleeping')
      expect(lock.readers).toBe(1)
      expect(Atomics.load(words, 4)).toBe(0)
      Atomics.store(words, 3, 1)
      await reading
      expect(await writing).toBe('has it')
    })
  } else {
    test('does not come back where permits are a signal: one task acquires and another releases', async () => {
      const semaphore = new Semaphore(0)
      const words = shared(8)
      semaphore.release(3)
      await runsInto(kernel.spawn(tasks.dieHolding, [semaphore, words, 2], mortal), words)
      await terminate(0)
      expect(semaphore.tryAcquire(2)).toBe(null)
      expect(semaphore.available).toBe(1)
    })
  }
})

test('waiters for a PI lock wait on when a CPU dies that does not use it', async () => {
  const words = shared(4)
  const holder = kernel.spawn(tasks.holdWord, [words], survivor)
  await until('the lock is held', () => Atomics.load(words, 1) === 1)
  const waiting = kernel.spawn(tasks.wantWord, [words], survivor)
  const flow = kernel.spawn(tasks.wantWordAsync, [words], survivor)
  await until('they wait', () => [waiting, flow].every(({ status }) => status.state === 'sleeping'))
  for (let round = 0; round < 3; round++) {
    const back = new Promise(resolve => kernel.on('restart', resolve))
    await terminate(0)
    await back
    await until('they wait', () => [waiting, flow].every(({ status }) => status.state === 'sleeping'))
  }
  Atomics.store(words, 2, 1)
  expect(await Promise.all([holder, waiting, flow])).toEqual(['unlocked', 'had it', 'had it'])
  expect(words[0]).toBe(0)
})
