import { refuseUnknown } from '../../coroutine/core/knownoptions.ts'
import type { Handle } from '../../arena/memory/slab.ts'
import {
  type Blocking,
  blocking,
  checkSignal,
  checkTime,
  timeoutError,
  waitForm,
  type WaitOptions,
  waitOptions,
} from '../../coroutine/core/blocking.ts'
import { twin, twinOf } from '../../coroutine/core/coroutine.ts'
import { blocks } from '../../coroutine/core/faces.ts'
import { resumable } from '../../coroutine/core/generators.ts'
import { killError, requestKill } from './cancel.ts'
import { type CpuLoss, CpuLostError, unknownLoss } from './errors.ts'
import {
  OUTCOME_EVICTED,
  Job,
  KILL_ABORTED,
  KILL_TIMED_OUT,
  OUTCOME_KILLED,
  OUTCOME_LOST,
  OUTCOME_PENDING,
  OUTCOME_RETURNED,
} from '../spawn/job.ts'
import { disownJob } from './outcome.ts'
import { TaskHandle } from './taskhandle.ts'
import type { KernelView } from '../boot/view.ts'
import { currentTask } from '../cpu/taskwaiter.ts'

/** The handle of a task in the task that spawned it. */
export class ChildTask<T = unknown> extends TaskHandle implements PromiseLike<T> {
  /** @internal Called once, when its result has been taken. */
  onTaken: (() => void) | null = null
  private cleanup: (() => void) | null = null
  private taken: { readonly threw: boolean; readonly value: unknown } | null = null

  /**
   * Waits until the child has ended. Returns its result or throws its error. Other tasks run in the meantime.
   */
  join(options: WaitOptions = {}): Blocking<T> {
    return join(this, options)
  }

  /** The same for async functions: `await child`. */
  // oxlint-disable-next-line unicorn/no-thenable
  then<A = T, B = never>(
    onResolved?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((error: any) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.promise().then(onResolved, onRejected)
  }

  private async promise(): Promise<T> {
    while (this.taken === null && this.isPending()) {
      await this.view.futexes.waitAsync(this.view.joinWord(this.job), OUTCOME_PENDING)
    }
    for (let missing = this.missing(); missing !== null; missing = this.missing()) await missing
    return this.take()
  }

  /** @internal In a browser, objects of its result may not have arrived yet. */
  missing(): Promise<unknown> | null {
    return this.job === 0 ? null : this.view.codec.missing(this.view.i32[this.job + Job.result])
  }

  /** @internal */
  isPending(): boolean {
    return this.job !== 0 && Atomics.load(this.view.i32, this.job + Job.outcome) === OUTCOME_PENDING
  }

  /** @internal Returns its result or throws its error. Frees the record the first time. */
  take(): T {
    this.taken ??= this.takeResult()
    if (this.taken.threw) throw this.taken.value
    return this.taken.value as T
  }

  /** @internal The limits of the spawn, unlike those of a join, kill the child. */
  watch(signal: AbortSignal): void {
    const { view } = this
    const handle = view.jobs.handleOf(view.i32, this.job)
    // The child may outlive its parent, and then this handle has no job any more.
    const onAbort = (): void => {
      if (this.killAs(KILL_ABORTED, signal.reason)) return
      const job = view.jobs.resolve(view.i32, handle)
      if (job !== 0) requestKill(view, job, KILL_ABORTED, signal.reason)
    }
    this.cleanup = () => signal.removeEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  }

  /**
   * @internal Runs as a task: kills the child when its time limit has passed, by the kernel's own timers, or
   * when its signal is aborted. Ends with the child, whether or not its parent still lives.
   */
  *limit(handle: Handle, timeout: number, signal?: AbortSignal): Generator<number, void, unknown> {
    const { view } = this
    const { i32, jobs, s } = view
    const task = currentTask()
    const job = jobs.resolve(i32, handle)
    if (task === null || job === 0) return
    const isPending = (): boolean =>
      jobs.resolve(i32, handle) === job && Atomics.load(i32, job + Job.outcome) === OUTCOME_PENDING
    const deadline = s.now() + timeout
    while (isPending()) {
      const left = deadline - s.now()
      if (left <= 0) {
        requestKill(view, job, KILL_TIMED_OUT, timeout)
        return
      }
      try {
        yield* view.futexes.wait(task, view.joinWord(job), OUTCOME_PENDING, {
          ...(left !== Infinity && { timeout: left }),
          ...(signal !== undefined && { signal }),
        })
      } catch (error) {
        if (signal?.aborted !== true) throw error
        if (isPending()) requestKill(view, job, KILL_ABORTED, signal.reason)
        return
      }
    }
  }

  /** @internal Its parent has ended. */
  disown(): void {
    if (this.job === 0) return
    const { job } = this
    this.keepStatus()
    disownJob(this.view, job)
  }

  private takeResult(): { threw: boolean; value: unknown } {
    const { view, job } = this
    const outcome = Atomics.load(view.i32, job + Job.outcome)
    const pointer = view.i32[job + Job.result]
    const taken =
      outcome === OUTCOME_RETURNED
        ? { threw: false, value: view.codec.decode(pointer) }
        : { threw: true, value: failureOf(view, job, outcome, this.name) }
    this.keepStatus()
    view.freeJob(job)
    this.cleanup?.()
    this.onTaken?.()
    this.emit('end')
    return taken
  }
}

function failureOf(view: KernelView, job: number, outcome: number, name: string): unknown {
  const { i32, codec } = view
  switch (outcome) {
    case OUTCOME_KILLED:
      return killError(view, job, name, i32[job + Job.starts] === 0 ? 'unstarted' : 'thrown')
    case OUTCOME_EVICTED:
      return killError(view, job, name, 'evicted')
    case OUTCOME_LOST:
      return lostError(view, job, name)
    default:
      return codec.decode(i32[job + Job.result])
  }
}

function lostError(view: KernelView, job: number, name: string): CpuLostError {
  const pointer = view.i32[job + Job.result]
  const loss = pointer === 0 ? unknownLoss : (view.codec.decode(pointer) as CpuLoss)
  return new CpuLostError(name, view.i32[job + Job.cpu] - 1, loss)
}

/** Waits for a child to end. Each form is its own twin: see src/coroutine/core/blocking.ts. */
export const join: <T>(child: ChildTask<T>, options?: WaitOptions) => Blocking<T> = blocking(
  'join',
  function* (child: ChildTask<unknown>, options: WaitOptions = {}) {
    refuseUnknown('join(options)', options, waitOptions)
    const { timeout = Infinity, signal } = options
    checkTime('timeout', timeout)
    checkSignal(signal)
    signal?.throwIfAborted()
    const deadline = child.view.s.now() + timeout
    while (child.isPending()) {
      const left = timeout === Infinity ? Infinity : deadline - child.view.s.now()
      if (left <= 0) throw timeoutError(`join of task ${child.name}`, timeout)
      const task = currentTask()
      if (task === null) throw new Error('join: no task is running on this thread; call it in a task')
      yield* child.view.futexes.wait(task, child.view.joinWord(child.job), OUTCOME_PENDING, {
        ...(left !== Infinity && { timeout: left }),
        ...(signal !== undefined && { signal }),
      })
    }
    for (let missing = child.missing(); missing !== null; missing = child.missing())
      yield* waitForm(missing, { signal })
    return child.take()
  },
) as never

const joinForm = resumable(function* (this: ChildTask, options?: WaitOptions) {
  return yield* twinOf(join)!(this, options)
})
Object.defineProperty(joinForm, blocks, { value: true })
Object.defineProperty(ChildTask.prototype.join, twin, { value: joinForm })
