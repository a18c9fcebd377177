import type { Worker } from 'node:worker_threads'
import type { PiscinaWorker } from './balancer.ts'
import { Times } from './histogram.ts'
import type { PoolTask } from './pooltask.ts'

/** A worker of a pool: a CPU of its kernel, from its start to its end. */
export class PoolWorker {
  readonly cpu: number
  readonly thread: Worker
  readonly tasks: Set<PoolTask> = new Set()
  readonly times: Times | null
  /** It takes tasks, or is one of the first workers, which get tasks before they do. */
  isReady = false
  /** Listeners know the worker. */
  isTold = false
  destroyed = false
  /** The worker for listeners and balancers. */
  readonly interface: PiscinaWorker
  private readonly sharesAbortable: boolean
  private idleTimer: NodeJS.Timeout | undefined

  constructor(
    cpu: number,
    thread: Worker,
    { times, sharesAbortable }: { times: boolean; sharesAbortable: boolean },
  ) {
    this.cpu = cpu
    this.thread = thread
    this.times = times ? new Times() : null
    this.sharesAbortable = sharesAbortable
    this.interface = interfaceOf(this)
  }

  /** True if its one task is abortable, and an abort would end the worker. */
  get isRunningAbortableTask(): boolean {
    if (this.sharesAbortable || this.tasks.size !== 1) return false
    const [task] = this.tasks
    return task.abortSignal !== null
  }

  get usage(): number {
    return this.isRunningAbortableTask ? Infinity : this.tasks.size
  }

  whenIdle(ms: number, act: () => void): void {
    clearTimeout(this.idleTimer)
    this.idleTimer = setTimeout(act, ms).unref()
  }

  /** Detaches the worker from the pool. */
  leave(): void {
    this.destroyed = true
    clearTimeout(this.idleTimer)
  }
}

const workers = new WeakMap<PiscinaWorker, PoolWorker>()

/** The pool worker behind the choice of a load balancer; undefined if there is none. */
export function workerOf(chosen: PiscinaWorker | null | undefined): PoolWorker | undefined {
  return chosen == null ? undefined : workers.get(chosen)
}

function interfaceOf(worker: PoolWorker): PiscinaWorker {
  const face: PiscinaWorker = {
    get id() {
      return worker.thread.threadId
    },
    get currentUsage() {
      return worker.usage
    },
    get isRunningAbortableTask() {
      return worker.isRunningAbortableTask
    },
    get histogram() {
      return worker.times?.summary ?? null
    },
    terminating: false,
    get destroyed() {
      return worker.destroyed
    },
  }
  workers.set(face, worker)
  return face
}
