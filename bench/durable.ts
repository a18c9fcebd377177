/**
 * Durable runs on a PostgreSQL server of their own, beside pg-boss alone on the same one.
 * HEDDLE_DURABLE_SECONDS: how long the computation of `durable/killed` takes undisturbed; 30 by default.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import pg from 'pg'
import { PgBoss } from 'pg-boss'
import { Durable } from '../src/durable/index.ts'
import { packImage } from '../src/durable/image.ts'
import { Kernel } from '../src/kernel/boot/kernel.ts'
import { startPostgres } from '../testing/durable/postgres.ts'
import { hasBullmq, startBullmq } from './durable/bullmq.ts'
import { computesPlainly } from './durable/work.ts'
import { compare, comparedRow, measure, median, type Row } from './harness.ts'

type Work = typeof import('./durable/work.ts')
const url = new URL('./durable/work.ts', import.meta.url)

const JOBS = 1000
const ROUNDS = 5
/** The runs or jobs that a process has at the same time. */
const TOGETHER = 100
const STARTS = 20
const CHECKPOINTS = 20
const MEBIBYTE = 1 << 20
const SECONDS = Number(process.env.HEDDLE_DURABLE_SECONDS ?? 30)
const KILL_EVERY_MS = 5000
/** A third of the default lease. */
const HEARTBEAT_MS = 10_000 / 3

export const omitted: readonly string[] = hasBullmq()
  ? []
  : [
      'the rows beside BullMQ: they need a redis-server, which no npm package brings, and `npm run matrix` once, which installs BullMQ',
    ]

export async function* rows(): AsyncIterable<Row> {
  const postgres = await startPostgres()
  try {
    yield* queueRows(postgres.url)
    yield* checkpointRows(postgres.url)
    yield await takeoverRow(postgres.url)
    yield await killedRow(postgres.url)
  } finally {
    await postgres.close()
  }
}

/** Empty runs and empty jobs: how many a second, and how long each waits. Both are told of new ones. */
async function* queueRows(database: string): AsyncIterable<Row> {
  const kernel = await Kernel.boot({ cpus: availableParallelism(), control: false, watchdog: false })
  const work = await kernel.import<Work>(url)
  const durable = await Durable.open({ kernel, database, concurrency: TOGETHER })
  const boss = new PgBoss({ connectionString: database, schema: 'alone', max: 12, useListenNotify: true })
  await boss.start()
  await boss.createQueue('jobs')
  await boss.createQueue('single', { notify: true })
  yield await compare({
    row: 'durable/throughput',
    against: 'pg-boss alone, which fetches and completes batches',
    unit: 'ns',
    rounds: ROUNDS,
    ours: () => runsOf(durable, work),
    base: () => jobsOf(boss),
    target: { least: 1 },
  })
  if (hasBullmq()) {
    const redis = await startBullmq(TOGETHER)
    try {
      yield await compare({
        row: 'durable/throughput-bullmq',
        against: 'BullMQ on a Redis server that stores nothing',
        unit: 'ns',
        rounds: ROUNDS,
        ours: () => runsOf(durable, work),
        base: async () => (await redis.jobs(JOBS)) * 1e6,
      })
    } finally {
      await redis.close()
    }
  }
  const begun = new Map<string, (at: number) => void>()
  await boss.work<{ id: string }>('single', { pollingIntervalSeconds: 0.5 }, ([job]) => {
    begun.get(job!.data.id)?.(now())
    return Promise.resolve()
  })
  yield await compare({
    row: 'durable/latency',
    against: 'a job of pg-boss, whose worker is notified',
    unit: 'ms',
    rounds: ROUNDS,
    ours: () =>
      medianOf(STARTS, async () => {
        const from = now()
        return (await (await durable.start(work.first)).result()) - from
      }),
    base: () =>
      medianOf(STARTS, async () => {
        const id = String(Math.random())
        const at = new Promise<number>(resolve => begun.set(id, resolve))
        const from = now()
        await boss.send('single', { id })
        return (await at) - from
      }),
  })
  await boss.stop({ graceful: false })
  await durable.close()
  await kernel.close()
}

