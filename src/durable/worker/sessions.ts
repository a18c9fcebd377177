/**
 * The runs of a worker whose process has died go on elsewhere before their leases end. The server closes the
 * connections of a dead process, and locks that they have are free then.
 *
 *   worker                                          another worker
 *   ------                                          --------------
 *   (A) listens on two connections, one of each
 *       thread, and takes the lock of its name on
 *       both
 *   (B) claims a run
 *   its process dies
 *                                                   (C) no session has the lock of the run's worker
 *                                                   (D) the same a little later: its leases have lapsed
 *                                                   (E) claims the run
 *
 * A worker that lives and has lost one connection has the other one. If it has lost both, it connects again,
 * and has mostly its lock before (D). If it takes longer, its runs go on elsewhere, and fencing makes that
 * harmless, as at the end of a lease. After a start of the server all workers connect again: it waits for
 * them. A worker that is stopped, or whose machine is gone without a word, keeps its connections: its leases
 * decide. So they do behind a pooler of connections, which may keep the lock of a dead worker.
 *
 * The lapse has the row of the job locked, and names the attempt: a claim of later is not touched.
 */
import { BOSS_SCHEMA, SCHEMA, SESSION_LOCK, type Sql } from '../database/database.ts'
import type { Claimed } from '../engine.ts'
import type { Store } from '../store/store.ts'

/** Milliseconds between (C) and (D), and between two looks of all workers together. */
const LOOK_MS = 300
/** With many workers each one looks less often. */
const SHARE_MAX = 30
/** Seconds that workers have to connect again after a start of the server. */
const START_SECONDS = 5

const sessions = `(select l.objid from pg_locks l
  where l.locktype = 'advisory' and l.granted and l.objsubid = 2 and l.classid = ${SESSION_LOCK}::oid
    and l.database = (select oid from pg_database where datname = current_database()))`
const lockOfWorker = '(hashtext(r.worker)::bigint & 4294967295)::oid'

/** Watches the sessions of the workers of some queues, until `close`. */
export class SessionWatch {
  private readonly store: Store
  private readonly queues: readonly string[]
  private readonly onError: (error: Error) => void
  private suspects: ReadonlySet<string> = new Set()
  private timer: NodeJS.Timeout
  private looking: Promise<void> = Promise.resolve()
  private isClosed = false

  constructor(store: Store, queues: readonly string[], onError: (error: Error) => void) {
    this.store = store
    this.queues = queues
    this.onError = onError
    this.timer = setTimeout(() => this.look(), LOOK_MS)
  }

  private look(): void {
    this.looking = this.lookNow()
      .catch(error => {
        this.onError(error as Error)
        return 1
      })
      .then(share => {
        if (!this.isClosed) this.timer = setTimeout(() => this.look(), LOOK_MS * share)
      })
  }

  /** Returns for how many workers the next look may wait. */
  private async lookNow(): Promise<number> {
    const { workers, live } = await workersWithoutSession(this.store.database, this.queues)
    const gone = workers.filter(worker => this.suspects.has(worker))
    if (gone.length > 0) for (const queue of this.queues) await this.store.claims.lapse(queue, gone)
    this.suspects = new Set(workers)
    return workers.length > gone.length ? 1 : Math.min(SHARE_MAX, Math.max(1, live))
  }

  async close(): Promise<void> {
    this.isClosed = true
    clearTimeout(this.timer)
    await this.looking
  }
}

/** Workers that have runs and no session. `live`: how many have one. */
export async function workersWithoutSession(
  sql: Sql,
  queues: readonly string[],
): Promise<{ readonly workers: readonly string[]; readonly live: number }> {
  const rows = await sql.query(
    `with sessions as materialized ${sessions}
     select (select count(distinct objid)::int from sessions) as live,
       array(select distinct r.worker from ${SCHEMA}.run r
             where r.state = 'running' and r.queue = any($1::text[])
               and ${lockOfWorker} not in (select objid from sessions)
               and pg_postmaster_start_time() < clock_timestamp() - ${START_SECONDS} * interval '1 second'
       ) as workers`,
    [queues],
  )
  return rows[0] as { workers: string[]; live: number }
}

/** The claimed jobs of workers that have no session, locked. */
export async function jobsWithoutSession(
  sql: Sql,
  queue: string,
  workers: readonly string[],
): Promise<readonly Claimed[]> {
  const rows = await sql.query(
    `select j.id, j.retry_count
     from ${SCHEMA}.run r join ${BOSS_SCHEMA}.job j on j.name = r.queue and j.id = r.job
     where r.state = 'running' and r.worker = any($2::text[]) and r.queue = $1 and j.name = $1
       and j.state = 'active' and ${lockOfWorker} not in ${sessions}
     limit 1000 for update of j skip locked`,
    [queue, workers],
  )
  return rows.map(row => ({ id: row.id as string, retryCount: row.retry_count as number }))
}
