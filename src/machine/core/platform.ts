/**
 * What one thread that is not a CPU needs of the place where it runs: a clock, a turn of the event loop, a
 * timer, and, where they exist, the asynchronous context and a way to block. Found by looking at what is
 * there: no import, so the same module serves Node, a worker and a page.
 */
export interface Platform {
  /** Milliseconds; never goes back. */
  now(): number
  /** Resolves after the event loop has gone round once: without a timer's minimum delay. */
  turn(): Promise<void>
  /** How many events the loop has delivered so far; undefined where nobody counts them. */
  delivered?(): number
  setTimer(callback: () => void, ms: number): unknown
  /** The shortest time that a timer can be set for, in milliseconds. 1 where it is not said. */
  readonly timerGrain?: number
  clearTimer(timer: unknown): void
  /** Blocks the thread. Missing where that is forbidden. */
  block?(ms: number): void
  /** Takes the asynchronous context of the moment. Missing where there is none. */
  capture?(): Context
  /** Tells whoever runs the program of something that is probably not meant. */
  warn?(message: string): void
}

/** An asynchronous context: what AsyncLocalStorage would answer inside. */
export interface Context {
  /** Calls `fn` with this `self` and `arg` inside of it. */
  run<A>(fn: (arg: A) => void, self: unknown, arg: A): void
}

interface AsyncResource {
  runInAsyncScope(fn: (...args: any[]) => unknown, self: unknown, ...args: unknown[]): unknown
}

interface AsyncHooks {
  readonly AsyncResource: new (type: string, options: { requireManualDestroy: boolean }) => AsyncResource
}

/** The globals that may or may not be there. */
interface Globals {
  readonly process?: {
    getBuiltinModule?(name: string): unknown
    emitWarning?(message: string, options: { type: string }): void
  }
  readonly setImmediate?: (callback: () => void) => unknown
  readonly MessageChannel?: typeof MessageChannel
  readonly performance: { now(): number; nodeTiming?: { uvMetricsInfo?: { events: number } } }
}

/** The platform of this thread. */
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

/** Node's `setImmediate` runs after one poll for I/O; a message to oneself is the browser's nearest thing. */
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

/** `Atomics.wait` throws at once, whatever it is given, on a thread that may not block. */
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
