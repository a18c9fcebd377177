import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import type { Db, JobInsert, PgBoss } from 'pg-boss'
import { cronError } from './cron.ts'
import { packageError } from './packages.ts'
import { BOSS_SCHEMA, type Database, isTransient, type Sql } from './database/database.ts'

/**
 * The queue: pg-boss. A job stands for a run while the run waits for a worker or is at one; a run that sleeps
 * has a job that starts later, and one that waits for a message has none. A job is never changed by us: a run
 * that goes on to another state completes its job and sends another, in one transaction.
 */
export interface Job {
  readonly id: string
  /** The attempt that was claimed: the engine ignores calls for an older one. */
  readonly retryCount: number
  readonly data: JobData
}

/** A job of a run, or of a schedule, which becomes a run when a worker claims it. */
export type JobData = { readonly run: string } | { readonly schedule: string }

export interface SendOptions {
  readonly priority: number
  /** Seconds of the database's clock before a worker may claim it. */
  readonly delay?: number
  /** At most `limit` jobs of a key are at workers at the same time. */
  readonly group?: { readonly key: string; readonly limit: number } | null
}

export interface EngineOptions {
  /**
   * Seconds without a heartbeat after which a job goes to another worker: 10 or more. Jobs of an embedded
   * database have none (worker/leases.ts).
   */
  readonly lease: number
  /** Whether this process watches leases and schedules. */
  readonly supervises: boolean
  readonly onError: (error: Error) => void
}

/** A claim of a job: calls of older ones have no effect. */
export type Claimed = Pick<Job, 'id' | 'retryCount'>

const RETRIES_MAX = 1_000_000
const YEARS_10 = 315_360_000
/** The longest time that the engine leaves a job with one worker. A run hands itself over before that. */
export const CLAIM_SECONDS_MAX: number = 24 * 3600
/** Tiers are the limits of groups: pg-boss wants their table with each claim. */
const groupLimits: Readonly<Record<string, number>> = Object.fromEntries(
  Array.from({ length: 1000 }, (_, index) => [String(index + 1), index + 1]),
)

export class Engine {
  private readonly boss: PgBoss
  private readonly database: Database
  private readonly lease: number
  private readonly queues = new Map<string, Promise<void>>()

  private constructor(boss: PgBoss, database: Database, lease: number) {
    this.boss = boss
    this.database = database
    this.lease = lease
  }

  static async open(database: Database, options: EngineOptions): Promise<Engine> {
    const { PgBoss } = await loadBoss()
    const boss = new PgBoss({
      db: adapter(database),
      schema: BOSS_SCHEMA,
      backend: database.kind === 'embedded' ? 'pglite' : 'postgres',
      supervise: options.supervises,
      schedule: options.supervises,
      superviseIntervalSeconds: 1,
      monitorIntervalSeconds: 1,
      maintenanceIntervalSeconds: 3600,
      cronMonitorIntervalSeconds: 5,
      cronWorkerIntervalSeconds: 1,
    })
    boss.on('error', options.onError)
    await boss.start()
    return new Engine(boss, database, options.lease)
  }

  /** Makes the queue unless it exists. Each process does so before its first use. */
  ensureQueue(name: string): Promise<void> {
    let made = this.queues.get(name)
    if (made === undefined) {
      made = this.makeQueue(name)
      this.queues.set(name, made)
      made.catch(() => this.queues.delete(name))
    }
    return made
  }

  private async makeQueue(name: string): Promise<void> {
    const options = {
      retryLimit: RETRIES_MAX,
      retryDelay: 0,
      ...(this.database.kind === 'postgres' && { heartbeatSeconds: this.lease }),
      expireInSeconds: CLAIM_SECONDS_MAX,
      retentionSeconds: YEARS_10,
      deleteAfterSeconds: 600,
    }
    await this.boss.createQueue(name, options)
    await this.boss.createQueue(deadQueue(name), { retentionSeconds: YEARS_10 })
    // pg-boss reads a queue's settings on a connection of its own, once. In a transaction of an embedded
    // database, which has one connection, it would wait for itself.
    for (const queue of [name, deadQueue(name)]) await this.boss.findJobs(queue, { id: randomUUID() })
  }

  /** In a transaction: the job becomes visible with it. */
  async send(sql: Sql, queue: string, data: JobData, options: SendOptions): Promise<string> {
    const { priority, delay = 0, group } = options
    const id = await this.boss.send(queue, data, {
      priority,
      ...(delay > 0 && { startAfter: delay }),
      ...(group && { group: { id: group.key, tier: String(group.limit) } }),
      db: executor(sql),
    })
    if (id === null) throw new Error(`the queue ${queue} has refused the job`)
    return id
  }

  /** Sends many jobs, with ids of the caller's. */
  async insert(
    sql: Sql,
    jobs: readonly {
      readonly id: string
      readonly queue: string
      readonly data: JobData
      readonly options: SendOptions
    }[],
  ): Promise<void> {
    const queues = new Map<string, JobInsert<JobData>[]>()
    for (const { id, queue, data, options } of jobs) {
      const { priority, delay = 0, group } = options
      const some = queues.get(queue) ?? []
      queues.set(queue, some)
      some.push({
        id,
        data,
        priority,
        ...(delay > 0 && { startAfter: String(delay) }),
        ...(group && { group: { id: group.key, tier: String(group.limit) } }),
      })
    }
    for (const [queue, some] of queues) await this.boss.insert(queue, some, { db: executor(sql) })
  }

