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
    wakesAt: row.wake_at as Date | null,
    waitsFor: row.waits_for as string | null,
    progress: row.progress,
    checkpoint:
      row.image_at === null
        ? null
        : {
            at: row.image_at as Date,
            age: row.image_age as number,
            bytes: row.image_bytes as number,
            rawBytes: row.image_raw_bytes as number,
          },
    error: row.error as RunError | null,
    cancelling: row.state === 'running' && row.cancel_reason !== null,
    createdAt: row.created_at as Date,
    startedAt: row.started_at as Date | null,
    endedAt: row.ended_at as Date | null,
  }
}

export function eventOf(row: Row): RunEvent {
  return {
    id: row.id as number,
    at: row.at as Date,
    kind: row.kind as RunEvent['kind'],
    epoch: row.epoch as number,
    detail: row.detail as RunEvent['detail'],
  }
}
