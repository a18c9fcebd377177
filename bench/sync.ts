import { MessageChannel, Worker } from 'node:worker_threads'
import { Mutex as PeerMutex } from 'async-mutex'
import { Schedule } from '../src/coroutine/schedule/schedule.ts'
import { Channel, Condition, Mutex, RwLock } from '../src/sync/index.ts'
import { compare, type Row } from './harness.ts'

/** The library against bare atomics, async-mutex and MessagePort. Go's channels: bench/native.ts. */
const LOCKS = 2_000_000
const MESSAGES = 20_000

const words = new Int32Array(new SharedArrayBuffer(64))
const bare = new Int32Array(new SharedArrayBuffer(64))
const mutex = new Mutex()
const lock = new RwLock()
const cross = new Channel<unknown>(1024)
const schedule = new Schedule()
const peer = new PeerMutex()

const nanoseconds = (start: bigint, turns: number): number => Number(process.hrtime.bigint() - start) / turns

/** Of the thread's CPU time, which its system counts in milliseconds: other programs do not count. */
const cpuNanoseconds = (start: NodeJS.CpuUsage, turns: number): number => {
  const { user, system } = process.threadCpuUsage(start)
  return ((user + system) * 1e3) / turns
}

/** Pairs in one call: V8 compiles a longer loop while it runs, and inlines less into such code. */
const PAIRS = 2_000

function bareSome(): void {
  for (let i = 0; i < PAIRS; i++) {
    Atomics.compareExchange(bare, 0, 0, 7)
    Atomics.compareExchange(bare, 0, 7, 0)
  }
}

function barePairs(): number {
  const start = process.threadCpuUsage()
  for (let i = 0; i < LOCKS / PAIRS; i++) bareSome()
  return cpuNanoseconds(start, LOCKS)
}

function* lockSome(): Generator<number, void, unknown> {
  for (let i = 0; i < PAIRS; i++) {
    yield* mutex.lock()
    mutex.unlock()
  }
}

function* lockPairs(): Generator<number, number, unknown> {
  const start = process.threadCpuUsage()
  for (let i = 0; i < LOCKS / PAIRS; i++) yield* lockSome()
  return cpuNanoseconds(start, LOCKS)
}

function lockSomeSync(): void {
  for (let i = 0; i < PAIRS; i++) {
    mutex.lockSync()
    mutex.unlock()
  }
}

function lockPairsSync(): number {
  const start = process.threadCpuUsage()
  for (let i = 0; i < LOCKS / PAIRS; i++) lockSomeSync()
  return cpuNanoseconds(start, LOCKS)
}

async function peerPairs(): Promise<number> {
  const turns = LOCKS / 10
  const start = process.threadCpuUsage()
  for (let i = 0; i < turns; i++) {
    const release = await peer.acquire()
    release()
  }
  return cpuNanoseconds(start, turns)
}

function* sendAll(
  channel: Channel<unknown>,
  value: unknown,
  turns: number,
): Generator<number, void, unknown> {
  for (let i = 0; i < turns; i++) yield* channel.send(value)
}

function* receiveAll(channel: Channel<unknown>, turns: number): Generator<number, void, unknown> {
  for (let i = 0; i < turns; i++) yield* channel.receive()
}

/** Two coroutines of one thread, through a channel. */
async function localChannel(channel: Channel<unknown>, value: unknown, turns: number): Promise<number> {
  const start = process.hrtime.bigint()
  await Promise.all([schedule.run(sendAll, channel, value, turns), schedule.run(receiveAll, channel, turns)])
  return nanoseconds(start, turns)
}

/** The same through a MessagePort within the thread. */
async function localPort(value: unknown, turns: number): Promise<number> {
  const { port1, port2 } = new MessageChannel()
  const start = process.hrtime.bigint()
  await new Promise<void>(resolve => {
    let left = turns
    port2.on('message', () => {
      if (--left === 0) resolve()
    })
    for (let i = 0; i < turns; i++) port1.postMessage(value)
  })
  const took = nanoseconds(start, turns)
  port1.close()
  port2.close()
  return took
}

class Partners {
  readonly workers: Worker[]

  constructor(count: number) {
    const workerData = { mutex: mutex.handle, lock: lock.handle, channel: cross.handle, words }
    this.workers = Array.from(
      { length: count },
      () => new Worker(new URL('./sync/echo.ts', import.meta.url), { workerData, execArgv: [] }),
    )
  }

  order(count: number, order: object, transfer: readonly never[] = []): Promise<void[]> {
    return Promise.all(
      this.workers.slice(0, count).map(
        worker =>
          new Promise<void>(resolve => {
            worker.once('message', () => resolve())
            worker.postMessage(order, transfer as never)
          }),
      ),
    )
  }

  async close(): Promise<void> {
    await Promise.all(this.workers.map(worker => worker.terminate()))
  }
}

/** `count` threads add to one word under one lock; the main thread only waits. */
async function contended(
  partners: Partners,
  count: number,
  kind: 'count' | 'bare',
  turns: number,
): Promise<number> {
  const start = process.hrtime.bigint()
  await partners.order(count, { kind, turns })
  return nanoseconds(start, turns * count)
}

async function crossChannel(partners: Partners, value: unknown, turns: number): Promise<number> {
  const start = process.hrtime.bigint()
  const drained = partners.order(1, { kind: 'drain', turns })
  for (let i = 0; i < turns; i++) if (!cross.trySend(value)) cross.sendSync(value)
  await drained
  return nanoseconds(start, turns)
}