  /** Claims jobs, the best priority first. Each is this worker's until its heartbeats stop. */
  async claim(sql: Sql, queue: string, count: number): Promise<readonly Job[]> {
    const jobs = await this.boss.fetch<JobData>(queue, {
      batchSize: count,
      groupConcurrency: { default: 1, tiers: { ...groupLimits } },
      db: executor(sql),
    })
    return jobs.map(({ id, retryCount, data }) => ({ id, retryCount, data }))
  }

  async complete(sql: Sql, queue: string, jobs: readonly Claimed[]): Promise<void> {
    if (jobs.length > 0) await this.boss.complete(queue, [...jobs], null, { db: executor(sql) })
  }

  /** Ends claims as the end of their lease does: others may claim the jobs. */
  async lapse(sql: Sql, queue: string, jobs: readonly Claimed[]): Promise<void> {
    await this.boss.fail(
      queue,
      [...jobs],
      { message: 'the session of the worker has ended' },
      { db: executor(sql) },
    )
  }

  async cancel(sql: Sql, queue: string, job: string): Promise<void> {
    await this.boss.cancel(queue, job, { db: executor(sql) })
  }

  /** A copy of the job of a run that has failed for good, where operators of the engine look for it. */
  async bury(sql: Sql, queue: string, data: JobData): Promise<void> {
    await this.boss.send(deadQueue(queue), data, { db: executor(sql) })
  }

  /** Renews the leases. Returns the ids of the jobs that are still this worker's. */
  async touch(queue: string, jobs: readonly Claimed[]): Promise<readonly string[]> {
    const answer = (await this.boss.touch(queue, [...jobs])) as { settled?: string[]; jobs: string[] }
    return answer.settled ?? answer.jobs
  }

  async schedule(
    queue: string,
    key: string,
    cron: string,
    data: JobData,
    tz: string | undefined,
  ): Promise<void> {
    try {
      await this.boss.schedule(queue, cron, data, { key, ...(tz !== undefined && { tz }) })
    } catch (error) {
      // An error of the database has a code; one of the expression has none.
      if ((error as { code?: unknown }).code === undefined && !isTransient(error))
        throw cronError(key, cron, error as Error)
      throw error
    }
  }

  async unschedule(queue: string, key: string): Promise<void> {
    await this.boss.unschedule(queue, key)
  }

  async schedules(queue: string): Promise<readonly { readonly key: string; readonly cron: string }[]> {
    return (await this.boss.getSchedules(queue)).map(({ key, cron }) => ({ key, cron }))
  }

  async close(): Promise<void> {
    await this.boss.stop({ graceful: false, close: false })
  }
}

/** Where copies of the jobs of failed runs go. */
export function deadQueue(queue: string): string {
  return `${queue}.dead`
}

/** Loads pg-boss, where this Node can run it. */
export async function loadBoss(): Promise<typeof import('pg-boss')> {
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major! < 22 || (major === 22 && minor! < 12)) {
    throw new Error(
      `heddle/durable: its queue, pg-boss, needs Node 22.12 or later, and this is Node ${process.versions.node}; use a later Node`,
    )
  }
  let boss: typeof import('pg-boss')
  try {
    boss = await import('pg-boss')
  } catch (error) {
    const missing = "heddle/durable needs the package 'pg-boss'; run npm install pg-boss"
    throw packageError('pg-boss', missing, error)
  }
  checkBoss(installedBoss())
  return boss
}

/** The first version whose calls take the attempt of a job. */
export const BOSS_MIN = '12.35.0'

/** `version`: of the installed pg-boss; null: it is part of a bundle. */
export function checkBoss(version: string | null): void {
  const [major, minor] = (version ?? BOSS_MIN).split('.').map(Number)
  const [majorMin, minorMin] = BOSS_MIN.split('.').map(Number)
  if (major! < majorMin! || (major === majorMin && minor! < minorMin!)) {
    throw new Error(
      `heddle/durable: it needs pg-boss ${BOSS_MIN} or later, and ${version} is installed; run npm install pg-boss@^${BOSS_MIN}`,
    )
  }
}

function installedBoss(): string | null {
  try {
    return (createRequire(import.meta.url)('pg-boss/package.json') as { version: string }).version
  } catch {
    return null
  }
}

function executor(sql: Sql): Db {
  return {
    async executeSql(text: string, values?: unknown[]) {
      const rows = values?.length ? await sql.query(text, values) : await sql.script(text)
      return { rows: [...rows] }
    },
  }
}

function adapter(database: Database): Db {
  return {
    ...executor(database),
    listen: async (channel, onNotification, onReconnect) => ({
      close: await database.listen(channel, onNotification, onReconnect),
    }),
  }
}