async function runsOf(durable: Durable, work: any): Promise<number> {
  const from = now()
  const runs = await Promise.all(Array.from({ length: JOBS }, () => durable.start(work.empty)))
  await Promise.all(runs.map(run => run.result()))
  return ((now() - from) / JOBS) * 1e6
}

/** The same with pg-boss at its best: one batch is fetched while another one is completed. */
async function jobsOf(boss: PgBoss): Promise<number> {
  const from = now()
  let done = 0
  let sent = false
  const sending = Promise.all(Array.from({ length: JOBS }, () => boss.send('jobs', {}))).then(
    () => (sent = true),
  )
  const worker = async (): Promise<void> => {
    while (done < JOBS) {
      const jobs = await boss.fetch('jobs', { batchSize: TOGETHER })
      if (jobs.length > 0)
        await boss.complete(
          'jobs',
          jobs.map(({ id }) => id),
        )
      else if (sent) return
      done += jobs.length
    }
  }
  await Promise.all([sending, worker(), worker()])
  if (done !== JOBS) throw new Error(`${done} of ${JOBS} jobs were done`)
  return ((now() - from) / JOBS) * 1e6
}

/** From the copy of a task to its stored image, beside the same bytes written by hand. */
async function* checkpointRows(database: string): AsyncIterable<Row> {
  const kernel = await Kernel.boot({ cpus: 1, control: false, watchdog: false })
  const work = await kernel.import<Work>(url)
  const durable = await Durable.open({ kernel, database, concurrency: 0 })
  const pool = new pg.Pool({ connectionString: database, max: 1 })
  await pool.query('create table plain (id int primary key, bytes bytea)')
  await pool.query('alter table plain alter column bytes set storage external')
  for (const [row, size] of [
    ['durable/checkpoint-small', 0],
    ['durable/checkpoint-1mib', MEBIBYTE],
  ] as const) {
    await durable.start(work.empty, [], { queue: row.replace('/', '-') })
    const { runs } = await durable.store.claims.claim(row.replace('/', '-'), 1, 'bench')
    const task = kernel.spawn(work.holds, [randomBytes(size)])
    const image = async (): Promise<Uint8Array> => await task.copyToBytes()
    const packed = await packImage(row, await image(), Infinity)
    let seq = 0
    yield await compare({
      row,
      against: 'an update of as many bytes',
      unit: 'ms',
      rounds: ROUNDS,
      ours: () =>
        medianOf(CHECKPOINTS, async () => {
          const from = now()
          const bytes = await image()
          const stored = { bytes: await packImage(row, bytes, Infinity), rawBytes: bytes.length, seq: ++seq }
          await durable.store.writes.saveImage(runs[0]!, stored)
          return now() - from
        }),
      base: () =>
        medianOf(CHECKPOINTS, async () => {
          const from = now()
          await pool.query(
            'insert into plain values ($1, $2) on conflict (id) do update set bytes = excluded.bytes',
            [size, packed],
          )
          return now() - from
        }),
    })
    task.kill('measured')
    await task.catch(() => undefined)
  }
  await pool.end()
  await durable.close()
  await kernel.close()
}

/** A run in worker processes, of which there are always two. */
class Fleet {
  readonly durable: Durable
  private readonly database: string
  private readonly kernel: Kernel
  private readonly work: any
  private readonly workers = new Map<string, ChildProcess>()

  private constructor(database: string, kernel: Kernel, work: any, durable: Durable) {
    this.database = database
    this.kernel = kernel
    this.work = work
    this.durable = durable
  }

