import type { AnyFunction } from './functions.ts'
import type { TaskRun } from './taskrun.ts'

/**
 * Which task an async function belongs to, wherever its continuations run: between its awaits no task is running on the
 * CPU. Kept by the platform's AsyncLocalStorage; where there is none, only its first stretch knows.
 */
interface Storage {
  run(store: TaskRun, fn: () => unknown): unknown
  getStore(): TaskRun | undefined
}

interface Globals {
  readonly process?: { getBuiltinModule?(name: string): unknown }
}

let storage: Storage | null | undefined

function storageOf(): Storage | null {
  if (storage === undefined) {
    const hooks = (globalThis as unknown as Globals).process?.getBuiltinModule?.('node:async_hooks') as
      | { AsyncLocalStorage: new () => Storage }
      | undefined
    storage = hooks === undefined ? null : new hooks.AsyncLocalStorage()
  }
  return storage
}

export const asyncContext: {
  run(run: TaskRun, fn: AnyFunction, args: readonly unknown[]): unknown
  current(): TaskRun | undefined
} = {
  run(run, fn, args) {
    const kept = storageOf()
    if (kept === null) return fn.apply(undefined, args as unknown[])
    return kept.run(run, () => fn.apply(undefined, args as unknown[]))
  },
  current: () => storage?.getStore(),
}
