/** `heddle/piscina`: piscina's interface on the kernel. Change the import, keep the code. Node only. */
import { Piscina } from './piscina.ts'
import { state } from './workerstate.ts'

export default Piscina
/** The value of `require('heddle/piscina')`: the class, as with `require('piscina')`. */
export { Piscina as 'module.exports' }
export { Piscina } from './piscina.ts'
export type { PiscinaLoadBalancer, PiscinaWorker } from './balancer.ts'
export type { PiscinaHistogram, PiscinaHistogramSummary } from './histogram.ts'
export { move, type Transferable } from './transferable.ts'
export type { CloseOptions, FilledOptions, PoolOptions, RunOptions, TransferList } from './options.ts'
export { ArrayTaskQueue, FixedQueue, type PiscinaTask, type TaskQueue } from './queues.ts'
export { queueOptionsSymbol, transferableSymbol, valueSymbol } from './symbols.ts'
export { version } from './version.ts'
export const isWorkerThread: boolean = state.isWorkerThread
export const workerData: any = state.workerData