  static async open(database: string): Promise<Fleet> {
    const kernel = await Kernel.boot({ cpus: 1, control: false, watchdog: false })
    const work = await kernel.import<Work>(url)
    const durable = await Durable.open({ kernel, database, concurrency: 0 })
    const fleet = new Fleet(database, kernel, work, durable)
    await Promise.all([fleet.add(), fleet.add()])
    return fleet
  }

  private add(): Promise<void> {
    const name = `bench-${Math.random()}`
    const child = spawn(
      process.execPath,
      [new URL('./durable/worker.ts', import.meta.url).pathname, this.database, name],
      { stdio: ['pipe', 'pipe', 'inherit'] },
    )
    this.workers.set(name, child)
    return new Promise(resolve => child.stdout.once('data', () => resolve()))
  }

  start(turns: number): Promise<{ readonly id: string; result(): Promise<any>; status(): Promise<any> }> {
    return this.durable.start(this.work.computes, [turns], { checkpoint: 500 })
  }

  /** Kills the worker of a run, unless it is dead. `added`: resolves when there are two again. */
  kill(worker: string): { readonly at: number; readonly added: Promise<void> } {
    const at = Date.now()
    const child = this.workers.get(worker)
    if (child === undefined) return { at, added: Promise.resolve() }
    child.kill('SIGKILL')
    this.workers.delete(worker)
    return { at, added: this.add() }
  }

  async close(): Promise<void> {
    for (const child of this.workers.values()) child.kill('SIGKILL')
    await this.durable.close()
    await this.kernel.close()
  }
}

/** From a worker's SIGKILL to the first instructions of its run in another one, in heartbeats. */
async function takeoverRow(database: string): Promise<Row> {
  const fleet = await Fleet.open(database)
  const row = await measure(
    'durable/takeover',
    'heartbeats of 3.3 s',
    async () => {
      const run = await fleet.start(1_000_000)
      const began = Date.now()
      const { worker } = await shown(run, began)
      const { at, added } = fleet.kill(worker)
      const { progress } = await shown(run, at, worker)
      await fleet.durable.run(run.id).cancel()
      await run.result().catch(() => undefined)
      await added
      return (progress.at - at) / HEARTBEAT_MS
    },
    { rounds: ROUNDS, target: { valueMost: 2 } },
  )
  await fleet.close()
  return row
}

/** When the run has shown a time after `since`, in another worker than `not`, and has a checkpoint. */
async function shown(
  run: { status(): Promise<any> },
  since: number,
  not?: string,
): Promise<{ readonly worker: string; readonly progress: { readonly at: number } }> {
  for (;;) {
    const status = await run.status()
    const { worker, progress, checkpoint } = status
    if (progress?.at > since && worker !== null && worker !== not && checkpoint !== null) return status
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

/** A computation whose worker is killed every five seconds. Half of the plain one runs before, half after. */
async function killedRow(database: string): Promise<Row> {
  const plain = (turns: number): number => {
    const from = now()
    computesPlainly(turns)
    return now() - from
  }
  plain(100)
  const half = Math.ceil((500 * SECONDS) / (plain(100) / 100))
  const before = plain(half)
  const fleet = await Fleet.open(database)
  const from = now()
  const run = await fleet.start(2 * half)
  const killing = setInterval(() => {
    void run.status().then(({ worker }) => worker !== null && fleet.kill(worker))
  }, KILL_EVERY_MS)
  await run.result()
  const value = now() - from
  clearInterval(killing)
  const { epoch } = await run.status()
  await fleet.close()
  const base = before + plain(half)
  return comparedRow({
    row: 'durable/killed',
    unit: 'ms',
    against: `plain code; ${epoch - 1} workers were killed under it`,
    target: { most: 1.3 },
    values: [value],
    bases: [base],
    ratios: [value / base],
  })
}

async function medianOf(count: number, once: () => Promise<number>): Promise<number> {
  const values: number[] = []
  for (let turn = 0; turn < count; turn++) values.push(await once())
  return median(values)
}

function now(): number {
  return performance.timeOrigin + performance.now()
}
