import { randomUUID } from 'node:crypto'
import {
  BOSS_SCHEMA,
  CHANNEL,
  type Database,
  isTransient,
  type Row,
  SCHEMA,
  type Sql,
} from './database/database.ts'
import type { Claimed, Engine, Job, SendOptions } from './engine.ts'
import { FencedError, RunMissingError } from './errors.ts'
import { newsText } from './news.ts'
import { hasEnded, type RunError, type RunEventKind, type RunState } from './states.ts'
import { jobsWithoutSession } from './worker/sessions.ts'

/**
 * The rows of runs. Fencing: each claim of a run gives its row a new epoch. Each write of a worker names its
 * epoch in the statement that writes, and `mine` is the condition:
 *
 *   zombie (epoch 1)                          new owner
 *   ----------------                          ---------
 *   (A) claims: epoch = 1
 *   stops, for longer than its lease
 *                                             (B) the engine gives the job to another worker
 *                                             (C) claims: epoch = 2
 *   (D) writes where epoch = 1: no row
 *   FencedError: its task is killed
 *
 * (C) and the claim of the job are one transaction, and so are a write and its condition. Lock order: the
 * job, then the row of its run.
 */
const mine = `id = $1 and epoch = $2 and state = 'running'`

/** A run `r` of queue $1 that has not ended, waits for more than a message, and has no live job. */
const jobless = `r.queue = $1
  and (r.state in ('queued', 'asleep', 'running') or r.state = 'waiting' and r.wake_at is not null)
  and not exists (select 1 from ${BOSS_SCHEMA}.job j
                  where j.name = r.queue and j.id = r.job and j.state < 'completed')`

/** A run as a worker claims it. */
export interface ClaimedRun {
  readonly id: string
  readonly queue: string
  readonly epoch: number
  readonly job: Claimed
  readonly module: string
  readonly fn: string
  readonly name: string
  readonly args: Uint8Array
  readonly priority: number
  readonly options: StoredOptions
  readonly attempts: number
  readonly failures: number
  readonly groupKey: string | null
  /** Its last image, as stored; null: it begins with its arguments. Empty: it is gone. */
  readonly image: Uint8Array | null
  readonly imageRawBytes: number | null
  readonly imageSeq: number
  readonly cancelReason: string | null
  readonly trace: Readonly<Record<string, string>> | null
}

/** The options of a run that its row keeps. */
export interface StoredOptions {
  readonly checkpoint: number | null
  readonly retries: number
  readonly backoff: { readonly initial: number; readonly factor: number; readonly max: number }
  readonly retryFrom: 'checkpoint' | 'start'
  readonly onCodeChanged: 'wait' | 'restart' | { readonly module: string; readonly name: string }
  readonly groupLimit: number
}

export interface NewRun {
  readonly id: string
  readonly queue: string
  readonly module: string
  readonly fn: string
  readonly name: string
  readonly args: Uint8Array
  readonly priority: number
  readonly options: StoredOptions
  readonly group: SendOptions['group']
  /** Seconds before it may start. */
  readonly delay: number
  readonly trace: Readonly<Record<string, string>> | null
}

/** What a worker stores when a run ends. */
export interface Ending {
  readonly run: ClaimedRun
  readonly state: 'completed' | 'failed' | 'cancelled'
  readonly outcome: Uint8Array | null
  readonly error: RunError | null
}

export interface StoredImage {
  readonly bytes: Uint8Array
  readonly rawBytes: number
  /** Larger than that of each image of the run before. */
  readonly seq: number
}

/** How a run leaves its worker without having ended. */
export interface Leaving {
  readonly state: 'queued' | 'asleep' | 'waiting'
  readonly kind: RunEventKind
  /** Seconds until a worker may claim it; null: only a message queues it. */
  readonly delay: number | null
  readonly image?: StoredImage
  readonly waitsFor?: string
  readonly failed?: RunError
  readonly blocked?: string
  readonly dropsImage?: boolean
}

export class Store {
  readonly database: Database
  readonly engine: Engine

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
          runs.map(run => JSON.stringify(run.options)),
          runs.map(run => run.group?.key ?? null),
          runs.map(run => (run.trace === null ? null : JSON.stringify(run.trace))),
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

