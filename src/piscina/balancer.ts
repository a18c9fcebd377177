import type { PiscinaHistogramSummary } from './histogram.ts'
import type { PiscinaTask } from './queues.ts'

/** A worker of a pool as load balancers and listeners see it. */
export interface PiscinaWorker {
  readonly id: number
  /** The number of its tasks. Infinity: it must get no other, because aborting its task ends it. */
  readonly currentUsage: number
  readonly isRunningAbortableTask: boolean
  readonly histogram: PiscinaHistogramSummary | null
  readonly terminating: boolean
  readonly destroyed: boolean
}

/** Chooses the worker for a task; null if none has room. */
export type PiscinaLoadBalancer = (task: PiscinaTask, workers: PiscinaWorker[]) => PiscinaWorker | null

/**
 * The worker with the fewest tasks, if it has fewer than `maximumUsage`. An abortable task gets a worker for
 * itself.
 */
export function leastBusy(maximumUsage: number, sharesAbortable: boolean): PiscinaLoadBalancer {
  return (task, workers) => {
    let best: PiscinaWorker | null = null
    let least = maximumUsage
    for (const worker of workers) {
      const { currentUsage } = worker
      if (currentUsage === 0) return worker
      if (task.isAbortable && !sharesAbortable) continue
      if (currentUsage < least) {
        best = worker
        least = currentUsage
      }
    }
    return best
  }
}
