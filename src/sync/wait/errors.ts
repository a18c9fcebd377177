import { show } from '../../coroutine/core/knownoptions.ts'

/** The codes of errors for wrong use of a lock, a count or a channel. */
export type SyncErrorCode =
  /** An unlock of a lock that is free, or that another owner holds. */
  | 'ERR_HEDDLE_NOT_HELD'
  /** The caller would wait for itself. */
  | 'ERR_HEDDLE_DEADLOCK'
  /** A wait at a condition whose waiters use another mutex. */
  | 'ERR_HEDDLE_WRONG_MUTEX'
  /** A verb that would block where that is forbidden, or that needs a task where none runs. */
  | 'ERR_HEDDLE_WRONG_VERB'
  /** A send to a channel that is closed. */
  | 'ERR_HEDDLE_CLOSED'
  | 'ERR_HEDDLE_DISPOSED'
  /** The holder of a mutex died, and the data that the mutex guards was not repaired. */
  | 'ERR_HEDDLE_NOT_RECOVERABLE'
  /** The object belongs to threads that this one cannot wait for. */
  | 'ERR_HEDDLE_DOMAIN'
  /** The object is still in use. */
  | 'ERR_HEDDLE_BUSY'
  /** The task was interrupted while it waited. */
  | 'ERR_HEDDLE_INTERRUPTED'

export class SyncError extends Error {
  override readonly name = 'SyncError'
  readonly code: SyncErrorCode

  constructor(code: SyncErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

export function disposedError(what: string): SyncError {
  return new SyncError('ERR_HEDDLE_DISPOSED', `${what}: the object has been disposed of`)
}

/** Throws unless `count` is a number of waiters to notify; Infinity means all. */
export function checkNotified(count: number): void {
  if (count >= 0) return
  throw new RangeError(`notify(count): ${show(count)} is not a number of waiters; give 0 or more`)
}

/** Throws unless `count` is a whole number from `least` to `most`. */
export function checkCount(
  what: string,
  count: unknown,
  least: number,
  most = 0x3fff_ffff,
): asserts count is number {
  if (typeof count === 'number' && Number.isInteger(count) && count >= least && count <= most) return
  throw new RangeError(`${what}: ${show(count)} is not a count; give a whole number from ${least} to ${most}`)
}
