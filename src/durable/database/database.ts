/** What `heddle/durable` needs of a database: PostgreSQL, in another process or embedded in this one. */

export type Row = Record<string, any>

/** Runs statements: on any connection, or in one transaction. */
export interface Sql {
  /** One statement with parameters. */
  query(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
  /** Statements without parameters, as pg-boss makes them for its migrations. */
  script(text: string): Promise<readonly Row[]>
}

export interface Database extends Sql {
  /** 'postgres': other processes may use it too. 'embedded': it belongs to this process. */
  readonly kind: 'postgres' | 'embedded'
  /** For another connection to the same database; null: there can be none. */
  readonly url: string | null
  /** Runs `body` in a transaction, again if the database asks for that. An error rolls back. */
  transaction<T>(body: (sql: Sql) => Promise<T>): Promise<T>
  /**
   * Calls `listener` for each notification, and `gap` when some may have been lost. `session`: as long as it
   * listens, others see that the process of this name lives (worker/sessions.ts).
   */
  listen(
    channel: string,
    listener: (payload: string) => void,
    gap: () => void,
    session?: string,
  ): Promise<() => Promise<void>>
  close(): Promise<void>
}

/** The errors after which a statement or transaction has no effect, and may succeed later. */
const retriable: ReadonlySet<string> = new Set([
  '40001', // serialisation failure
  '40P01', // deadlock detected
  '53300', // too many connections
  '57P01', // the server was told to end
  '57P02', // the server has crashed
  '57P03', // the server starts
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
])

/**
 * Whether an error of the connection or of the server may go away. A statement that failed so may have had
 * its effect: the answer can be lost after the commit.
 */
export function isTransient(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown }
  if (typeof code === 'string' && (retriable.has(code) || code.startsWith('08'))) return true
  return (
    typeof message === 'string' &&
    /connection terminated|connection ended|timeout exceeded when trying to connect|client was closed|not queryable/i.test(
      message,
    )
  )
}

/** Whether another try of the whole transaction is right: the database has rolled it back. */
export function isConflict(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return code === '40001' || code === '40P01'
}

/** The table and schema names are ours: nothing from outside is put into a statement. */
export const SCHEMA = 'heddle'
export const BOSS_SCHEMA = 'heddle_boss'
export const CHANNEL = 'heddle_runs'
/** Nobody notifies it: a connection listens to have a session. */
export const SESSION_CHANNEL = 'heddle_session'
/** The first key of the advisory locks of sessions; any number. */
export const SESSION_LOCK = 0x6864_6c32
