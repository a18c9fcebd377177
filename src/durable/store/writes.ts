import { CHANNEL, type Database, SCHEMA, type Sql } from '../database/database.ts'
import type { Engine } from '../engine.ts'
import { FencedError } from '../errors.ts'
import { hasEnded, type RunEventKind, type RunState } from '../states.ts'
import type { ClaimedRun, Ending, Leaving, StoredImage } from './rows.ts'
import { jsonText, storableJson } from './jsontext.ts'
import { base64, mine, record, sendOptions, tell } from './statements.ts'

/** What a worker writes of the runs that it has, and reads of them. Each write is fenced. */
export class Writes {
  private readonly database: Database
  private readonly engine: Engine

  constructor(database: Database, engine: Engine) {
    this.database = database
    this.engine = engine
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
               image_at = case when f.state = 'failed' then image_at end,
               failures = failures + case when f.state = 'failed' then 1 else 0 end
           from unnest($1::text[], $2::int[], $3::text[], $4::text[], $5::text[])
             as f (run, its, state, outcome, error)
           where run.id = f.run and run.epoch = f.its and run.state = 'running'
           returning run.id, run.epoch, run.state, run.error
         ), told as (
           insert into ${SCHEMA}.event (run, kind, epoch, detail) select id, state, epoch, error from ended
         ), dropped as (
           delete from ${SCHEMA}.image where run in (select id from ended where state <> 'failed')
         )
         select id from ended`,
        [
          endings.map(({ run }) => run.id),
          endings.map(({ run }) => run.epoch),
          endings.map(({ state }) => state),
          endings.map(({ outcome }) => (outcome === null ? null : base64(outcome))),
          endings.map(({ error }) => (error === null ? null : jsonText(error))),
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
          failed === undefined ? null : jsonText(failed),
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
      if (!(await this.isBlockedAgain(sql, run, leaving.blocked)))
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

  /**
   * A blocked run is claimed every few seconds: its history has the first of claims that find the same
   * reason. This one goes from it.
   */
  private async isBlockedAgain(
    sql: Sql,
    { id, epoch }: ClaimedRun,
    why: string | undefined,
  ): Promise<boolean> {
    if (why === undefined) return false
    const rows = await sql.query(
      `with newest as (
         select id, kind, epoch, detail from ${SCHEMA}.event where run = $1 order by id desc limit 2
       )
       delete from ${SCHEMA}.event where id =
         (select c.id from newest c, newest b
          where c.kind = 'claimed' and c.epoch = $2 and b.kind = 'blocked' and b.detail ->> 'why' = $3)
       returning id`,
      [id, epoch, why],
    )
    return rows.length > 0
  }

  private async hasMessage(sql: Sql, id: string, name: string): Promise<boolean> {
    const rows = await sql.query(
      `select 1 from ${SCHEMA}.message where run = $1 and name = $2 and not is_taken limit 1`,
      [id, name],
    )
    return rows.length > 0
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
      [id, epoch, storableJson(progress)],
    )
  }

  /** Adds an entry to the history of a run that is this worker's. */
  async note({ id, epoch }: ClaimedRun, kind: RunEventKind, detail: object): Promise<void> {
    await this.database.query(
      `insert into ${SCHEMA}.event (run, kind, epoch, detail)
       select id, $3, epoch, $4::jsonb from ${SCHEMA}.run where ${mine} for update`,
      [id, epoch, kind, jsonText(detail)],
    )
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
