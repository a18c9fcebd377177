/** What code in a worker asks piscina for; a pool's CPUs set it before they load any other module. */
interface State {
  isWorkerThread: boolean
  workerData: any
}

const key = Symbol.for('heddle.piscina.state')
const globals = globalThis as { [key]?: State }

/**
 * One for each thread, however often this module is loaded there: a transpiler may load it as CommonJS too.
 */
export const state: State = (globals[key] ??= { isWorkerThread: false, workerData: undefined })
