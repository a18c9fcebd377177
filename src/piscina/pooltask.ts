import { AsyncResource } from 'node:async_hooks'
import { performance } from 'node:perf_hooks'
import type { TaskPriority } from '../kernel/boot/options.ts'
import type { Task as KernelTask } from '../kernel/join/task.ts'
import { type AbortSignalAny, onAbort } from './abort.ts'
import { isMovable, transferListOf } from './transferable.ts'
import type { TransferList } from './options.ts'
import type { PoolWorker } from './poolworker.ts'
import type { PiscinaTask, Task } from './queues.ts'
import { queueOptionsSymbol, valueSymbol } from './symbols.ts'

let nextId = 0

interface TaskSpec {
  readonly task: any
  readonly transferList: TransferList
  readonly filename: string
  readonly name: string
  readonly abortSignal: AbortSignalAny | null
  readonly priority: TaskPriority | undefined
  readonly nice: number | undefined
  readonly triggerAsyncId: number
}

/**
 * A task of a pool, from `run` to its result. As an AsyncResource, it lets tools that follow asynchronous
 * work see its origin.
 */
export class PoolTask extends AsyncResource {
  task: any
  readonly transferList: object[]
  readonly filename: string
  readonly name: string
  readonly taskId: number = nextId++
  readonly abortSignal: AbortSignalAny | null
  readonly priority: TaskPriority | undefined
  readonly nice: number | undefined
  readonly created: number = performance.now()
  started = 0
  aborted = false
  /** Null while it waits. */
  worker: PoolWorker | null = null
  kernelTask: KernelTask<unknown> | null = null
  private isDone = false
  private readonly callback: (error: unknown, result: unknown) => void
  private stopListening: (() => void) | null = null

  constructor(spec: TaskSpec, callback: (error: unknown, result: unknown) => void) {
    super('Piscina.Task', { requireManualDestroy: true, triggerAsyncId: spec.triggerAsyncId })
    const { task, transferList } = spec
    this.callback = callback
    this.task = isMovable(task) ? task[valueSymbol] : task
    this.transferList = isMovable(task) ? [...transferList, ...transferListOf(task)] : [...transferList]
    this.filename = spec.filename
    this.name = spec.name
    this.abortSignal = spec.abortSignal
    this.priority = spec.priority
    this.nice = spec.nice
  }

  listen(signal: AbortSignalAny, aborted: () => void): void {
    this.stopListening = onAbort(signal, () => {
      this.aborted = true
      aborted()
    })
  }

  /** Ends the task, once. `error` is null if it returned. */
  done(error: unknown, result?: unknown): void {
    if (this.isDone) return
    this.isDone = true
    this.runInAsyncScope(this.callback, null, error, result)
    this.emitDestroy()
    this.stopListening?.()
  }

  /** The program's queue options. */
  get queueOptions(): object | null {
    return this.task?.[queueOptionsSymbol] ?? null
  }

  get interface(): PiscinaTask {
    const { taskId, filename, name, created } = this
    const isAbortable = this.abortSignal !== null
    return { taskId, filename, name, created, isAbortable, [queueOptionsSymbol]: this.queueOptions }
  }
}

// Defined here, because an exported class cannot have computed names.
Object.defineProperty(PoolTask.prototype, queueOptionsSymbol, {
  configurable: true,
  get(this: PoolTask) {
    return this.queueOptions
  },
})

/** The task for a queue. */
export function queued(task: PoolTask): Task {
  return task as unknown as Task
}

export function unqueued(task: Task | null): PoolTask {
  return task as unknown as PoolTask
}
