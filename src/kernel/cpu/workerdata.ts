/**
 * The option `workerData` of the kernel, on a CPU in a browser or a simulated CPU.
 */
let given: unknown

interface Globals {
  readonly process?: { getBuiltinModule?(name: string): unknown }
}

/**
 * This CPU's copy of the kernel's option `workerData`; undefined if the option was not given, and on the
 * booting thread.
 */
export function workerData<T = unknown>(): T {
  const { process } = globalThis as unknown as Globals
  const threads = process?.getBuiltinModule?.('node:worker_threads') as
    | { readonly workerData: unknown; readonly isMainThread: boolean }
    | undefined
  if (threads !== undefined && !threads.isMainThread && given === undefined) return threads.workerData as T
  return given as T
}

/** Called when a CPU starts. */
export function setWorkerData(data: unknown): void {
  given = data
}
