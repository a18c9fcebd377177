import { Worker } from 'node:worker_threads'
import { afterAll, expect, test } from 'vitest'
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
  Semaphore,
  SeqLock,
  SharedQueue,
  type SyncHandle,
} from '../../../src/sync/index.ts'
import { type Kind, type Order, perform } from './stressprograms.ts'

/**
 * Real threads: two that block, one with promises, one with a coroutine; and promises and a coroutine on this
 * thread.
 */
const kinds: readonly Kind[] = ['thread', 'promise', 'thread', 'coroutine']
const local: readonly Kind[] = ['promise', 'coroutine']
const PARTIES = kinds.length + local.length
const TURNS = process.env['HEDDLE_LONG'] === '1' ? 20_000 : 300

const workers: Worker[] = []

afterAll(async () => {
  await Promise.all(workers.map(worker => worker.terminate()))
})

function onWorker(order: Order): Promise<unknown> {
  const worker =
    workers[order.who] ?? new Worker(new URL('./stressworker.ts', import.meta.url), { execArgv: [] })
  workers[order.who] = worker
  return new Promise((resolve, reject) => {
    worker.once('message', ({ value, error }: { value: unknown; error?: string }) => {
      worker.off('error', reject)
      if (error === undefined) resolve(value)
      else reject(new Error(error))
    })
    worker.once('error', reject)
    worker.postMessage(order)
  })
}

function everyone(
  program: Order['program'],
  handles: readonly SyncHandle[],
  words: Int32Array<SharedArrayBuffer>,
  turns = TURNS,
): Promise<unknown[]> {
  const orders = [...kinds, ...local].map((kind, who) => ({ program, kind, handles, words, turns, who }))
  return Promise.all(orders.map(order => (order.who < kinds.length ? onWorker(order) : perform(order))))
}

const shared = (count: number): Int32Array<SharedArrayBuffer> =>
  new Int32Array(new SharedArrayBuffer(4 * count))

test('a mutex excludes threads, promises and coroutines of five threads, with timeouts among them', async () => {
  const mutex = new Mutex()
  const words = shared(1)
  await everyone('mutex', [mutex.handle], words)
  expect(words[0]).toBe(PARTIES * TURNS)
  expect(mutex.locked).toBe(false)
})

test('a semaphore never gives out more than its permits, and has all of them at the end', async () => {
  const semaphore = new Semaphore(4)
  const worst = (await everyone('semaphore', [semaphore.handle], shared(1))) as number[]
  expect(Math.max(...worst)).toBeLessThanOrEqual(4)
  expect(semaphore.available).toBe(4)
})

test('readers see whole writes', async () => {
  const lock = new RwLock()
  const words = shared(2)
  expect(await everyone('rwlock', [lock.handle], words)).toEqual(Array.from({ length: PARTIES }, () => 0))
  expect(words[0]).toBe(words[1])
  expect([lock.readers, lock.isWriting]).toEqual([0, false])
})

test('a condition passes the turn to all of them in order', async () => {
  const words = shared(2)
  words[1] = PARTIES
  await everyone('condition', [new Mutex().handle, new Condition().handle], words, TURNS / 10)
  expect(words[0]).toBe((PARTIES * TURNS) / 10)
})

test('no participant passes a barrier before all have arrived', async () => {
  const turns = TURNS / 10
  const early = await everyone('barrier', [new Barrier(PARTIES).handle], shared(turns), turns)
  expect(early).toEqual(Array.from({ length: PARTIES }, () => 0))
})

test('a Once runs once, a latch opens for all, an automatic event wakes them one by one', async () => {
  const words = shared(2)
  const handles = [new Once().handle, new Latch(PARTIES).handle, new Event({ auto: true, set: true }).handle]
  expect(await everyone('small', handles, words)).toEqual(Array.from({ length: PARTIES }, () => 1))
  expect(words[1]).toBe(PARTIES)
})

test.each([0, 1, 64])(
  'every value that is sent through a channel of capacity %i is received once',
  async capacity => {
    const sums = (await everyone('channel', [new Channel(capacity).handle], shared(1))) as number[]
    const sent = ((TURNS - 1) * TURNS) / 2
    expect(sums.reduce((sum, each) => sum + each)).toBe((PARTIES / 2) * sent)
  },
)

test('every record that is pushed is popped once', async () => {
  const sums = (await everyone(
    'queue',
    [new SharedQueue({ capacity: 4, fields: 2 }).handle],
    shared(1),
  )) as number[]
  const pushed = ((TURNS - 1) * TURNS) / 2
  expect(sums.reduce((sum, each) => sum + each)).toBe((PARTIES / 2) * pushed)
})

test.each([0, 4])('every value that is sent by a select is received once, at capacity %i', async capacity => {
  const handles = [new Channel(capacity).handle, new Channel(capacity).handle]
  const sums = (await everyone('select', handles, shared(1))) as number[]
  const sent = ((TURNS - 1) * TURNS) / 2
  expect(sums.reduce((sum, each) => sum + each)).toBe((PARTIES / 2) * sent)
})

test('a cell passes the turn to all of them in order', async () => {
  const cell = new AtomicInt32()
  const words = shared(1)
  words[0] = PARTIES
  await everyone('cell', [cell.handle], words, TURNS / 10)
  expect(cell.load()).toBe((PARTIES * TURNS) / 10)
})

test('no reader sees half a record of a seqlock', async () => {
  const torn = await everyone('seqlock', [new SeqLock({ fields: 3 }).handle], shared(1), TURNS * 10)
  expect(torn).toEqual(Array.from({ length: PARTIES }, () => 0))
})
