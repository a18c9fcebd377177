/** A task that runs on this worker. */
export interface Request {
  readonly id: number
  /** How many events it has sent. */
  events: number
  readonly abortListeners: (() => unknown)[]
}

/** What code in a worker asks workerpool for; a pool's CPUs set it before they load any other module. */
interface State {
  /** Null: this thread is no worker of a pool. */
  worker: {
    /** Takes what `worker(methods, options)` is given. */
    register(methods: object | undefined, options: object | undefined): void
    emit(payload: unknown): void
  } | null
}

const key = Symbol.for('heddle.workerpool.state')
const globals = globalThis as { [key]?: State }

/** One for each thread, however often this module is loaded there. */
export const state: State = (globals[key] ??= { worker: null })
