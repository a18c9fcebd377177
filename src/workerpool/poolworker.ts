import type { Worker } from 'node:worker_threads'
import type { PoolCpus } from '../piscina/cpus.ts'
import type { Task as KernelTask } from '../kernel/join/task.ts'
import type { WorkerArg } from './options.ts'
import type { Task } from './queues.ts'
import type { Answer } from './worker.ts'

/** The workers with the same script and options: CPUs of one kernel. */
export interface CpuGroup {
  readonly cpus: PoolCpus
  readonly workers: Set<PoolWorker>
}

/** A task on a worker. */
export interface RunningTask {
  readonly id: number
  readonly task: Task
  readonly worker: PoolWorker
  kernelTask: KernelTask<Answer> | null
  /** How many of its events have arrived. */
  heard: number
  /** Its result, until all of its events have arrived. */
  answer: Answer | null
}

/** A thread as workerpool shows it. */
type PoolThread = Worker & { isWorkerThread: true; kill(): true }

/** A worker of a pool: a CPU, from its start to its end. */
export class PoolWorker {
  readonly cpu: number
  readonly group: CpuGroup
  readonly worker: PoolThread
  readonly arg: WorkerArg
  readonly tasks: Set<RunningTask> = new Set()
  isOnline = false
  /** It takes no more tasks, and ends after the last one. */
  isLeaving = false
  isGone = false
  /** Resolved when it has ended; null before its end begins. */
  end: Promise<void> | null = null
  /** Called when it has no awaited task left. */
  whenFree: (() => void) | null = null

  constructor(cpu: number, thread: Worker, group: CpuGroup, arg: WorkerArg) {
    this.cpu = cpu
    this.group = group
    this.arg = arg
    this.worker = Object.assign(thread, {
      isWorkerThread: true as const,
      kill: (): true => {
        void thread.terminate()
        return true
      },
    })
  }

  busy(): boolean {
    return this.tasks.size > 0 || this.isLeaving
  }

  /** True if a caller waits for one of its tasks: cancelled tasks only have to end. */
  get isAwaited(): boolean {
    for (const { task } of this.tasks) if (task.resolver.promise.pending) return true
    return false
  }
}
