import type { EnterContext } from './context.ts'
import type { AnyFunction } from '../spawn/functions.ts'
import type { CpuTask } from './cputask.ts'

/**
 * Which task an async function belongs to. Its continuations run in the event loop, where no task runs on the
 * CPU. The platform's AsyncLocalStorage keeps it; without one, only the first stretch of the function knows.
 */
interface Storage {
  run(store: CpuTask, fn: () => unknown): unknown
  getStore(): CpuTask | undefined
}

interface StorageClass {
  new (): Storage
  snapshot?(): EnterContext
}

interface Globals {
  readonly process?: { getBuiltinModule?(name: string): unknown }
}

let storage: Storage | null | undefined

function storageClass(): StorageClass | null {
  const hooks = (globalThis as unknown as Globals).process?.getBuiltinModule?.('node:async_hooks') as
    | { AsyncLocalStorage: StorageClass }
    | undefined
  return hooks?.AsyncLocalStorage ?? null
}

function storageOf(): Storage | null {
  if (storage === undefined) {
    const found = storageClass()
    storage = found === null ? null : new found()
  }
  return storage
}

let snapshots: StorageClass | null | undefined

/** The current asynchronous context; null: the platform has none. */
export function currentContext(): EnterContext | null {
  if (snapshots === undefined) snapshots = storageClass()
  return snapshots?.snapshot?.() ?? null
}

export const asyncContext: {
  run(run: CpuTask, fn: AnyFunction, args: readonly unknown[]): unknown
  current(): CpuTask | undefined
} = {
  run(run, fn, args) {
    const kept = storageOf()
    if (kept === null) return fn.apply(undefined, args as unknown[])
    return kept.run(run, () => fn.apply(undefined, args as unknown[]))
  },
  current: () => storage?.getStore(),
}
