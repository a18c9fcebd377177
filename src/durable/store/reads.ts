import { type Database, type Row, SCHEMA } from '../database/database.ts'
import { RunMissingError } from '../errors.ts'
import type { RunState } from '../states.ts'

/** All but the arguments and the outcome, which may be large. */
const statusColumns = `id, queue, state, fn_module, fn_name, name, priority, options, epoch, attempts, failures,
  worker, blocked, wake_at, waits_for, progress, cancel_reason, error, image_bytes, image_raw_bytes, image_at,
  created_at, started_at, ended_at,
  extract(epoch from clock_timestamp() - image_at)::float8 * 1000 as image_age`

/** Rows as programs read them, without a lock. */
export class Reads {
  private readonly database: Database

  constructor(database: Database) {
    this.database = database
  }

  async rowOf(id: string): Promise<Row> {
    return await this.columnsOf(id, statusColumns)
  }

  /** With its arguments and its outcome. */
  async wholeRowOf(id: string): Promise<Row> {
    return await this.columnsOf(id, `${statusColumns}, args, outcome`)
  }

  private async columnsOf(id: string, columns: string): Promise<Row> {
    const rows = await this.database.query(`select ${columns} from ${SCHEMA}.run where id = $1`, [id])
    if (rows.length === 0) throw new RunMissingError(id)
    return rows[0]!
  }

  /** The rows of those of these runs that exist. */
  async rowsOf(ids: readonly string[]): Promise<readonly Row[]> {
    return await this.database.query(
      `select ${statusColumns} from ${SCHEMA}.run where id = any($1::text[])`,
      [ids],
    )
  }

  /** Whole runs in the order of their ids, from behind `after` on. */
  async page(after: string, limit: number): Promise<readonly Row[]> {
    return await this.database.query(
      `select ${statusColumns}, args, outcome from ${SCHEMA}.run where id > $1 order by id limit $2`,
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
      `select ${statusColumns} from ${SCHEMA}.run
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
}
