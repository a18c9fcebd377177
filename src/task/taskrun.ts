import type { Coroutine } from '../coroutine/coroutine.ts'
import type { ChildTask } from './childtask.ts'
import type { KernelCpu } from './kernelcpu.ts'
import type { KernelTask } from './parking.ts'

/**
 * A task that has started on this CPU: what its record in the arena cannot hold. It lives in the heap of one CPU, and dies
 * with it. The fields that few tasks need are null until one does: a hundred thousand sleepers each have one of these.
 */
export class TaskRun {
  readonly job: number
  /** Its kernel task. */
  readonly task: number
  name: string
  coroutine: Coroutine | null = null
  /** What its wait is resumed with. */
  sent: unknown = undefined
  /** Its mask has collapsed to this CPU. */
  isBound = false
  /** Inside a wait of a blocking call, and until when that lasts at the most. */
  isParked = false
  timeout: number = Infinity
  /** Counts such waits: what ends an earlier one does not end this. */
  waits = 0
  /** The event loop may have to turn for the wait to end. */
  isWakeable = false
  /** It yields of its own will. */
  givesWay = false
  /** A waker on another thread claimed it while it changed its mind: it must switch once before it can end. */
  isClaimed = false
  rare: RareState | null = null

  /** The CPU that it is on. */
  readonly on: KernelCpu

  constructor(on: KernelCpu, job: number, task: number, name: string) {
    this.on = on
    this.job = job
    this.task = task
    this.name = name
  }
}

/** What only some tasks have. */
export class RareState {
  /** An async function: it waits for this. */
  promise: PromiseLike<unknown> | null = null
  settled: { readonly threw: boolean; readonly value: unknown } | null = null
  /** It has ended, and has still to say so. */
  end: { readonly threw: boolean; readonly value: unknown } | null = null
  /** What a kill has thrown into it. */
  killedWith: unknown = undefined
  isKilled = false
  abort: AbortController | null = null
  children: Set<ChildTask<any>> | null = null
  locals: Map<object, unknown> | null = null
  progress: unknown = undefined
  /** What it waits at a futex as. */
  parking: KernelTask | null = null
}

/** The state that only some tasks have, made when it is needed. */
export function rareState(run: TaskRun): RareState {
  return (run.rare ??= new RareState())
}
