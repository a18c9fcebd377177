/**
 * What the program gave each CPU as `workerData`, on a thread that is a CPU in a browser, or a simulated one.
 */
let given: unknown

interface Globals {
  readonly process?: { getBuiltinModule?(name: string): unknown }
}

/**
 * The copy of the kernel's option `workerData` that this CPU has; undefined where there is none, and on the
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

/** As a CPU starts. */
export function setWorkerData(data: unknown): void {
  given = data
}
