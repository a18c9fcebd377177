import type { Claimed, SendOptions } from '../engine.ts'
import type { RunError, RunEventKind } from '../states.ts'

/** A run as a worker claims it. */
export interface ClaimedRun {
  readonly id: string
  readonly queue: string
  readonly epoch: number
  readonly job: Claimed
  readonly module: string
  readonly fn: string
  readonly name: string
  readonly args: Uint8Array
  readonly priority: number
  readonly options: StoredOptions
  /** Why its row cannot be used; null: it can. */
  readonly damage: string | null
  readonly attempts: number
  readonly failures: number
  readonly groupKey: string | null
  /** Its last image, as stored; null: it begins with its arguments. Empty: it is gone. */
  readonly image: Uint8Array | null
  readonly imageRawBytes: number | null
  readonly imageSeq: number
  readonly cancelReason: string | null
  readonly trace: Readonly<Record<string, string>> | null
}

/** The options of a run that its row keeps. */
export interface StoredOptions {
  readonly checkpoint: number | null
  readonly retries: number
  readonly backoff: { readonly initial: number; readonly factor: number; readonly max: number }
  readonly retryFrom: 'checkpoint' | 'start'
  readonly onCodeChanged: 'wait' | 'restart' | { readonly module: string; readonly name: string }
  readonly groupLimit: number
}

const defaults: StoredOptions = {
  checkpoint: null,
  retries: 0,
  backoff: { initial: 1000, factor: 2, max: 60_000 },
  retryFrom: 'checkpoint',
  onCodeChanged: 'wait',
  groupLimit: 1,
}

/** The options of a row; the defaults, with no retries, if somebody has changed them. */
export function readOptions(stored: unknown): StoredOptions {
  return isOptions(stored) ? stored : defaults
}

/** Whether `storedOptions` can have made them. */
export function isOptions(stored: unknown): stored is StoredOptions {
  const options = (stored ?? {}) as Partial<Record<keyof StoredOptions, any>>
  const { checkpoint, retries, backoff, retryFrom, onCodeChanged, groupLimit } = options
  return (
    (checkpoint === null || checkpoint >= 1) &&
    [retries, backoff?.initial, backoff?.factor, backoff?.max].every(
      count => typeof count === 'number' && count >= 0,
    ) &&
    (retryFrom === 'checkpoint' || retryFrom === 'start') &&
    (typeof onCodeChanged === 'string' || typeof onCodeChanged?.name === 'string') &&
    Number.isInteger(groupLimit)
  )
}

export interface NewRun {
  readonly id: string
  readonly queue: string
  readonly module: string
  readonly fn: string
  readonly name: string
  readonly args: Uint8Array
  readonly priority: number
  readonly options: StoredOptions
  readonly group: SendOptions['group']
  /** Seconds before it may start. */
  readonly delay: number
  readonly trace: Readonly<Record<string, string>> | null
}

/** What a worker stores when a run ends. */
export interface Ending {
  readonly run: ClaimedRun
  readonly state: 'completed' | 'failed' | 'cancelled'
  readonly outcome: Uint8Array | null
  readonly error: RunError | null
}

export interface StoredImage {
  readonly bytes: Uint8Array
  readonly rawBytes: number
  /** Larger than that of each image of the run before. */
  readonly seq: number
}

/** How a run leaves its worker without having ended. */
export interface Leaving {
  readonly state: 'queued' | 'asleep' | 'waiting'
  readonly kind: RunEventKind
  /** Seconds until a worker may claim it; null: only a message queues it. */
  readonly delay: number | null
  readonly image?: StoredImage
  readonly waitsFor?: string
  readonly failed?: RunError
  readonly blocked?: string
  readonly dropsImage?: boolean
}
