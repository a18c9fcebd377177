import type { DomainHandle } from './domain.ts'

/**
 * Node's threads inherit the domain of the thread that starts them, through the environment data that every
 * Worker gets a copy of. No import: the same module serves a page, where there is nothing to inherit from.
 */
interface WorkerThreads {
  getEnvironmentData(key: string): unknown
  setEnvironmentData(key: string, value: unknown): void
}

const KEY = 'heddle.domain'

function workerThreads(): WorkerThreads | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?(name: string): unknown } }
  return process?.getBuiltinModule?.('node:worker_threads') as WorkerThreads | undefined
}

/** The domain that the thread which started this one was in; undefined: it was in none. */
export function inheritedDomain(): DomainHandle | undefined {
  return workerThreads()?.getEnvironmentData(KEY) as DomainHandle | undefined
}

/** Every worker that this thread starts from now on inherits this domain. */
export function leaveDomainToWorkers(handle: DomainHandle): void {
  workerThreads()?.setEnvironmentData(KEY, handle)
}
