import type { Coroutine } from '../core/coroutine.ts'
import type { Context } from '../../machine/core/platform.ts'
import type { Readiable } from './readyqueue.ts'
import type { Timer } from './sleepqueue.ts'

/**
 * What a coroutine of a schedule is doing, and who owns it while it does.
 *
 *   [1] INITED   not started; the ready queue has it, or whoever called `go` with `suspended`
 *   [2] READY    runnable; the ready queue has it
 *   [3] RUNNING  it runs, or it has been preempted and the loop has not taken it yet
 *   [4] SUSPEND  it waits; whoever will resume it has it, the sleep queue included
 *   [5] STOP     ended; nobody has it
 *
 *   from \ to   READY                    RUNNING          SUSPEND            STOP
 *   INITED      resume                   the loop         -                  cancelled before it ran
 *   READY       -                        the loop         -                  -
 *   RUNNING     gives way, preempted     -                suspend, sleep,    returns or throws
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

  /** The switch's: what it receives when it goes on, whether that is thrown, and in which context. */
  sent: unknown = undefined
  raising = false
  context: Context | null = null

  /** The wait's: which one it is in, so that what ends an earlier one does not end this. */
  waits = 0
  sleeping: Timer<Co<any>> | null = null
  /** Its time limit, and how long that was. */
  limit: Timer<Co<any>> | null = null
  limitMs: number = Infinity
  /** What was last thrown into it from outside. */
  cancelledWith: unknown = undefined

  /** Milliseconds that it has run; how often it was switched to, and how often preempted. */
  runTime = 0
  switches = 0
  preemptions = 0
  /** What it last told through `progress`. */
  progress: unknown = undefined

  /** What to tell when it has run for too long in one go; null: it can be preempted, or it has been told. */
  warning: ((ms: number) => void) | null = null

  /** Where it was made: for the stack of an error that it does not catch. */
  readonly origin: { readonly stack?: string } | null
  /** Settled when it ends; made when someone asks. */
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
   * Resolves with what it returns, rejects with what it throws. Asking for it makes you the one who is told.
   */
  get done(): Promise<T> {
    if (this.outcome === null) {
      this.outcome = new Outcome<T>()
      if (this.state === 'STOP') this.outcome.settle(this.coroutine)
    }
    return this.outcome.promise
  }
}

/** A promise of how a coroutine ends. */
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