async function crossPort(partners: Partners, value: unknown, turns: number): Promise<number> {
  const { port1, port2 } = new MessageChannel()
  const start = process.hrtime.bigint()
  const drained = partners.order(1, { kind: 'port', port: port2, turns }, [port2 as never])
  for (let i = 0; i < turns; i++) port1.postMessage(value)
  await drained
  const took = nanoseconds(start, turns)
  port1.close()
  return took
}

async function mix(partners: Partners, count: number, writes: number, turns: number): Promise<number> {
  const start = process.hrtime.bigint()
  await partners.order(count, { kind: 'rw', turns, writes })
  return nanoseconds(start, turns * count)
}

/** Two threads, sections of a microsecond: readers and writers, or all of them under a Mutex. */
async function sections(partners: Partners, writes: number, exclusive: boolean): Promise<number> {
  const turns = MESSAGES / 4
  const start = process.hrtime.bigint()
  await partners.order(2, { kind: 'sections', turns, writes, exclusive })
  return nanoseconds(start, turns * 2)
}

/** From the notify until the last of a thousand coroutines has locked the mutex again. */
async function broadcast(count: number): Promise<number> {
  const condition = new Condition()
  const arrived = { count: 0 }
  const all = Array.from({ length: count }, () =>
    schedule.run(function* () {
      using token = yield* mutex.lock()
      arrived.count++
      yield* condition.wait(token)
    }),
  )
  while (arrived.count < count) await new Promise(resolve => setTimeout(resolve, 1))
  const start = process.hrtime.bigint()
  condition.notify()
  await Promise.all(all)
  return nanoseconds(start, count)
}

/** The same without a lock: async functions that await one promise. */
async function resolveAll(count: number): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const arrived = { count: 0 }
  const all = Array.from({ length: count }, async () => {
    await promise
    arrived.count++
  })
  const start = process.hrtime.bigint()
  resolve()
  await Promise.all(all)
  return nanoseconds(start, arrived.count)
}

export async function* rows(): AsyncGenerator<Row> {
  yield await compare({
    row: 'sync/mutex-uncontended',
    against: 'a compare-exchange pair',
    ours: () => schedule.run(lockPairs),
    base: barePairs,
    target: { most: 1.5 },
  })
  yield await compare({
    row: 'sync/mutex-uncontended-thread',
    against: 'a compare-exchange pair',
    ours: lockPairsSync,
    base: barePairs,
    target: { most: 1.5 },
  })
  yield await compare({
    row: 'sync/async-mutex',
    against: 'async-mutex',
    ours: () => schedule.run(lockPairs),
    base: peerPairs,
    target: { least: 30 },
  })
  const message = { id: 1, text: 'a message of some length', flags: [true, false] }
  yield await compare({
    row: 'sync/channel-local',
    against: 'MessagePort',
    ours: () => localChannel(new Channel(8192), message, MESSAGES * 10),
    base: () => localPort(message, MESSAGES),
    target: { least: 50 },
  })
  const shared = new Channel<unknown>(1024)
  shared.share()
  yield await compare({
    row: 'sync/channel-local-shared',
    against: 'MessagePort',
    ours: () => localChannel(shared, 42, MESSAGES * 5),
    base: () => localPort(42, MESSAGES),
  })
  yield await compare({
    row: 'sync/channel-local-unbuffered',
    against: 'MessagePort',
    ours: () => localChannel(new Channel(0), message, MESSAGES),
    base: () => localPort(message, MESSAGES),
  })
  const partners = new Partners(8)
  try {
    yield await compare({
      row: 'sync/channel-cross',
      against: 'MessagePort',
      ours: () => crossChannel(partners, 42, MESSAGES),
      base: () => crossPort(partners, 42, MESSAGES),
      target: { least: 5 },
    })
    yield await compare({
      row: 'sync/channel-cross-object',
      against: 'MessagePort',
      ours: () => crossChannel(partners, message, MESSAGES),
      base: () => crossPort(partners, message, MESSAGES),
    })
    for (const count of [2, 4, 8]) {
      yield await compare({
        row: `sync/contended-${count}`,
        against: 'a lock of wait and notify',
        ours: () => contended(partners, count, 'count', MESSAGES),
        base: () => contended(partners, count, 'bare', MESSAGES),
        rounds: 10,
      })
    }
    for (const [name, writes] of [
      ['90-10', 1],
      ['50-50', 5],
    ] as const) {
      yield await compare({
        row: `sync/rw-${name}`,
        against: 'a Mutex, sections of a microsecond',
        ours: () => sections(partners, writes, false),
        base: () => sections(partners, writes, true),
        ...(writes === 1 && { target: { most: 1 } }),
      })
      yield await compare({
        row: `sync/rw-${name}-empty`,
        against: 'a Mutex, empty sections, four threads',
        ours: () => mix(partners, 4, writes, MESSAGES),
        base: () => contended(partners, 4, 'count', MESSAGES),
      })
    }
  } finally {
    await partners.close()
  }
  yield await compare({
    row: 'sync/broadcast-1000',
    against: 'a promise that a thousand await',
    ours: () => broadcast(1000),
    base: () => resolveAll(1000),
    target: { most: 20 },
  })
  schedule.exit()
}
