import { BOSS_SCHEMA, type Database, SCHEMA } from '../database/database.ts'
import type { Engine } from '../engine.ts'
import { record, sendOptionsOf } from './statements.ts'

/** A run `r` of queue $1 that has not ended, waits for more than a message, and has no live job. */
const jobless = `r.queue = $1
  and (r.state in ('queued', 'asleep', 'running') or r.state = 'waiting' and r.wake_at is not null)
  and not exists (select 1 from ${BOSS_SCHEMA}.job j
                  where j.name = r.queue and j.id = r.job and j.state < 'completed')`

/** Mends rows, and forgets old ones. */
export class Upkeep {
  private readonly database: Database
  private readonly engine: Engine

  constructor(database: Database, engine: Engine) {
    this.database = database
    this.engine = engine
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
}
