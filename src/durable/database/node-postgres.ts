import type { Client, Pool, PoolClient } from 'pg'
import { packageError } from '../packages.ts'
import { type Database, isConflict, type Row, SESSION_LOCK, type Sql } from './database.ts'

/** How often a transaction is tried again after a conflict. */
const TRIES = 5
const RECONNECT_MS = 500

export interface PostgresOptions {
  readonly url: string
  /** The most connections for statements. One more listens. */
  readonly connections: number
  /** Errors of idle connections, for reports. */
  readonly onError: (error: Error) => void
}

/** A PostgreSQL server, by its URL. */
export async function openPostgres(options: PostgresOptions): Promise<Database> {
  const { default: pg } = await loadPg()
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.connections,
    application_name: 'heddle',
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
  })
  pool.on('error', options.onError)
  // The server may send its last error with the answer before it: the pool has given the connection to the
  // next caller by then, whose promise is not yet continued. That caller's next statement fails.
  pool.on('connect', client => void client.on('error', () => undefined))
  return new Postgres(pool, options, () => new pg.Client({ connectionString: options.url, keepAlive: true }))
}

async function loadPg(): Promise<typeof import('pg')> {
  try {
    return await import('pg')
  } catch (error) {
    throw packageError(
      'pg',
      "heddle/durable: a database URL needs the package 'pg'; run npm install pg",
      error,
    )
  }
}

class Postgres implements Database {
  readonly kind = 'postgres'
  readonly url: string
  private readonly pool: Pool
  private readonly options: PostgresOptions
  private readonly makeClient: () => Client
  private readonly listeners = new Set<() => Promise<void>>()

  constructor(pool: Pool, options: PostgresOptions, makeClient: () => Client) {
    this.pool = pool
    this.options = options
    this.url = options.url
    this.makeClient = makeClient
  }

  async query(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return (await this.pool.query(text, values as unknown[])).rows as Row[]
  }

  async script(text: string): Promise<readonly Row[]> {
    return rowsOf(await this.pool.query(text))
  }

  async transaction<T>(body: (sql: Sql) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.transactionOnce(body)
      } catch (error) {
        if (!isConflict(error) || attempt === TRIES) throw error
      }
    }
  }

  private async transactionOnce<T>(body: (sql: Sql) => Promise<T>): Promise<T> {
    const client = await this.pool.connect()
    let broken: Error | undefined
    try {
      await client.query('begin')
      const result = await body(sqlOf(client))
      await client.query('commit')
      return result
    } catch (error) {
      // A connection whose rollback fails is of no more use.
      await client.query('rollback').catch((failed: Error) => (broken = failed))
      throw error
    } finally {
      client.release(broken)
    }
  }

  async listen(
    channel: string,
    listener: (payload: string) => void,
    gap: () => void,
    session?: string,
  ): Promise<() => Promise<void>> {
    let client: Client | null = null
    let isClosed = false
    let again: NodeJS.Timeout | undefined
    const connect = async (): Promise<void> => {
      const next = this.makeClient()
      const lost = (): void => {
        if (client !== next || isClosed) return
        client = null
        void connect().catch(retry)
      }
      const retry = (error: Error): void => {
        if (isClosed) return
        this.options.onError(error)
        again = setTimeout(() => void connect().catch(retry), RECONNECT_MS)
      }
      next.on('error', lost)
      next.on('end', lost)
      next.on('notification', ({ payload }) => listener(payload ?? ''))
      try {
        await next.connect()
        await next.query(`listen ${channel}`)
        // Shared: a connection of before, which the server has not given up yet, may have it too.
        if (session !== undefined)
          await next.query('select pg_advisory_lock_shared($1, hashtext($2))', [SESSION_LOCK, session])
      } catch (error) {
        void next.end().catch(() => undefined)
        throw error
      }
      if (isClosed) return void (await next.end())
      client = next
      gap()
    }
    await connect()
    const stop = async (): Promise<void> => {
      isClosed = true
      clearTimeout(again)
      this.listeners.delete(stop)
      await client?.end().catch(() => undefined)
    }
    this.listeners.add(stop)
    return stop
  }

  async close(): Promise<void> {
    await Promise.all([...this.listeners].map(stop => stop()))
    await this.pool.end()
  }
}

function sqlOf(client: PoolClient): Sql {
  return {
    query: async (text, values = []) => (await client.query(text, values as unknown[])).rows as Row[],
    script: async text => rowsOf(await client.query(text)),
  }
}

/** Several statements have several results. */
function rowsOf(result: unknown): readonly Row[] {
  const results = Array.isArray(result) ? result : [result]
  return results.flatMap((one: { rows?: Row[] }) => one.rows ?? [])
}
