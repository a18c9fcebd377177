import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Postgres, startPostgres } from '../../../testing/durable/postgres.ts'
import { CHANNEL, type Database } from '../database/database.ts'
import { openPostgres } from '../database/node-postgres.ts'
import { migrate } from '../database/schema.ts'
import { Engine } from '../engine.ts'
import type { ClaimedRun, NewRun } from '../store/rows.ts'
import { Store } from '../store/store.ts'
import { SessionWatch, workersWithoutSession } from './sessions.ts'

let postgres: Postgres
let database: Database
let store: Store

beforeAll(async () => {
  postgres = await startPostgres()
  database = await openPostgres({ url: postgres.url, connections: 4, onError: () => undefined })
  await migrate(database)
  const engine = await Engine.open(database, { lease: 10, supervises: false, onError: () => undefined })
  store = new Store(database, engine)
}, 60_000)

afterAll(async () => {
  await store.engine.close()
  await database.close()
  await postgres.close()
})

function newRun(queue: string): NewRun {
  const options = {
    checkpoint: null,
    retries: 0,
    backoff: { initial: 0, factor: 1, max: 0 },
    retryFrom: 'checkpoint',
    onCodeChanged: 'wait',
    groupLimit: 1,
  } as const
  const args = new Uint8Array()
  const names = { module: 'm', fn: 'f', name: 'f' }
  return { id: queue, queue, ...names, args, priority: 128, options, group: null, delay: 0, trace: null }
}

/** Starts a run in a queue of its own, which the worker of this name claims. */
async function claimed(queue: string, worker: string): Promise<ClaimedRun> {
  await store.calls.start([newRun(queue)])
  return (await store.claims.claim(queue, 1, worker)).runs[0]!
}

/** A session of a worker of this name: the function ends it. */
async function session(worker: string): Promise<() => Promise<void>> {
  const other = await openPostgres({ url: postgres.url, connections: 1, onError: () => undefined })
  await other.listen(
    CHANNEL,
    () => undefined,
    () => undefined,
    worker,
  )
  return () => other.close()
}

/** As (C) and (D) of a watch: how many claims of workers without a session end. */
async function lapse(queue: string): Promise<number> {
  const { workers } = await workersWithoutSession(database, [queue])
  return await store.claims.lapse(queue, workers)
}

/** The server notices the end of a connection a little later. */
async function lapsed(queue: string): Promise<void> {
  await expect.poll(() => lapse(queue)).toBe(1)
}

test('the run of a worker whose session has ended is claimed by another one, and the first one is fenced', async () => {
  const end = await session('w1')
  const run = await claimed('q1', 'w1')
  expect(await lapse('q1')).toBe(0)
  expect((await store.claims.claim('q1', 1, 'w2')).runs).toEqual([])
  await end()
  await lapsed('q1')
  const [next] = (await store.claims.claim('q1', 1, 'w2')).runs
  expect(next).toMatchObject({ id: 'q1', epoch: 2 })
  expect([...(await store.writes.finish([{ run, state: 'completed', outcome: null, error: null }]))]).toEqual(
    ['q1'],
  )
})

test('a session of a worker of another name does not count', async () => {
  const end = await session('w3')
  await claimed('q2', 'w4')
  await lapsed('q2')
  await end()
})

test('a worker that has its session again before the second look keeps its runs', async () => {
  const first = await session('w5')
  await claimed('q3', 'w5')
  await first()
  await expect.poll(async () => (await workersWithoutSession(database, ['q3'])).workers).toEqual(['w5'])
  const second = await session('w5')
  expect(await store.claims.lapse('q3', ['w5'])).toBe(0)
  await second()
  await lapsed('q3')
})

test('a claim that ended so is not ended again', async () => {
  await claimed('q6', 'w8')
  await lapsed('q6')
  const [next] = (await store.claims.claim('q6', 1, 'w9')).runs
  const end = await session('w9')
  expect(await store.claims.lapse('q6', ['w8', 'w9'])).toBe(0)
  expect(await store.engine.touch('q6', [next!.job])).toEqual([next!.job.id])
  await end()
})

test('a watch ends the claims of a worker that dies, and no others', async () => {
  const [end, stay] = [await session('w10'), await session('w11')]
  await claimed('q7', 'w10')
  const kept = await claimed('q8', 'w11')
  const errors: Error[] = []
  const watch = new SessionWatch(store, ['q7', 'q8'], error => errors.push(error))
  await end()
  await expect
    .poll(async () => (await store.claims.claim('q7', 1, 'w12')).runs.map(({ epoch }) => epoch))
    .toEqual([2])
  await watch.close()
  expect(await store.engine.touch('q8', [kept.job])).toEqual([kept.job.id])
  expect(errors).toEqual([])
  await stay()
})

test('after a start of the server workers have time to connect again', async () => {
  await claimed('q9', 'w13')
  await expect.poll(async () => (await workersWithoutSession(database, ['q9'])).workers).toEqual(['w13'])
  await postgres.restart()
  const query = (): Promise<readonly string[]> =>
    workersWithoutSession(database, ['q9']).then(({ workers }) => workers)
  await expect.poll(() => query().catch(() => null)).toEqual([])
  await expect.poll(query).toEqual(['w13'])
})

test('a worker that has two sessions for a while loses no run with the first one', async () => {
  const first = await session('w6')
  const second = await session('w6')
  await claimed('q4', 'w6')
  await first()
  const left = async (): Promise<number> =>
    (
      await database.query(
        "select 1 from pg_locks where locktype = 'advisory' and objsubid = 2 and mode = 'ShareLock' and granted",
      )
    ).length
  await expect.poll(left).toBe(1)
  expect(await lapse('q4')).toBe(0)
  await second()
  await lapsed('q4')
})

test('a worker whose connection the server cuts has its session again', async () => {
  const end = await session('w7')
  const run = await claimed('q5', 'w7')
  const sessions = async (): Promise<number[]> =>
    (
      await database.query(
        "select pid from pg_locks where locktype = 'advisory' and objsubid = 2 and granted",
      )
    ).map(({ pid }) => pid as number)
  const [before, ...more] = await sessions()
  expect(more).toEqual([])
  await database.query('select pg_terminate_backend($1)', [before])
  await expect.poll(async () => (await sessions()).filter(pid => pid !== before)).toHaveLength(1)
  expect(await lapse('q5')).toBe(0)
  expect(await store.engine.touch('q5', [run.job])).toEqual([run.job.id])
  await end()
})
