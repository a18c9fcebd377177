import { CpuLostError } from '../kernel/join/errors.ts'

/** The errors of a pool, with piscina's texts. */
export const Errors = {
  threadTermination: (): Error => new Error('Terminating worker thread'),
  filenameNotProvided: (): Error => new Error('filename must be provided to run() or in options object'),
  taskQueueAtLimit: (): Error => new Error('Task queue is at limit'),
  noTaskQueue: (): Error => new Error('No task queue available and all Workers are busy'),
  closeTimeout: (): Error => new Error('Close operation timed out'),
}

/** The rejection of a task that failed in the kernel. If its worker died, it has the exit code. */
export function failureOf(error: unknown): unknown {
  if (!(error instanceof CpuLostError)) return error
  if (error.cause !== undefined) return error.cause
  return error.reason === 'terminated' ? Errors.threadTermination() : exitError(error.exitCode)
}

export function exitError(exitCode: number): Error {
  return new Error(`worker exited with code: ${exitCode}`)
}
