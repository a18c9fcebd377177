import type { Coroutine } from '../../coroutine/core/coroutine.ts'
import type { EnterContext } from './context.ts'
import type { ChildTask } from '../join/childtask.ts'
import type { KernelCpu } from './kernelcpu.ts'
import type { KernelTaskWaiter } from './taskwaiter.ts'
import type { Stretches } from './stretches.ts'

/**
 * A task that has started on this CPU: what its record in the arena cannot hold. It lives in the heap of one
 * CPU, and dies with it. The fields that few tasks need are null until one does: a hundred thousand sleepers
 * each have one of these.
 */
export class CpuTask {
  readonly job: number
  /** Its kernel task. */
  readonly task: number
  coroutine: Coroutine | null = null
  /** What its wait is resumed with. */
  sent: unknown = undefined
  /** The bits below. */
  flags = 0
  /** Counts the waits of blocking calls: what ends an earlier one does not end this. */
  waits = 0
  extras: TaskExtras | null = null

  constructor(job: number, task: number) {
    this.job = job
    this.task = task
  }
}

/** Inside a wait of a blocking call. */
export const RUN_PARKED = 1
/** That wait has a time limit. */
export const RUN_TIMED = 2
/** The event loop may have to turn for the wait to end. */
export const RUN_WAKEABLE = 4
/** It yields of its own will. */
export const RUN_YIELDS = 8
/** A waker on another thread claimed it while it changed its mind: it must switch once before it can end. */
export const RUN_CLAIMED = 16

/** It has ended: nothing of it runs as this task any more. */
export const RUN_OVER = 32

/** What only some tasks have. */
class TaskExtras {
  /** The CPU that it is on, for an async function: its continuations run outside of any task. */
  on: KernelCpu | null = null
  /** The name of a function that only this CPU has. */
  localName: string | null = null
  /** An async function: it waits for this. */
  promise: PromiseLike<unknown> | null = null
  settled: { readonly threw: boolean; readonly value: unknown } | null = null
  /** It sleeps until that promise settles, or a stretch of it can run. */
  sleepsAsync = false
  /** What follows its awaits. */
  stretches: Stretches | null = null
  /** It has ended, and has still to say so. */
  end: { readonly threw: boolean; readonly value: unknown } | null = null
  /** What a kill has thrown into it. */
  killedWith: unknown = undefined
  isKilled = false
  abort: AbortController | null = null
  /** Enters the context that it came with. */
  enter: EnterContext | null = null
  children: Set<ChildTask<any>> | null = null
  locals: Map<object, unknown> | null = null
  /** What it waits at a futex as. */
  waiter: KernelTaskWaiter | null = null
}

/** The state that only some tasks have, made when it is needed. */
export function extrasOf(run: CpuTask): TaskExtras {
  return (run.extras ??= new TaskExtras())
}
