/** The errors of wrong calls of a schedule: those of the design, and those that its states imply. */
export type CoroutineErrorCode =
  /** RunningCoNull: suspend, sleep or wait where no coroutine runs. */
  | 'ERR_HEDDLE_RUNNING_CO_NULL'
  /** RunningCo: suspend of a coroutine that is not the running one. */
  | 'ERR_HEDDLE_RUNNING_CO'
  /** ScheduleExited: anything after `exit`. */
  | 'ERR_HEDDLE_SCHEDULE_EXITED'
  /** resume of the running coroutine. */
  | 'ERR_HEDDLE_CO_RUNNING'
  /** resume of a coroutine that is in the ready queue already. */
  | 'ERR_HEDDLE_CO_READY'
  /** resume of a coroutine that has ended. */
  | 'ERR_HEDDLE_CO_STOPPED'
  /** A coroutine of another schedule. */
  | 'ERR_HEDDLE_CO_FOREIGN'
  /** A blocking call in code that cannot be suspended. See faces.ts. */
  | 'ERR_HEDDLE_CANNOT_SUSPEND'
  /** The blocking loop: every coroutine waits for something that only the event loop can deliver. */
  | 'ERR_HEDDLE_DEADLOCK'
  /** The blocking loop, called from inside a loop of the same schedule. */
  | 'ERR_HEDDLE_LOOP_RUNNING'

export class CoroutineError extends Error {
  override readonly name = 'CoroutineError'
  readonly code: CoroutineErrorCode

  constructor(code: CoroutineErrorCode, message: string) {
    super(message)
    this.code = code
  }
}
