import type { TaskPriority } from '../kernel/boot/options.ts'

/**
 * The states of a run, and what stands for it at the engine:
 *
 *   state      job               owner
 *   ---------  ----------------  ---------------------------------------------------------------------
 *   queued     one, startable    none
 *   running    one, claimed      the worker with the epoch of the row
 *   asleep     one, starts late  none; its state is an image
 *   waiting    none, or one at   none; its state is an image. A message, or the time limit, queues it
 *              its time limit
 *   completed  none              none; the outcome is stored, once
 *   failed     none; a copy is   none; the error is stored. `retry` queues it again
 *              a dead letter
 *   cancelled  none              none
 */
export type RunState = 'queued' | 'running' | 'asleep' | 'waiting' | 'completed' | 'failed' | 'cancelled'

export const runStates: readonly RunState[] = [
  'queued',
  'running',
  'asleep',
  'waiting',
  'completed',
  'failed',
  'cancelled',
]

/** What a run shows of itself. Times are those of the database's clock. */
export interface RunStatus {
  readonly id: string
  readonly state: RunState
  readonly name: string
  /** The function, and the key of its module. */
  readonly function: string
  readonly module: string
  readonly queue: string
  readonly priority: TaskPriority
  /** The worker that has it; null: none. */
  readonly worker: string | null
  /** How often workers have claimed it. */
  readonly epoch: number
  readonly attempts: number
  /** How often it has ended with an error, and how often it may. */
  readonly failures: number
  readonly retries: number
  /** Why it is queued and no worker can go on with it; null: there is no such reason. */
  readonly blocked: string | null
  /** When it sleeps until, or when its wait or its next attempt begins. */
  readonly wakesAt: Date | null
  /** The name of the message that it waits for. */
  readonly waitsFor: string | null
  /** What it reported last. */
  readonly progress: unknown
  readonly checkpoint: {
    /** When it was stored. */
    readonly at: Date
    /** Milliseconds since then. */
    readonly age: number
    /** As stored, compressed; and before. */
    readonly bytes: number
    readonly rawBytes: number
  } | null
  readonly error: RunError | null
  readonly cancelling: boolean
  readonly createdAt: Date
  readonly startedAt: Date | null
  readonly endedAt: Date | null
}

/** The last error of a run, as text. */
export interface RunError {
  readonly name: string
  readonly message: string
  readonly stack?: string
  readonly code?: string
}

/** An entry of the history of a run. */
export interface RunEvent {
  readonly id: number
  readonly at: Date
  readonly kind: RunEventKind
  readonly epoch: number
  readonly detail: Readonly<Record<string, unknown>> | null
}

export type RunEventKind =
  | 'queued'
  | 'claimed'
  | 'checkpoint'
  | 'asleep'
  | 'waiting'
  | 'message'
  | 'blocked'
  | 'released'
  | 'error'
  | 'refused'
  | 'completed'
  | 'failed'
  | 'cancelling'
  | 'cancelled'

export function hasEnded(state: RunState): boolean {
  return state === 'completed' || state === 'failed' || state === 'cancelled'
}
