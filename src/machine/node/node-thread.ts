import { hrtimeMs } from './node-clock.ts'
import type { TimekeeperBoot } from '../timekeeper/timekeeper.ts'

/** Globals that may be missing. */
interface Globals {
  readonly process?: { getBuiltinModule?(name: string): unknown; hrtime?: unknown }
}

interface NodeWorker {
  unref(): void
  on(event: 'error', listener: (error: unknown) => void): unknown
  terminate(): unknown
}

interface WorkerThreads {
  readonly Worker: new (file: URL, options: object) => NodeWorker
}

/**
 * Starts a timekeeper for this thread on a Node worker. Returns a function that ends it; undefined outside of
 * Node. Imports no module of Node, so that a page can load this module without a build.
 */
export function startNodeTimekeeper(boot: Omit<TimekeeperBoot, 'origin'>): (() => void) | undefined {
  const { process } = globalThis as unknown as Globals
  const threads = process?.getBuiltinModule?.('node:worker_threads') as WorkerThreads | undefined
  if (threads === undefined || process?.hrtime === undefined) return undefined
  const workerData: TimekeeperBoot = { ...boot, origin: hrtimeMs() }
  const worker = new threads.Worker(new URL('./node-timekeeper.ts', import.meta.url), {
    workerData,
    name: 'heddle timekeeper',
    execArgv: [],
    stdin: false,
  })
  // Without a timekeeper the schedule uses the clock.
  worker.on('error', () => {})
  worker.unref()
  return () => void worker.terminate()
}
