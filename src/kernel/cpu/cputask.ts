import { FunctionCoroutine, neverCalled, noArguments } from '../../coroutine/core/coroutine.ts'
import type { EnterContext } from './context.ts'
import type { ChildTask } from '../join/childtask.ts'
import type { KernelCpu } from './kernelcpu.ts'
import type { KernelTaskWaiter } from './taskwaiter.ts'
import type { Stretches } from './stretches.ts'

/**
 * A task that has started on this CPU: the part that its record in the arena cannot hold. It lives in the
 * heap of one CPU, and is lost with it. It is small, because a hundred thousand sleepers have one each:
 * fields that few tasks need are in `extras`, and it is its own coroutine.
 */
export class CpuTask extends FunctionCoroutine {
  readonly job: number
  /** Its kernel task. */
  readonly task: number
  /** The value that its wait is resumed with. */
  sent: unknown = undefined
  /** The bits below. */
  flags = 0
  /** Counts the waits of blocking calls: the waker of an earlier wait does not end this one. */
  waits = 0
  extras: TaskExtras | null = null

  constructor(job: number, task: number) {
    super(neverCalled, noArguments, undefined)
    this.job = job
    this.task = task
  }

  /** Gives the coroutine its function, before it starts. */
  setCode(fn: (...args: any[]) => unknown, args: readonly unknown[]): void {
    this.root = fn
    this.frames = args
  }

  /** False: it is no coroutine yet, and never becomes one if its function runs in one go. */
  get hasCode(): boolean {
    return this.state !== 'ready' || this.root !== neverCalled
  }
}

/** Inside a wait of a blocking call. */
export const RUN_PARKED = 1
/** That wait has a time limit. */
export const RUN_TIMED = 2
/** The event loop may have to turn for the wait to end. */
export const RUN_WAKEABLE = 4
/** It yields of its own accord. */
export const RUN_YIELDS = 8
/**
 * A waker on another thread claimed it while it cancelled its wait: it must switch once before it can end.
 */
export const RUN_CLAIMED = 16

/** It has ended: no code runs as this task any more. */
export const RUN_OVER = 32

/** Its function can move: the CPU asks at each stop whether the task should. */
export const RUN_MOVABLE = 64

/** Inside a call that can end its wait and begin again on another CPU (`Relocatable`). */
export const RUN_RESTARTS = 128
/** As that, and the policy may send the task to another CPU. */
export const RUN_FOLLOWS = 256
/** That call should do so now. Only the CPU of the task sets this, while the task does not run. */
export const RUN_LEAVES = 512

/** Fields that only some tasks need. */
class TaskExtras {
  /** The CPU of an async function: its continuations run outside of any task. */
  on: KernelCpu | null = null
  /** The name of a function that only this CPU has. */
  localName: string | null = null
  /** The promise that an async function waits for. */
  promise: PromiseLike<unknown> | null = null
  settled: { readonly threw: boolean; readonly value: unknown } | null = null
  /** It sleeps until that promise settles, or until one of its stretches can run. */
  sleepsAsync = false
  /** The code after its awaits. */
  stretches: Stretches | null = null
  /** How it ended, until the job gets its outcome. */
  end: { readonly threw: boolean; readonly value: unknown } | null = null
  /** The error that a kill has thrown into it. */
  killedWith: unknown = undefined
  isKilled = false
  abort: AbortController | null = null
  /** Enters the context that it inherited. */
  enter: EnterContext | null = null
  children: Set<ChildTask<any>> | null = null
  /** When its next checkpoint is due, on the machine's clock. */
  checkpointAt: number = Infinity
  locals: Map<object, unknown> | null = null
  /** A movable task: how many locks it holds, and shares of locks and semaphores (thread/context.ts). */
  locks = 0
  shares = 0
  /** It does not follow the holder of a lock before then, on the machine's clock: it could not be packed. */
  followsAt = 0
  /** Milliseconds that it had run when it moved to this CPU. */
  ranElsewhere = 0
  /** The task as a waiter at futexes. */
  waiter: KernelTaskWaiter | null = null
}

/** The extras of a task, made at first use. */
export function extrasOf(run: CpuTask): TaskExtras {
  return (run.extras ??= new TaskExtras())
}
