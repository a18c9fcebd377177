import type { Coroutine } from '../core/coroutine.ts'
import type { Context } from '../../machine/core/platform.ts'
import type { Readiable } from './readyqueue.ts'
import type { Timer } from './sleepqueue.ts'

/**
 * The states of a coroutine of a schedule, and where it is in each.
 *
 *   [1] INITED   not started; in the ready queue, or held by the caller of `go` with `suspended`
 *   [2] READY    runnable; in the ready queue
 *   [3] RUNNING  it runs, or it has been preempted and the loop has not taken it yet
 *   [4] SUSPEND  it waits; its waker has it, and the sleep queue if the wait has a time limit
 *   [5] STOP     ended
 *
 *   from \ to   READY                    RUNNING          SUSPEND            STOP
 *   INITED      resume                   the loop         -                  cancelled before it ran
 *   READY       -                        the loop         -                  -
 *   RUNNING     yields, preempted        -                suspend, sleep,    returns or throws
 *                                                         wait
 *   SUSPEND     resume, deadline, wake,  -                -                  -
 *               cancel
 */
export type CoState = 'INITED' | 'READY' | 'RUNNING' | 'SUSPEND' | 'STOP'

/** A coroutine of a schedule: the design's `Co`. Only its schedule writes to it. */
export class Co<T = unknown> implements Readiable<Co<any>> {
  readonly id: number
  readonly name: string
  readonly coroutine: Coroutine<T>
  state: CoState = 'INITED'
  priority: number

  /** The ready queue's. */
  readyNext: Co<any> | null = null
  readyPrevious: Co<any> | null = null
  isQueued = false

  /** For the switch: the value that it continues with, whether that is thrown, and its context. */
  sent: unknown = undefined
  raising = false
  context: Context | null = null

  /** For the wait: its number, so that the waker of an earlier wait does not end this one. */
  waits = 0
  sleeping: Timer<Co<any>> | null = null
  /** Its time limit, and how long that was. */
  limit: Timer<Co<any>> | null = null
  limitMs: number = Infinity
  /** The last error that was thrown into it from outside. */
  cancelledWith: unknown = undefined

  /** Milliseconds that it has run; how often it was switched to, and how often preempted. */
  runTime = 0
  switches = 0
  preemptions = 0
  /** Its last report through `progress`. */
  progress: unknown = undefined

  /** Warns that it has run for too long in one go; null: it can be preempted, or the warning was given. */
  warning: ((ms: number) => void) | null = null

  /** Where it was made: for the stack of an error that it does not catch. */
  readonly origin: { readonly stack?: string } | null
  /** Settled when it ends; made at first use. */
  outcome: Outcome<T> | null = null

  constructor(
    id: number,
    name: string,
    priority: number,
    coroutine: Coroutine<T>,
    origin: { readonly stack?: string } | null = null,
  ) {
    this.id = id
    this.name = name
    this.priority = priority
    this.coroutine = coroutine
    this.origin = origin
  }

  /**
   * Resolves with its result, or rejects with its error. After the first read of this property an error
   * counts as handled by the caller.
   */
  get done(): Promise<T> {
    if (this.outcome === null) {
      this.outcome = new Outcome<T>()
      if (this.state === 'STOP') this.outcome.settle(this.coroutine)
    }
    return this.outcome.promise
  }
}

/** The promise of a coroutine's result. */
export class Outcome<T> {
  readonly promise: Promise<T>
  #resolve!: (value: T) => void
  #reject!: (error: unknown) => void

  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  settle(coroutine: Coroutine<T>): void {
    if (coroutine.state === 'returned') this.#resolve(coroutine.result as T)
    else this.#reject(coroutine.result)
  }

  fail(error: unknown): void {
    this.#reject(error)
  }
}
