import { BOSS_SCHEMA, type Database, type Row, SCHEMA } from '../database/database.ts'
import type { Engine, Job } from '../engine.ts'
import { jobsWithoutSession } from '../worker/sessions.ts'
import { type ClaimedRun, isOptions, readOptions } from './rows.ts'
import { tell } from './statements.ts'

/** A row whose counters are at their end cannot be claimed, and must not fail the claims of others. */
const INT_MAX = 2 ** 31 - 1

/** Claims of runs by workers, and the end of those whose worker has died. */
export class Claims {
  private readonly database: Database
  private readonly engine: Engine

  constructor(database: Database, engine: Engine) {
    this.database = database
    this.engine = engine
  }

  /** Claims up to `count` runs for a worker, and gives each its epoch. Jobs that are stale, or
   * are no jobs of runs, are completed. */
  async claim(
    queue: string,
    count: number,
    worker: string,
  ): Promise<{ readonly runs: readonly ClaimedRun[]; readonly schedules: readonly Job[] }> {
    return await this.database.transaction(async sql => {
      // Limits of groups count the claimed jobs: two claims at the same time would not see each other's.
      await sql.query('select pg_advisory_xact_lock(hashtext($1))', [`heddle claim ${queue}`])
      const jobs = await this.engine.claim(sql, queue, count)
      const schedules = jobs.filter(job => isText(dataOf(job).schedule))
      const ofRuns = jobs.filter(job => isText(dataOf(job).run))
      const byJob = new Map(ofRuns.map(job => [job.id, job]))
      const rows = await sql.query(
        `with claimed as (
           update ${SCHEMA}.run
           set state = 'running', epoch = epoch + 1, attempts = attempts + 1, worker = $3, blocked = null,
               wake_at = null, waits_for = null, started_at = coalesce(started_at, clock_timestamp())
           from unnest($1::text[], $2::uuid[]) as c (run, claim)
           where id = c.run and job = c.claim and state in ('queued', 'asleep', 'waiting', 'running')
             and greatest(epoch, attempts) < ${INT_MAX}
           returning run.*
         ), told as (
           insert into ${SCHEMA}.event (run, kind, epoch, detail)
           select id, 'claimed', epoch, jsonb_build_object('worker', $3::text) from claimed
         )
         select * from claimed`,
        [ofRuns.map(job => dataOf(job).run), ofRuns.map(job => job.id), worker],
      )
      // A statement of its own: its snapshot is younger than the lock of the row.
      const withImages = rows.filter(row => row.image_at !== null).map(row => row.id as string)
      const images = new Map<string, Uint8Array>()
      if (withImages.length > 0) {
        const found = await sql.query(`select run, bytes from ${SCHEMA}.image where run = any($1::text[])`, [
          withImages,
        ])
        for (const { run, bytes } of found) images.set(run as string, bytes as Uint8Array)
      }
      const runs = rows.map(row =>
        claimedRun(row, byJob.get(row.job as string)!, images.get(row.id as string)),
      )
      const known = new Set([...rows.map(row => row.job), ...schedules.map(({ id }) => id)])
      await this.engine.complete(
        sql,
        queue,
        jobs.filter(job => !known.has(job.id)),
      )
      return { runs, schedules }
    })
  }

  /** An embedded database was opened: the process that had claims is gone. Ends all claims. */
  async lapseAll(queue: string): Promise<void> {
    await this.database.transaction(async sql => {
      const rows = await sql.query(
        `select j.id, j.retry_count from ${BOSS_SCHEMA}.job j where j.name = $1 and j.state = 'active'`,
        [queue],
      )
      const jobs = rows.map(row => ({ id: row.id as string, retryCount: row.retry_count as number }))
      if (jobs.length > 0) await this.engine.lapse(sql, queue, jobs)
    })
  }

  /** Ends the claims of workers that have no session (worker/sessions.ts). Returns how many. */
  async lapse(queue: string, workers: readonly string[]): Promise<number> {
    return await this.database.transaction(async sql => {
      const jobs = await jobsWithoutSession(sql, queue, workers)
      if (jobs.length === 0) return 0
      await this.engine.lapse(sql, queue, jobs)
      await tell(sql, { queues: new Set([queue]) })
      return jobs.length
    })
  }
}

/** The engine's rows are the operator's too: a job may hold anything. */
function dataOf(job: Job): { readonly run?: unknown; readonly schedule?: unknown } {
  return (job.data ?? {}) as object
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

function claimedRun(row: Row, job: Job, image: Uint8Array | undefined): ClaimedRun {
  return {
    id: row.id as string,
    queue: row.queue as string,
    epoch: row.epoch as number,
    job: { id: job.id, retryCount: job.retryCount },
    module: row.fn_module as string,
    fn: row.fn_name as string,
    name: row.name as string,
    args: row.args as Uint8Array,
    priority: row.priority as number,
    options: readOptions(row.options),
    damage: isOptions(row.options) ? null : 'somebody has changed the options in its row',
    attempts: row.attempts as number,
    failures: row.failures as number,
    groupKey: row.group_key as string | null,
    image: row.image_at === null ? null : (image ?? new Uint8Array()),
    imageRawBytes: row.image_raw_bytes as number | null,
    imageSeq: row.image_seq as number,
    cancelReason: row.cancel_reason as string | null,
    trace: row.trace as ClaimedRun['trace'],
  }
}
