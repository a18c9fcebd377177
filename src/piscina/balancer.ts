import type { PiscinaHistogramSummary } from './histogram.ts'
import type { PiscinaTask } from './queues.ts'

/** A worker of a pool as load balancers and listeners see it. */
export interface PiscinaWorker {
  readonly id: number
  /** Tasks that it has; Infinity: it may have no other, because aborting its task ends it. */
  readonly currentUsage: number
  readonly isRunningAbortableTask: boolean
  readonly histogram: PiscinaHistogramSummary | null
  readonly terminating: boolean
  readonly destroyed: boolean
}

/** Which worker gets a task; null: none has room. */
export type PiscinaLoadBalancer = (task: PiscinaTask, workers: PiscinaWorker[]) => PiscinaWorker | null

/**
 * The worker with the fewest tasks, if that is fewer than `maximumUsage`; an abortable task gets a worker of
 * its own.
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
