import type { Worker } from 'node:worker_threads'
import type { PoolCpus } from '../piscina/cpus.ts'
import type { Task as KernelTask } from '../kernel/join/task.ts'
import type { WorkerArg } from './options.ts'
import type { Task } from './queues.ts'
import type { Answer } from './worker.ts'

/** The workers that are made with the same script and options: CPUs of one kernel. */
export interface CpuGroup {
  readonly cpus: PoolCpus
  readonly workers: Set<PoolWorker>
}

/** A task that a worker has. */
export interface RunningTask {
  readonly id: number
  readonly task: Task
  readonly worker: PoolWorker
  kernelTask: KernelTask<Answer> | null
  /** Events that have come. */
  heard: number
  /** How it has ended, until all of its events have come. */
  answer: Answer | null
}

/** A thread, as workerpool shows one. */
export type PoolThread = Worker & { isWorkerThread: true; kill(): true }

/** A worker of a pool: one life of a CPU. */
export class PoolWorker {
  readonly cpu: number
  readonly group: CpuGroup
  readonly worker: PoolThread
  readonly arg: WorkerArg
  readonly tasks: Set<RunningTask> = new Set()
  isOnline = false
  /** It takes no more tasks, and ends with the last of those that it has. */
  isLeaving = false
  isGone = false
  /** It ends; settled when it has. */
  end: Promise<void> | null = null
  /** Called when it has no task any more that anyone waits for. */
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

  /** Whether someone waits for one of its tasks: those that were cancelled only have to go. */
  get isAwaited(): boolean {
    for (const { task } of this.tasks) if (task.resolver.promise.pending) return true
    return false
  }
}