  /** Claims up to `count` runs for a worker, and gives each its epoch. Jobs that are stale are completed. */
  async claim(
    queue: string,
    count: number,
    worker: string,
  ): Promise<{ readonly runs: readonly ClaimedRun[]; readonly schedules: readonly Job[] }> {
    return await this.database.transaction(async sql => {
      // Limits of groups count the claimed jobs: two claims at the same time would not see each other's.
      await sql.query('select pg_advisory_xact_lock(hashtext($1))', [`heddle claim ${queue}`])
      const jobs = await this.engine.claim(sql, queue, count)
      const schedules = jobs.filter(job => 'schedule' in job.data)
      const ofRuns = jobs.filter(job => 'run' in job.data)
      if (ofRuns.length === 0) return { runs: [], schedules }
      const byJob = new Map(ofRuns.map(job => [job.id, job]))
      const rows = await sql.query(
        `with claimed as (
           update ${SCHEMA}.run
           set state = 'running', epoch = epoch + 1, attempts = attempts + 1, worker = $3, blocked = null,
               wake_at = null, waits_for = null, started_at = coalesce(started_at, clock_timestamp())
           from unnest($1::text[], $2::uuid[]) as c (run, claim)
           where id = c.run and job = c.claim and state in ('queued', 'asleep', 'waiting', 'running')
           returning run.*
         ), told as (
           insert into ${SCHEMA}.event (run, kind, epoch, detail)
           select id, 'claimed', epoch, jsonb_build_object('worker', $3::text) from claimed
         )
         select * from claimed`,
        [ofRuns.map(job => (job.data as { run: string }).run), ofRuns.map(job => job.id), worker],
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
      const known = new Set(rows.map(row => row.job))
      await this.engine.complete(
        sql,
        queue,
        ofRuns.filter(job => !known.has(job.id)),
      )
      return { runs, schedules }
    })
  }

  /** The job of a schedule becomes a run of the same id, once. */
  async startScheduled(queue: string, job: Job, run: NewRun): Promise<void> {
    await this.start([run])
    await this.database.transaction(sql => this.engine.complete(sql, queue, [job]))
  }

  /**
   * Stores image number `seq` of a run. Throws FencedError if the run is not this worker's. A statement whose
   * answer was lost may have its effect late: it never replaces an image of a larger number.
   */
  async saveImage(run: ClaimedRun, image: StoredImage): Promise<void> {
    const { id, epoch } = run
    const { bytes, rawBytes, seq } = image
    const rows = await this.database.query(
      `with saved as (
         update ${SCHEMA}.run
         set image_bytes = $4, image_raw_bytes = $5, image_seq = $6, image_at = clock_timestamp()
         where ${mine} and image_seq < $6 returning id, epoch
       ), told as (
         insert into ${SCHEMA}.event (run, kind, epoch, detail)
         select id, 'checkpoint', epoch, jsonb_build_object('bytes', $4::int, 'rawBytes', $5::int) from saved
       )
       insert into ${SCHEMA}.image (run, epoch, bytes) select id, epoch, $3 from saved
       on conflict (run) do update set epoch = excluded.epoch, bytes = excluded.bytes, at = excluded.at
       returning run`,
      [id, epoch, bytes, bytes.length, rawBytes, seq],
    )
    if (rows.length > 0) return
    const held = await this.database.query(`select 1 from ${SCHEMA}.run where ${mine} and image_seq >= $3`, [
      id,
      epoch,
      seq,
    ])
    if (held.length === 0) throw new FencedError(id, epoch)
  }

  /** Stores how runs have ended. Returns the ids of those that were no longer this worker's. */
  async finish(endings: readonly Ending[]): Promise<ReadonlySet<string>> {
    const fenced = await this.database.transaction(async sql => {
      for (const [queue, some] of byQueue(endings)) {
        await this.engine.complete(
          sql,
          queue,
          some.map(({ run }) => run.job),
        )
      }
      const rows = await sql.query(
        `with ended as (
           update ${SCHEMA}.run
           set state = f.state, outcome = decode(f.outcome, 'base64'), error = f.error::jsonb,
               ended_at = clock_timestamp(), worker = null, job = null,
               failures = failures + case when f.state = 'failed' then 1 else 0 end
           from unnest($1::text[], $2::int[], $3::text[], $4::text[], $5::text[])
             as f (run, its, state, outcome, error)
           where run.id = f.run and run.epoch = f.its and run.state = 'running'
           returning run.id, run.epoch, run.state
         ), told as (
           insert into ${SCHEMA}.event (run, kind, epoch) select id, state, epoch from ended
         ), dropped as (
           delete from ${SCHEMA}.image where run in (select id from ended where state <> 'failed')
         )
         select id from ended`,
        [
          endings.map(({ run }) => run.id),
          endings.map(({ run }) => run.epoch),
          endings.map(({ state }) => state),
          endings.map(({ outcome }) => (outcome === null ? null : base64(outcome))),
          endings.map(({ error }) => (error === null ? null : JSON.stringify(error))),
        ],
      )
      const stored = new Set(rows.map(row => row.id as string))
      for (const { run, state } of endings) {
        if (state === 'failed' && stored.has(run.id)) await this.engine.bury(sql, run.queue, { run: run.id })
      }
      await tell(sql, { ended: stored })
      return new Set(endings.map(({ run }) => run.id).filter(id => !stored.has(id)))
    })
    return fenced
  }

  /**
   * After `finish` failed without an answer: whether it had its effect. True: the outcome is stored. False:
   * the run is still this worker's.
   */
  async hasFinished({ id, epoch }: ClaimedRun): Promise<boolean> {
    const rows = await this.database.query(`select state, epoch from ${SCHEMA}.run where id = $1`, [id])
    const [row] = rows
    if (row === undefined || row.epoch !== epoch) throw new FencedError(id, epoch)
    return hasEnded(row.state as RunState)
  }

  /**
   * The run leaves its worker: its job is completed and another one sent. Returns the state that it is in
   * now: a run that waits for a message that has come in the meantime is queued.
   */
  async leave(run: ClaimedRun, leaving: Leaving): Promise<RunState> {
    const { id, epoch, queue } = run
    return await this.database.transaction(async sql => {
      await this.engine.complete(sql, queue, [run.job])
      const locked = await sql.query(`select cancel_reason from ${SCHEMA}.run where ${mine} for update`, [
        id,
        epoch,
      ])
      if (locked.length === 0) throw new FencedError(id, epoch)
      let { state, delay } = leaving
      if (state === 'waiting' && (await this.hasMessage(sql, id, leaving.waitsFor!))) {
        state = 'queued'
        delay = 0
      }
      // A run that is being cancelled goes to a worker, which ends it.
      if (locked[0]!.cancel_reason !== null) delay = 0
      const job =
        delay === null ? null : await this.engine.send(sql, queue, { run: id }, sendOptions(run, delay))
      const { image, failed, dropsImage = false } = leaving
      await sql.query(
        `update ${SCHEMA}.run
         set state = $3, job = $4, worker = null, waits_for = $5, blocked = $6,
             wake_at = case when $7::float8 > 0 then clock_timestamp() + $7::float8 * interval '1 second' end,
             failures = failures + $8::int, error = coalesce($9::jsonb, error),
             image_bytes = case when $12::bool then null else coalesce($10::int, image_bytes) end,
             image_raw_bytes = case when $12::bool then null else coalesce($11::int, image_raw_bytes) end,
             image_seq = coalesce($13::int, image_seq),
             image_at = case when $12::bool then null when $10::int is null then image_at else clock_timestamp() end
         where ${mine}`,
        [
          id,
          epoch,
          state,
          job,
          state === 'waiting' ? leaving.waitsFor : null,
          leaving.blocked ?? null,
          delay,
          failed === undefined ? 0 : 1,
          failed === undefined ? null : JSON.stringify(failed),
          image?.bytes.length ?? null,
          image?.rawBytes ?? null,
          dropsImage,
          image?.seq ?? null,
        ],
      )
      if (image !== undefined) {
        await sql.query(
          `insert into ${SCHEMA}.image (run, epoch, bytes) values ($1, $2, $3)
           on conflict (run) do update set epoch = excluded.epoch, bytes = excluded.bytes, at = excluded.at`,
          [id, epoch, image.bytes],
        )
      } else if (dropsImage) await sql.query(`delete from ${SCHEMA}.image where run = $1`, [id])
      const detail = failed ?? (leaving.blocked === undefined ? null : { why: leaving.blocked })
      await record(sql, id, epoch, leaving.kind, detail)
      await tell(sql, { queues: new Set(delay === 0 ? [queue] : []) })
      return state
    })
  }

  /**
   * After `leave` failed without an answer: whether it had its effect. False: the run is still this worker's.
   */
  async hasLeft({ id, epoch, job }: ClaimedRun): Promise<boolean> {
    const rows = await this.database.query(`select epoch, job, state from ${SCHEMA}.run where id = $1`, [id])
    const [row] = rows
    if (row === undefined || row.epoch !== epoch) return true
    return row.state !== 'running' || row.job !== job.id
  }

  private async hasMessage(sql: Sql, id: string, name: string): Promise<boolean> {
    const rows = await sql.query(
      `select 1 from ${SCHEMA}.message where run = $1 and name = $2 and not is_taken limit 1`,
      [id, name],
    )
    return rows.length > 0
  }

  /** The stored result of a `once`; null: there is none. */
  async journaled({ id, epoch }: ClaimedRun, key: string): Promise<Uint8Array | null> {
    const rows = await this.database.query(
      `select (select value from ${SCHEMA}.journal where run = $1 and key = $3) as value
       from ${SCHEMA}.run where ${mine}`,
      [id, epoch, key],
    )
    if (rows.length === 0) throw new FencedError(id, epoch)
    return rows[0]!.value as Uint8Array | null
  }

  /** Stores the result of a `once`, unless there is one. Returns the one that is stored. */
  async journal({ id, epoch }: ClaimedRun, key: string, value: Uint8Array): Promise<Uint8Array> {
    return await this.database.transaction(async sql => {
      await hold(sql, id, epoch)
      await sql.query(
        `insert into ${SCHEMA}.journal (run, key, value, epoch) values ($1, $2, $3, $4) on conflict do nothing`,
        [id, key, value, epoch],
      )
      const rows = await sql.query(`select value from ${SCHEMA}.journal where run = $1 and key = $2`, [
        id,
        key,
      ])
      return rows[0]!.value as Uint8Array
    })
  }

  /** Milliseconds until the deadline of a wait, which begins when it is asked for the first time. */
  async deadline({ id, epoch }: ClaimedRun, key: string, ms: number): Promise<number> {
    return await this.database.transaction(async sql => {
      await hold(sql, id, epoch)
      await sql.query(
        `insert into ${SCHEMA}.journal (run, key, deadline, epoch)
         values ($1, $2, clock_timestamp() + $3::float8 * interval '1 millisecond', $4) on conflict do nothing`,
        [id, key, ms, epoch],
      )
      const rows = await sql.query(
        `select extract(epoch from deadline - clock_timestamp())::float8 * 1000 as ms
         from ${SCHEMA}.journal where run = $1 and key = $2`,
        [id, key],
      )
      return Math.max(0, rows[0]!.ms as number)
    })
  }

  /** The message of a wait: the one that it has received before, or the oldest one of the name. */
  async receive(run: ClaimedRun, key: string, name: string): Promise<Uint8Array | null> {
    const { id, epoch } = run
    return await this.database.transaction(async sql => {
      await hold(sql, id, epoch)
      const before = await sql.query(`select value from ${SCHEMA}.journal where run = $1 and key = $2`, [
        id,
        key,
      ])
      if (before[0]?.value != null) return before[0].value as Uint8Array
      const taken = await sql.query(
        `update ${SCHEMA}.message set is_taken = true
         where id = (select min(id) from ${SCHEMA}.message where run = $1 and name = $2 and not is_taken)
         returning value`,
        [id, name],
      )
      if (taken.length === 0) return null
      await sql.query(
        `insert into ${SCHEMA}.journal (run, key, value, epoch) values ($1, $2, $3, $4)
         on conflict (run, key) do update set value = excluded.value`,
        [id, key, taken[0]!.value, epoch],
      )
      return taken[0]!.value as Uint8Array
    })
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
  async cancel(id: string, reason: string): Promise<RunState> {
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
  async retry(id: string): Promise<boolean> {
    return await this.database.transaction(async sql => {
      const rows = await sql.query(
        `select * from ${SCHEMA}.run where id = $1 and state in ('failed', 'cancelled') for update`,
        [id],
      )
      if (rows.length === 0) return false
      const [row] = rows
      const queue = row!.queue as string
      const job = await this.engine.send(sql, queue, { run: id }, sendOptionsOf(row!, 0))
      await sql.query(
        `update ${SCHEMA}.run
         set state = 'queued', job = $2, failures = 0, outcome = null, ended_at = null, cancel_reason = null,
             blocked = null
         where id = $1`,
        [id, job],
      )
      await record(sql, id, row!.epoch as number, 'queued', { retried: true })
      await tell(sql, { queues: new Set([queue]) })
      return true
    })
  }

  /** Which of these runs are this worker's no more, and which are to be cancelled. */
  async review(
    worker: string,
    runs: readonly ClaimedRun[],
  ): Promise<{ readonly lost: readonly string[]; readonly cancelled: ReadonlyMap<string, string> }> {
    const rows = await this.database.query(
      `select id, epoch, cancel_reason from ${SCHEMA}.run where worker = $1 and state = 'running'`,
      [worker],
    )
    const kept = new Map(rows.map(row => [row.id as string, row]))
    const lost = runs.filter(({ id, epoch }) => kept.get(id)?.epoch !== epoch).map(({ id }) => id)
    const cancelled = new Map<string, string>()
    for (const { id, epoch } of runs) {
      const row = kept.get(id)
      if (row?.epoch === epoch && row.cancel_reason !== null) cancelled.set(id, row.cancel_reason as string)
    }
    return { lost, cancelled }
  }

  async saveProgress({ id, epoch }: ClaimedRun, progress: string): Promise<void> {
    await this.database.query(
      `with saved as (update ${SCHEMA}.run set progress = $3::jsonb where ${mine} returning id)
       select pg_notify('${CHANNEL}', json_build_object('progress', json_build_array(id))::text) from saved`,
      [id, epoch, progress],
    )
  }

  /** Adds an entry to the history of a run that is this worker's. */
  async note({ id, epoch }: ClaimedRun, kind: RunEventKind, detail: object): Promise<void> {
    await this.database.query(
      `insert into ${SCHEMA}.event (run, kind, epoch, detail)
       select id, $3, epoch, $4::jsonb from ${SCHEMA}.run where ${mine}`,
      [id, epoch, kind, JSON.stringify(detail)],
    )
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

  /**
   * Sends a new job for each run that should have one and has none: the engine's rows are the operator's too.
   * Returns how many there were.
   */
  async repair(queue: string): Promise<number> {
    const rows = await this.database.query(`select id from ${SCHEMA}.run r where ${jobless} limit 100`, [
      queue,
    ])
    let repaired = 0
    for (const { id } of rows) {
      await this.database.transaction(async sql => {
        await sql.query(`select 1 from ${SCHEMA}.run where id = $1 for update`, [id])
        // A statement of its own: its snapshot is younger than the lock.
        const found = await sql.query(
          `select *, greatest(0, extract(epoch from wake_at - clock_timestamp()))::float8 as delay
           from ${SCHEMA}.run r where ${jobless} and r.id = $2`,
          [queue, id],
        )
        const [row] = found
        if (row === undefined) return
        const options = sendOptionsOf(row, (row.delay as number | null) ?? 0)
        const job = await this.engine.send(sql, queue, { run: id as string }, options)
        await sql.query(`update ${SCHEMA}.run set job = $2 where id = $1`, [id, job])
        await record(sql, id as string, row.epoch as number, 'queued', { why: 'its job was gone' })
        repaired++
      })
    }
    return repaired
  }

  /** Forgets runs that ended so many seconds ago. */
  async prune(seconds: number): Promise<void> {
    await this.database.query(
      `delete from ${SCHEMA}.run
       where ended_at < clock_timestamp() - $1::float8 * interval '1 second'`,
      [seconds],
    )
  }

  async rowOf(id: string): Promise<Row> {
    const rows = await this.database.query(
      `select *, extract(epoch from clock_timestamp() - image_at)::float8 * 1000 as image_age
       from ${SCHEMA}.run where id = $1`,
      [id],
    )
    if (rows.length === 0) throw new RunMissingError(id)
    return rows[0]!
  }

  /** The rows of those of these runs that exist. */
  async rowsOf(ids: readonly string[]): Promise<readonly Row[]> {
    return await this.database.query(
      `select *, extract(epoch from clock_timestamp() - image_at)::float8 * 1000 as image_age
       from ${SCHEMA}.run where id = any($1::text[])`,
      [ids],
    )
  }

  /** Runs in the order of their ids, from behind `after` on. */
  async page(after: string, limit: number): Promise<readonly Row[]> {
    return await this.database.query(
      `select *, extract(epoch from clock_timestamp() - image_at)::float8 * 1000 as image_age
       from ${SCHEMA}.run where id > $1 order by id limit $2`,
      [after, limit],
    )
  }

  /** The rows of many runs that are awaited, in their order: one statement. Null: there is no such run. */
  async outcomesOf(ids: readonly string[]): Promise<readonly (Row | null)[]> {
    const rows = await this.database.query(
      `select id, state, outcome, error, cancel_reason from ${SCHEMA}.run where id = any($1::text[])`,
      [ids],
    )
    const found = new Map(rows.map(row => [row.id as string, row]))
    return ids.map(id => found.get(id) ?? null)
  }

  async list(filter: {
    readonly states: readonly RunState[] | null
    readonly queue: string | null
    readonly limit: number
  }): Promise<readonly Row[]> {
    return await this.database.query(
      `select *, extract(epoch from clock_timestamp() - image_at)::float8 * 1000 as image_age
       from ${SCHEMA}.run
       where ($1::text[] is null or state = any($1)) and ($2::text is null or queue = $2)
       order by created_at desc, id limit $3`,
      [filter.states, filter.queue, filter.limit],
    )
  }

  async counts(): Promise<readonly Row[]> {
    return await this.database.query(
      `select queue, state, count(*)::int as count from ${SCHEMA}.run group by queue, state order by queue, state`,
    )
  }

  async eventsOf(id: string, after: number): Promise<readonly Row[]> {
    return await this.database.query(
      `select id::float8 as id, at, kind, epoch, detail from ${SCHEMA}.event
       where run = $1 and id > $2::float8 order by id`,
      [id, after],
    )
  }

  /** Runs a statement or transaction that may be repeated, until the database answers. */
  async patiently<T>(work: () => Promise<T>, isOver: () => boolean): Promise<T> {
    for (let wait = 50; ; wait = Math.min(2000, wait * 2)) {
      try {
        return await work()
      } catch (error) {
        if (!isTransient(error) || isOver()) throw error
        await new Promise(resolve => setTimeout(resolve, wait))
      }
    }
  }
}

/** For pg-boss a larger number is more urgent. */
export function enginePriority(priority: number): number {
  return 256 - priority
}

function sendOptions(run: ClaimedRun, delay: number): SendOptions {
  const { groupKey, priority, options } = run
  return {
    priority: enginePriority(priority),
    delay,
    group: groupKey === null ? null : { key: groupKey, limit: options.groupLimit },
  }
}

function sendOptionsOf(row: Row, delay: number): SendOptions {
  const group = row.group_key as string | null
  return {
    priority: enginePriority(row.priority as number),
    delay,
    group: group === null ? null : { key: group, limit: (row.options as StoredOptions).groupLimit },
  }
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
    options: row.options as StoredOptions,
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

function byQueue(endings: readonly Ending[]): ReadonlyMap<string, readonly Ending[]> {
  const queues = new Map<string, Ending[]>()
  for (const ending of endings) {
    const some = queues.get(ending.run.queue) ?? []
    queues.set(ending.run.queue, some)
    some.push(ending)
  }
  return queues
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

/** Locks the row of a run that is this worker's until the transaction ends. */
async function hold(sql: Sql, id: string, epoch: number): Promise<void> {
  const rows = await sql.query(`select 1 from ${SCHEMA}.run where ${mine} for update`, [id, epoch])
  if (rows.length === 0) throw new FencedError(id, epoch)
}

async function record(
  sql: Sql,
  id: string,
  epoch: number,
  kind: RunEventKind,
  detail: object | null,
): Promise<void> {
  await sql.query(`insert into ${SCHEMA}.event (run, kind, epoch, detail) values ($1, $2, $3, $4::jsonb)`, [
    id,
    kind,
    epoch,
    detail === null ? null : JSON.stringify(detail),
  ])
}

async function tell(sql: Sql, { queues, ended, cancelled, messages }: Happened): Promise<void> {
  const news: Record<string, readonly string[]> = {}
  for (const [key, ids] of Object.entries({ queues, ended, cancelled, messages })) {
    const list = [...(ids ?? [])]
    if (list.length > 0) news[key] = list
  }
  if (Object.keys(news).length > 0) await sql.query(`select pg_notify('${CHANNEL}', $1)`, [newsText(news)])
}

interface Happened {
  readonly queues?: ReadonlySet<string>
  readonly ended?: ReadonlySet<string>
  readonly cancelled?: readonly string[]
  readonly messages?: readonly string[]
}
