import { randomUUID } from 'node:crypto'
import { type Database, SCHEMA } from '../database/database.ts'
import type { Engine, Job } from '../engine.ts'
import { RunEndedError, RunMissingError } from '../errors.ts'
import { hasEnded, type RunState } from '../states.ts'
import { jsonText } from './jsontext.ts'
import type { NewRun } from './rows.ts'
import { base64, enginePriority, record, sendOptionsOf, tell } from './statements.ts'

/** What programs ask of runs, in any process. */
export class Calls {
  private readonly database: Database
  private readonly engine: Engine

  constructor(database: Database, engine: Engine) {
    this.database = database
    this.engine = engine
  }

  /** Inserts runs and their jobs. Returns the ids of those that were not there. */
  async start(runs: readonly NewRun[]): Promise<ReadonlySet<string>> {
    for (const { queue } of runs) await this.engine.ensureQueue(queue)
    return await this.database.transaction(async sql => {
      const jobs = runs.map(() => randomUUID())
      const rows = await sql.query(
        `with new as (
           insert into ${SCHEMA}.run
             (id, queue, job, fn_module, fn_name, name, args, priority, options, group_key, trace, wake_at)
           select n.id, n.queue, n.job, n.module, n.fn, n.name, decode(n.args, 'base64'), n.priority,
                  n.options::jsonb, n.group_key, n.trace::jsonb,
                  case when n.delay > 0 then clock_timestamp() + n.delay * interval '1 second' end
           from unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[],
                       $8::int[], $9::text[], $10::text[], $11::text[], $12::float8[])
             as n (id, queue, job, module, fn, name, args, priority, options, group_key, trace, delay)
           on conflict (id) do nothing
           returning id
         ), told as (
           insert into ${SCHEMA}.event (run, kind, epoch) select id, 'queued', 0 from new
         )
         select id from new`,
        [
          runs.map(run => run.id),
          runs.map(run => run.queue),
          jobs,
          runs.map(run => run.module),
          runs.map(run => run.fn),
          runs.map(run => run.name),
          runs.map(run => base64(run.args)),
          runs.map(run => run.priority),
          runs.map(run => jsonText(run.options)),
          runs.map(run => run.group?.key ?? null),
          runs.map(run => (run.trace === null ? null : jsonText(run.trace))),
          runs.map(run => run.delay),
        ],
      )
      const started = new Set(rows.map(row => row.id as string))
      const news = runs
        .map((run, index) => ({ run, job: jobs[index]! }))
        .filter(({ run }) => started.has(run.id))
      await this.engine.insert(
        sql,
        news.map(({ run, job }) => ({
          id: job,
          queue: run.queue,
          data: { run: run.id },
          options: { priority: enginePriority(run.priority), delay: run.delay, group: run.group },
        })),
      )
      await tell(sql, {
        queues: new Set(news.filter(({ run }) => run.delay === 0).map(({ run }) => run.queue)),
      })
      return started
    })
  }

  /** The job of a schedule becomes a run of the same id, once. */
  async startScheduled(queue: string, job: Job, run: NewRun): Promise<void> {
    await this.start([run])
    await this.drop(queue, job)
  }

  /** Ends a job that no run needs any more. */
  async drop(queue: string, job: Job): Promise<void> {
    await this.database.transaction(sql => this.engine.complete(sql, queue, [job]))
  }

  /** Adds a message, and queues the run if it waits for it. `key`: the same call again has no effect. */
  async send(id: string, name: string, value: Uint8Array, key: string): Promise<void> {
    await this.database.transaction(async sql => {
      // The row first: the message refers to it, and two sends that hold such a reference would wait for each
      // other.
      const rows = await sql.query(`select * from ${SCHEMA}.run where id = $1 for update`, [id])
      const [row] = rows
      if (row === undefined) throw new RunMissingError(id)
      const sent = await sql.query(
        `insert into ${SCHEMA}.message (run, name, value, key) values ($1, $2, $3, $4)
         on conflict do nothing returning id`,
        [id, name, value, key],
      )
      if (sent.length === 0) return
      // One that failed or was cancelled may be retried, and receives it then.
      if (row.state === 'completed') throw new RunEndedError(id, `send('${id}', '${name}')`)
      await record(sql, id, row.epoch as number, 'message', { name })
      if (row.state === 'waiting' && row.waits_for === name) {
        const queue = row.queue as string
        const job = await this.engine.send(sql, queue, { run: id }, sendOptionsOf(row, 0))
        await sql.query(
          `update ${SCHEMA}.run set state = 'queued', job = $2, waits_for = null, wake_at = null where id = $1`,
          [id, job],
        )
        await tell(sql, { queues: new Set([queue]), messages: [id] })
      } else await tell(sql, { messages: [id] })
    })
  }

  /**
   * Cancels a run that no worker has; asks the worker of a running one. Returns its state then. Writes the
   * row of the run alone: its job is stale from then on, and taken away in a second transaction.
   */
  async cancel(id: string, because: string): Promise<RunState> {
    const reason = because.replaceAll('\0', '\ufffd')
    const before = await this.database.transaction(async sql => {
      const rows = await sql.query(
        `select state, job, queue, epoch from ${SCHEMA}.run where id = $1 for update`,
        [id],
      )
      const [row] = rows
      if (row === undefined) throw new RunMissingError(id)
      const state = row.state as RunState
      if (hasEnded(state)) return row
      if (state === 'running') {
        await sql.query(
          `update ${SCHEMA}.run set cancel_reason = coalesce(cancel_reason, $2) where id = $1`,
          [id, reason],
        )
        await record(sql, id, row.epoch as number, 'cancelling', { reason })
        await tell(sql, { cancelled: [id] })
        return row
      }
      await sql.query(
        `update ${SCHEMA}.run
         set state = 'cancelled', cancel_reason = $2, ended_at = clock_timestamp(), job = null, waits_for = null,
             wake_at = null, worker = null, image_at = null
         where id = $1`,
        [id, reason],
      )
      await sql.query(`delete from ${SCHEMA}.image where run = $1`, [id])
      await record(sql, id, row.epoch as number, 'cancelled', { reason })
      await tell(sql, { ended: new Set([id]) })
      return row
    })
    const state = before.state as RunState
    if (hasEnded(state) || state === 'running') return state
    if (before.job !== null)
      await this.engine.cancel(this.database, before.queue as string, before.job as string)
    return 'cancelled'
  }

  /** Queues a run that has failed or was cancelled. False: it has not ended so. */
  async retry(id: string, fromStart: boolean): Promise<boolean> {
    return await this.database.transaction(async sql => {
      const rows = await sql.query(`select * from ${SCHEMA}.run where id = $1 for update`, [id])
      const [row] = rows
      if (row === undefined) throw new RunMissingError(id)
      if (row.state !== 'failed' && row.state !== 'cancelled') return false
      const queue = row.queue as string
      const job = await this.engine.send(sql, queue, { run: id }, sendOptionsOf(row, 0))
      await sql.query(
        `update ${SCHEMA}.run
         set state = 'queued', job = $2, failures = 0, outcome = null, ended_at = null, cancel_reason = null,
             blocked = null, image_at = case when $3::bool then null else image_at end
         where id = $1`,
        [id, job, fromStart],
      )
      if (fromStart) await sql.query(`delete from ${SCHEMA}.image where run = $1`, [id])
      await record(sql, id, row.epoch as number, 'queued', { retried: true })
      await tell(sql, { queues: new Set([queue]) })
      return true
    })
  }
}
