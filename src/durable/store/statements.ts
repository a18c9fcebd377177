import { CHANNEL, type Row, SCHEMA, type Sql } from '../database/database.ts'
import type { SendOptions } from '../engine.ts'
import { FencedError } from '../errors.ts'
import { newsText } from '../news.ts'
import type { RunEventKind } from '../states.ts'
import { jsonText } from './jsontext.ts'
import { type ClaimedRun, readOptions } from './rows.ts'

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
export const mine = `id = $1 and epoch = $2 and state = 'running'`

/** Locks the row of a run that is this worker's until the transaction ends. */
export async function hold(sql: Sql, id: string, epoch: number): Promise<void> {
  const rows = await sql.query(`select 1 from ${SCHEMA}.run where ${mine} for update`, [id, epoch])
  if (rows.length === 0) throw new FencedError(id, epoch)
}

export async function record(
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
    detail === null ? null : jsonText(detail),
  ])
}

export async function tell(sql: Sql, { queues, ended, cancelled, messages }: Happened): Promise<void> {
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

/** For pg-boss a larger number is more urgent. */
export function enginePriority(priority: number): number {
  return 256 - priority
}

export function sendOptions(run: ClaimedRun, delay: number): SendOptions {
  const { groupKey, priority, options } = run
  return {
    priority: enginePriority(priority),
    delay,
    group: groupKey === null ? null : { key: groupKey, limit: options.groupLimit },
  }
}

export function sendOptionsOf(row: Row, delay: number): SendOptions {
  const group = row.group_key as string | null
  return {
    priority: enginePriority(row.priority as number),
    delay,
    group: group === null ? null : { key: group, limit: readOptions(row.options).groupLimit },
  }
}

export function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}
