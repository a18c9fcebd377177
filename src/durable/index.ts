/** Runs that outlive their process: tasks whose states, results and waits are in a PostgreSQL database. */
export { Durable, type DurableWarning } from './durable.ts'
export { type RetryOptions, Run, type StartedRun } from './run.ts'
export type { DurableOptions, RunFilter, ScheduleOptions, StartOptions } from './options.ts'
export type { RunError, RunEvent, RunEventKind, RunState, RunStatus } from './states.ts'
export {
  DatabaseBusyError,
  FencedError,
  ImageTooLargeError,
  NotDurableError,
  RunCancelledError,
  RunEndedError,
  RunMissingError,
} from './errors.ts'
export { runsText, runTelemetry, type RunTelemetryOptions } from './telemetry.ts'
export type { AttemptReport } from './worker/attempt.ts'
export { once } from './task/once.ts'
export { receive, type ReceiveOptions, sleep } from './task/waits.ts'
export { progress } from './task/progress.ts'
export { days, hours, minutes, seconds } from './task/times.ts'
