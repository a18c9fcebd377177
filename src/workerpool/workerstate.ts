/** A running task of this worker. */
export interface Request {
  readonly id: number
  /** How many events it has sent. */
  events: number
  readonly abortListeners: (() => unknown)[]
}

/** workerpool's state in a worker thread. The CPUs of a pool set it before they load any other module. */
interface State {
  /** Null if this thread is no worker of a pool. */
  worker: {
    /** Receives the arguments of `worker(methods, options)`. */
    register(methods: object | undefined, options: object | undefined): void
    emit(payload: unknown): void
  } | null
}

const key = Symbol.for('heddle.workerpool.state')
const globals = globalThis as { [key]?: State }

/** One for each thread, even if this module is loaded twice. */
export const state: State = (globals[key] ??= { worker: null })
