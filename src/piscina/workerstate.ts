/** piscina's state in a worker thread. The CPUs of a pool set it before they load any other module. */
interface State {
  isWorkerThread: boolean
  workerData: any
}

const key = Symbol.for('heddle.piscina.state')
const globals = globalThis as { [key]?: State }

/** One for each thread, even if this module is loaded twice: a transpiler may load it as CommonJS too. */
export const state: State = (globals[key] ??= { isWorkerThread: false, workerData: undefined })
