/** The errors of durable runs. Each has a `code`. */

/** The folder of the embedded database is open in another process. */
export class DatabaseBusyError extends Error {
  override readonly name = 'DatabaseBusyError'
  readonly code = 'ERR_HEDDLE_DATABASE_BUSY'

  constructor(folder: string, owner: number) {
    super(
      `the folder ${folder} is open in process ${owner}: an embedded database belongs to one process. Give the URL of a PostgreSQL server to share runs: Durable.open({ database })`,
    )
  }
}

/** The run was cancelled; `cause` is the reason. */
export class RunCancelledError extends Error {
  override readonly name = 'RunCancelledError'
  readonly code = 'ERR_HEDDLE_RUN_CANCELLED'
  readonly run: string

  constructor(run: string, reason: string) {
    super(`run ${run} was cancelled: ${reason}`)
    this.run = run
  }
}

/** There is no run of this id. */
export class RunMissingError extends Error {
  override readonly name = 'RunMissingError'
  readonly code = 'ERR_HEDDLE_RUN_MISSING'
  readonly run: string

  constructor(run: string) {
    super(
      `there is no run '${run}' in this database; durable.start makes one, and runs that ended are kept for \`retention\``,
    )
    this.run = run
  }
}

/** The run has completed, so it can do nothing more. */
export class RunEndedError extends Error {
  override readonly name = 'RunEndedError'
  readonly code = 'ERR_HEDDLE_RUN_ENDED'
  readonly run: string

  constructor(run: string, call: string) {
    super(
      `${call}: the run '${run}' has completed and receives no message; send it before, or to another run`,
    )
    this.run = run
  }
}

/**
 * Another worker has the run: this one was paused for longer than its lease. It writes nothing more, and its
 * task is killed with this error.
 */
export class FencedError extends Error {
  override readonly name = 'FencedError'
  readonly code = 'ERR_HEDDLE_FENCED'
  readonly run: string
  readonly epoch: number

  constructor(run: string, epoch: number) {
    super(
      `run ${run}: this worker has lost it (epoch ${epoch}): the run goes on elsewhere, was cancelled, or has ended`,
    )
    this.run = run
    this.epoch = epoch
  }
}

/** The state of a run is larger than the limit of its images. */
export class ImageTooLargeError extends Error {
  override readonly name = 'ImageTooLargeError'
  readonly code = 'ERR_HEDDLE_IMAGE_TOO_LARGE'

  constructor(run: string, bytes: number, limit: number) {
    super(
      `run ${run}: its state has ${bytes} bytes compressed, and ${limit} are allowed; raise \`imageLimit\` of Durable.open, or keep large data outside of the task`,
    )
  }
}

/** A durable call outside of a durable run. */
export class NotDurableError extends Error {
  override readonly name = 'NotDurableError'
  readonly code = 'ERR_HEDDLE_NOT_DURABLE'

  constructor(call: string) {
    super(
      `${call}: it is called outside of a durable run; call it from a function that durable.start(fn) runs`,
    )
  }
}
