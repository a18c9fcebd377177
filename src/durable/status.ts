import { priorityName } from '../kernel/boot/options.ts'
import type { Row } from './database/database.ts'
import type { RunError, RunEvent, RunState, RunStatus } from './states.ts'
import { readOptions } from './store/rows.ts'

/** What a row of a run says. */
export function statusOf(row: Row): RunStatus {
  return {
    id: row.id as string,
    state: row.state as RunState,
    name: row.name as string,
    function: row.fn_name as string,
    module: row.fn_module as string,
    queue: row.queue as string,
    priority: priorityName(row.priority as number),
    worker: row.worker as string | null,
    epoch: row.epoch as number,
    attempts: row.attempts as number,
    failures: row.failures as number,
    retries: readOptions(row.options).retries,
    blocked: row.blocked as string | null,
    wakesAt: row.wake_at === null ? null : timeOf(row.wake_at),
    waitsFor: row.waits_for as string | null,
    progress: row.progress,
    checkpoint:
      row.image_at === null
        ? null
        : {
            at: timeOf(row.image_at),
            age: row.image_age as number,
            bytes: row.image_bytes as number,
            rawBytes: row.image_raw_bytes as number,
          },
    error: errorOf(row.error),
    cancelling: row.state === 'running' && row.cancel_reason !== null,
    createdAt: timeOf(row.created_at),
    startedAt: row.started_at === null ? null : timeOf(row.started_at),
    endedAt: row.ended_at === null ? null : timeOf(row.ended_at),
  }
}

export function eventOf(row: Row): RunEvent {
  return {
    id: row.id as number,
    at: timeOf(row.at),
    kind: row.kind as RunEvent['kind'],
    epoch: row.epoch as number,
    detail: isObject(row.detail) || row.detail === null ? row.detail : { detail: row.detail },
  }
}

/** No Date is later, and no Date with the other sign is earlier. */
const LAST_MS = 8.64e15

/** A time that somebody has changed may be infinite, or one that no Date has. */
function timeOf(value: unknown): Date {
  if (value instanceof Date && !Number.isNaN(value.getTime())) return value
  return new Date(value === -Infinity ? -LAST_MS : LAST_MS)
}

/** An error that somebody has changed is a text of what is there. */
function errorOf(value: unknown): RunError | null {
  if (value === null) return null
  const { name, message, stack, code } = (isObject(value) ? value : {}) as Partial<Record<string, unknown>>
  return {
    name: typeof name === 'string' ? name : 'Error',
    message: typeof message === 'string' ? message : JSON.stringify(value),
    ...(typeof stack === 'string' && { stack }),
    ...(typeof code === 'string' && { code }),
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
