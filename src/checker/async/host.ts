import { CheckError } from '../errors.ts'

/**
 * What a check of asynchronous code needs of Node: microtasks and ticks that run now, inside of one turn of
 * the event loop. While an execution runs the loop does not turn, so nothing from outside can come between:
 * no socket, no real timer, no other test.
 */
export interface Host {
  /** Runs ticks and microtasks until there are none. Node tells `process` of rejections without a handler. */
  drain(onThrow?: (error: unknown) => void): void
  /** The same function, called in the context in which this is called: as Node does it for timers. */
  bind(callback: () => void): () => void
  /** The task in whose context the code that runs was called; undefined outside of all. */
  readonly context: Context
}

/** What `AsyncLocalStorage` is used for. */
export interface Context {
  run<T>(task: number, body: () => T): T
  getStore(): number | undefined
}

/** Thrown by `slice` when the body did not come back in time. */
export class Endless extends Error {}

export interface Hook {
  enable(): unknown
  disable(): unknown
}

let host: NodeHost | undefined

/** The host of this process. Throws a CheckError where there is no Node. */
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
   * Runs the body in a turn of the event loop of its own, when all microtasks before it are done, and `after`
   * in any case. Rejects with `Endless` after `patience` ms.
   */
  slice<T>(patience: number, body: () => T, after: () => void): Promise<T> {
    return new Promise((resolve, reject) => {
      this.immediate(() => {
        // An immediate begins when all microtasks before it are done.
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

  /** Makes something of which hooks are told, and takes it back. */
  makeResource(): void {
    this.clear(this.immediate(() => undefined))
  }

  drain(onThrow?: (error: unknown) => void): void {
    try {
      ;(process as Ticking)._tickCallback?.()
    } catch (error) {
      // Only a tick lets what it throws out: of a `nextTick` that was taken before the check.
      if (onThrow === undefined) throw error
      this.torn = true
      onThrow(error)
    }
  }

  /**
   * A hook that tells of every resource of Node which is made while it is enabled and needs a turn of the
   * event loop.
   */
  resources(onResource: (type: string, resource: object) => void): Hook {
    const { AsyncResource, createHook } = this.asyncHooks
    const options = {
      init(_id: number, type: string, _trigger: number, resource: object): void {
        if (!HARMLESS.has(type) && !(resource instanceof AsyncResource)) onResource(type, resource)
      },
      // Newer Nodes: promises need not be told of.
      trackPromises: false,
    }
    return createHook(options)
  }

  /** A hook that tells of promises: where they are made, and when they are settled. */
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
 * Code that is cut off, and a tick that throws, leave their async scopes open, and Node ends the process when
 * it finds them. It closes them when it handles an exception that nothing caught: so there is one, which goes
 * nowhere.
 */
function throwAway(): void {
  if (process.hasUncaughtExceptionCaptureCallback()) return
  process.setUncaughtExceptionCaptureCallback(() => process.setUncaughtExceptionCaptureCallback(null))
  throw new Endless()
}

/** Resources that need no turn of the event loop. */
const HARMLESS: ReadonlySet<string> = new Set(['PROMISE', 'TickObject', 'Microtask'])

export type { NodeHost }
