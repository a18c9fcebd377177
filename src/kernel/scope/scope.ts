import type { Spawnable } from '../spawn/modules.ts'
import type { SpawnOptions } from '../boot/options.ts'
import { type BodyEnd, ScopeMembers } from './scopemembers.ts'
import type { Task } from '../join/task.ts'

/** The kernel's `spawn`, for scopes on the booting thread. */
interface Spawner {
  spawn<A extends readonly unknown[], T>(fn: Spawnable<A, T>, args?: A | [], options?: SpawnOptions): Task<T>
}

/**
 * A scope on the booting thread: `kernel.scope(async scope => …)`, or `await using scope = kernel.scope()`.
 */
export class TaskScope {
  private readonly kernel: Spawner
  private readonly members = new ScopeMembers()
  private readonly joins = new Set<Promise<void>>()
  private isLeft = false

  constructor(kernel: Spawner) {
    this.kernel = kernel
  }

  /** Aborted when the scope is cancelled. */
  get signal(): AbortSignal {
    return this.members.controller.signal
  }

  /** As `kernel.spawn`, but the task ends with the scope. */
  spawn<A extends readonly unknown[], T>(
    fn: Spawnable<A, T>,
    args: A | [] = [],
    options: SpawnOptions = {},
  ): Task<T> {
    if (this.isLeft)
      throw new Error(`scope.spawn(${fn.name}): the scope has been left; spawn inside its body`)
    this.signal.throwIfAborted()
    const task = this.kernel.spawn(fn, args, options)
    const { members } = this
    members.running.add(task)
    const joined = task.join().then(
      () => undefined,
      error => members.failed(error),
    )
    const gone = joined.finally(() => {
      members.running.delete(task)
      this.joins.delete(gone)
    })
    this.joins.add(gone)
    return task
  }

  /** Kills the tasks of the scope. Leaving the scope waits for them. */
  cancel(reason: unknown = new DOMException('the scope was cancelled', 'AbortError')): void {
    this.members.cancel(reason)
  }

  /** @internal Runs the body, and leaves. */
  async run<R>(body: (scope: TaskScope) => R | PromiseLike<R>): Promise<R> {
    let ended: BodyEnd
    try {
      ended = { threw: false, value: await body(this) }
    } catch (error) {
      ended = { threw: true, value: error }
      this.members.cancel(error)
    }
    await this.leave(ended)
    return ended.value as R
  }

  /** Leaves the scope: waits for its tasks, and throws their failures. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave({ threw: false, value: undefined })
  }

  private async leave(body: BodyEnd): Promise<void> {
    // The body may have left a promise that still spawns: repeat until no task is left.
    while (this.joins.size > 0) await Promise.all(this.joins)
    this.isLeft = true
    const failure = this.members.failure(body)
    if (failure !== null) throw failure.error
  }
}
