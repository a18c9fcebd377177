import { type Database, SCHEMA } from '../database/database.ts'
import { FencedError } from '../errors.ts'
import type { ClaimedRun } from './rows.ts'
import { hold, mine } from './statements.ts'

/** What every later attempt of a run finds again: results of `once`, deadlines, messages. Fenced. */
export class Journal {
  private readonly database: Database

  constructor(database: Database) {
    this.database = database
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
}
