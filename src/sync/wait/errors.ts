/** What a wrong use of a lock, a count or a channel is told. */
export type SyncErrorCode =
  /** Unlocking what is not locked, or what someone else holds. */
  | 'ERR_HEDDLE_NOT_HELD'
  /** The caller would wait for itself. */
  | 'ERR_HEDDLE_DEADLOCK'
  /** A condition that others wait at with another mutex. */
  | 'ERR_HEDDLE_WRONG_MUTEX'
  /** A verb that would block where that is forbidden, or that needs a task where none runs. */
  | 'ERR_HEDDLE_WRONG_VERB'
  /** A send to a channel that is closed. */
  | 'ERR_HEDDLE_CLOSED'
  | 'ERR_HEDDLE_DISPOSED'
  /** The holder of a robust mutex died, and what the mutex guards was not repaired. */
  | 'ERR_HEDDLE_NOT_RECOVERABLE'
  /** The object belongs to threads that this one cannot wait for. */
  | 'ERR_HEDDLE_DOMAIN'
  /** Something of the object's is still in use. */
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

/** Throws unless `count` can be how many to notify: all of them is Infinity. */
export function checkNotified(count: number): void {
  if (count >= 0) return
  throw new RangeError(`notify(count): ${count} is not a number of waiters; give 0 or more`)
}

/** Throws unless `count` is a whole number from `least` to `most`. */
export function checkCount(
  what: string,
  count: unknown,
  least: number,
  most = 0x3fff_ffff,
): asserts count is number {
  if (typeof count === 'number' && Number.isInteger(count) && count >= least && count <= most) return
  throw new RangeError(
    `${what}: ${String(count)} is not a count; give a whole number from ${least} to ${most}`,
  )
}
