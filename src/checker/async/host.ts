import { CheckError } from '../errors.ts'

/**
 * What a check of asynchronous code needs from Node: to run microtasks and ticks inside one turn of the event
 * loop. While an execution runs the loop does not turn, so nothing from outside can interfere: no socket, no
 * real timer, no other test.
 */
export interface Host {
  /** Runs ticks and microtasks until none is left. Node emits rejections without a handler on `process`. */
  drain(onThrow?: (error: unknown) => void): void
  /** The callback, bound to the async context of this call, as Node does for timers. */
  bind(callback: () => void): () => void
  /** The task in whose context the running code was called; undefined outside of tasks. */
  readonly context: Context
}

/** The part of `AsyncLocalStorage` that is used. */
export interface Context {
  run<T>(task: number, body: () => T): T
  getStore(): number | undefined
}

/** Thrown by `slice` when the body did not return in time. */
export class Endless extends Error {}

export interface Hook {
  enable(): unknown
  disable(): unknown
}

let host: NodeHost | undefined

/** The host of this process. Throws a CheckError if this is not Node. */
export function nodeHost(): NodeHost {
  if (host !== undefined) return host
  const getBuiltin = typeof process === 'object' ? process.getBuiltinModule : undefined
  if (typeof getBuiltin !== 'function' || typeof (process as Ticking)._tickCallback !== 'function') {
    throw new CheckError(
      'ERR_CHECK_HOST',
      'check.async needs Node 20.19 or later: only there can its microtasks be run to their end',
    )
  }
  host = new NodeHost()
  return host
}

interface Ticking {
  _tickCallback?: () => void
}

const BODY = Symbol.for('heddle.checker.slice')

class NodeHost implements Host {
  readonly context: Context
  private readonly asyncHooks = process.getBuiltinModule('node:async_hooks')
  private readonly script: { runInThisContext(options: { timeout: number }): unknown }
  private readonly global: Record<symbol, unknown>
  private readonly timers = process.getBuiltinModule('node:timers')
  private readonly immediate = this.timers.setImmediate
  private readonly clear = this.timers.clearImmediate
  /** Whether async scopes were left open in this slice. */
  private torn = false

  constructor() {
    const vm = process.getBuiltinModule('node:vm')
    this.context = new this.asyncHooks.AsyncLocalStorage<number>()
    this.global = vm.runInThisContext('globalThis') as Record<symbol, unknown>
    this.script = new vm.Script(`globalThis[Symbol.for('heddle.checker.slice')]()`)
  }

  /**
   * Runs the body in a turn of the event loop of its own, when all earlier microtasks are done, and then
   * `after` in any case. Rejects with `Endless` after `patience` ms.
   */
  slice<T>(patience: number, body: () => T, after: () => void): Promise<T> {
    return new Promise((resolve, reject) => {
      this.immediate(() => {
        // An immediate starts when all earlier microtasks are done.
        this.global[BODY] = body
        this.torn = false
        try {
          resolve(this.script.runInThisContext({ timeout: patience }) as T)
        } catch (error) {
          const cut = (error as { code?: unknown } | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
          if (cut) this.torn = true
          reject(cut ? new Endless() : error)
        } finally {
          delete this.global[BODY]
          after()
        }
        if (this.torn) throwAway()
      })
    })
  }

  bind(callback: () => void): () => void {
    const resource = new this.asyncHooks.AsyncResource('VirtualTimer')
    return () => resource.runInAsyncScope(callback)
  }

  /** Creates a resource that hooks report, and undoes it. */
  makeResource(): void {
    this.clear(this.immediate(() => undefined))
  }

  drain(onThrow?: (error: unknown) => void): void {
    try {
      ;(process as Ticking)._tickCallback?.()
    } catch (error) {
      // Only a tick of a `nextTick` that was taken before the check lets its error escape.
      if (onThrow === undefined) throw error
      this.torn = true
      onThrow(error)
    }
  }

  /**
   * A hook that reports every resource of Node that is created while it is enabled and needs a turn of the
   * event loop.
   */
  resources(onResource: (type: string, resource: object) => void): Hook {
    const { AsyncResource, createHook } = this.asyncHooks
    const options = {
      init(_id: number, type: string, _trigger: number, resource: object): void {
        if (!HARMLESS.has(type) && !(resource instanceof AsyncResource)) onResource(type, resource)
      },
      // For newer versions of Node: promises need no report.
      trackPromises: false,
    }
    return createHook(options)
  }

  /** A hook that reports when promises are made and settled. */
  promises(made: (id: number) => void, settled: (id: number) => void): Hook {
    return this.asyncHooks.createHook({
      init(id, type) {
        if (type === 'PROMISE') made(id)
      },
      promiseResolve: settled,
    })
  }
}

/**
 * Code that is cut off, and a tick that throws, leave their async scopes open. Node ends the process when it
 * finds them, and closes them when it handles an uncaught exception. So this throws one, and ignores it.
 */
function throwAway(): void {
  if (process.hasUncaughtExceptionCaptureCallback()) return
  process.setUncaughtExceptionCaptureCallback(() => process.setUncaughtExceptionCaptureCallback(null))
  throw new Endless()
}

/** Resources that need no turn of the event loop. */
const HARMLESS: ReadonlySet<string> = new Set(['PROMISE', 'TickObject', 'Microtask'])

export type { NodeHost }
