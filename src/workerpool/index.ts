/** `heddle/workerpool`: workerpool's interface on the kernel. Change the import, keep the code. Node only. */
import { cpus, isMainThread, platform } from './environment.ts'
import { TerminateError } from './errors.ts'
import type { WorkerPoolOptions } from './options.ts'
import { Pool } from './pool.ts'
import { WorkerpoolPromise } from './promise.ts'
import { worker, workerEmit } from './register.ts'
import { Transfer } from './transfer.ts'

/** Makes a pool: of workers that load the script, or of workers that only run functions. */
export function pool(options?: WorkerPoolOptions): Pool
export function pool(script?: string, options?: WorkerPoolOptions): Pool
export function pool(script?: string | WorkerPoolOptions, options?: WorkerPoolOptions): Pool {
  return new Pool(script as string, options)
}

export { cpus, isMainThread, platform } from './environment.ts'
export { TerminateError } from './errors.ts'
export type { ExecOptions, WorkerArg, WorkerPoolOptions, WorkerRegisterOptions } from './options.ts'
export type { Pool, PoolStats, Proxy } from './pool.ts'
export { WorkerpoolPromise as Promise } from './promise.ts'
export type { Task, TaskQueue } from './queues.ts'
export { worker, workerEmit } from './register.ts'
export { Transfer } from './transfer.ts'

const workerpool: {
  readonly pool: typeof pool
  readonly worker: typeof worker
  readonly workerEmit: typeof workerEmit
  readonly Promise: typeof WorkerpoolPromise
  readonly Transfer: typeof Transfer
  readonly TerminateError: typeof TerminateError
  readonly platform: 'node'
  readonly isMainThread: boolean
  readonly cpus: number
} = {
  pool,
  worker,
  workerEmit,
  Promise: WorkerpoolPromise,
  Transfer,
  TerminateError,
  platform,
  isMainThread,
  cpus,
}
export default workerpool
