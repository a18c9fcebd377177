/**
 * The services of the platform for a thread that is not a CPU: a clock, a turn of the event loop, a timer,
 * and, where they exist, the asynchronous context and a way to block. They are detected, not imported, so
 * that the same module runs in Node, in a worker and in a page.
 */
export interface Platform {
  /** Milliseconds; never goes back. */
  now(): number
  /** Resolves after one turn of the event loop, without a timer's minimum delay. */
  turn(): Promise<void>
  /**
   * The number of events that the event loop has delivered so far; undefined if the platform does not count
   * them.
   */
  delivered?(): number
  setTimer(callback: () => void, ms: number): unknown
  /** The shortest time that a timer can be set for, in milliseconds. Undefined means 1. */
  readonly timerGrain?: number
  clearTimer(timer: unknown): void
  /** Blocks the thread. Missing where blocking is forbidden. */
  block?(ms: number): void
  /** Captures the current asynchronous context. Missing where the platform has none. */
  capture?(): Context
  /** Warns the user of a probable mistake. */
  warn?(message: string): void
}

/** An asynchronous context: it determines the values of AsyncLocalStorage. */
export interface Context {
  /** Calls `fn` with this `self` and `arg` in the context. */
  run<A>(fn: (arg: A) => void, self: unknown, arg: A): void
}

interface AsyncResource {
  runInAsyncScope(fn: (...args: any[]) => unknown, self: unknown, ...args: unknown[]): unknown
}

interface AsyncHooks {
  readonly AsyncResource: new (type: string, options: { requireManualDestroy: boolean }) => AsyncResource
}

/** Globals that may be missing. */
interface Globals {
  readonly process?: {
    getBuiltinModule?(name: string): unknown
    emitWarning?(message: string, options: { type: string }): void
  }
  readonly setImmediate?: (callback: () => void) => unknown
  readonly MessageChannel?: typeof MessageChannel
  readonly performance: { now(): number; nodeTiming?: { uvMetricsInfo?: { events: number } } }
}

export function hostPlatform(): Platform {
  const globals = globalThis as unknown as Globals
  const capture = contextCapture(globals)
  const block = blocker()
  const delivered = eventCounter(globals)
  return {
    now: () => performance.now(),
    turn: loopTurn(globals),
    setTimer: (callback, ms) => setTimeout(callback, ms),
    clearTimer: timer => clearTimeout(timer as ReturnType<typeof setTimeout>),
    warn: warner(globals),
    ...(delivered && { delivered }),
    ...(block && { block }),
    ...(capture && { capture }),
  }
}

/**
 * Node's `setImmediate` runs after one poll for I/O. In a browser a message to the own thread is the nearest
 * equivalent.
 */
function loopTurn(globals: Globals): () => Promise<void> {
  const { setImmediate, MessageChannel } = globals
  if (setImmediate !== undefined) return () => new Promise(resolve => void setImmediate(resolve))
  if (MessageChannel === undefined) return () => new Promise(resolve => setTimeout(resolve, 0))
  let waiting: (() => void)[] = []
  const { port1, port2 } = new MessageChannel()
  port1.onmessage = () => {
    const [first, ...rest] = waiting
    waiting = rest
    first?.()
  }
  return () =>
    new Promise(resolve => {
      waiting.push(resolve)
      port2.postMessage(null)
    })
}

function eventCounter({ performance }: Globals): (() => number) | undefined {
  if (performance.nodeTiming?.uvMetricsInfo?.events === undefined) return undefined
  return () => performance.nodeTiming?.uvMetricsInfo?.events ?? 0
}

/** On a thread that must not block, `Atomics.wait` throws immediately for any arguments. */
function blocker(): ((ms: number) => void) | undefined {
  if (typeof SharedArrayBuffer === 'undefined') return undefined
  const word = new Int32Array(new SharedArrayBuffer(4))
  try {
    Atomics.wait(word, 0, 1, 0)
  } catch {
    return undefined
  }
  return ms => void Atomics.wait(word, 0, 0, ms)
}

function warner({ process }: Globals): (message: string) => void {
  if (process?.emitWarning === undefined) return message => console.warn(message)
  return message => process.emitWarning?.(message, { type: 'HeddleWarning' })
}

function contextCapture({ process }: Globals): (() => Context) | undefined {
  const hooks = process?.getBuiltinModule?.('node:async_hooks') as AsyncHooks | undefined
  if (hooks === undefined) return undefined
  const { AsyncResource } = hooks
  const options = { requireManualDestroy: true }
  return () => new ResourceContext(new AsyncResource('HeddleCoroutine', options))
}

class ResourceContext implements Context {
  readonly #resource: AsyncResource

  constructor(resource: AsyncResource) {
    this.#resource = resource
  }

  run<A>(fn: (arg: A) => void, self: unknown, arg: A): void {
    this.#resource.runInAsyncScope(fn, self, arg)
  }
}
