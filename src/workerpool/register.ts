import type { WorkerRegisterOptions } from './options.ts'
import { state } from './workerstate.ts'

/** In the script of a pool: registers the methods for `pool.exec`. */
export function worker(
  methods?: Record<string, (...args: any[]) => any>,
  options?: WorkerRegisterOptions,
): void {
  workerHere('worker(methods)').register(methods, options)
}

/** In a worker: sends an event to the `on` of the running task. Without a task, it sends nothing. */
export function workerEmit(payload: unknown): void {
  workerHere('workerEmit(payload)').emit(payload)
}

function workerHere(what: string): NonNullable<typeof state.worker> {
  if (state.worker === null)
    throw new Error(
      `${what}: this thread is no worker of a pool; call it in the script that pool(script) of heddle/workerpool is given`,
    )
  return state.worker
}
