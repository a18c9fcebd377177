import { CoroutineError } from './errors.ts'
import { preemptionOff, preemptionOn } from './safepoint.ts'
import { traceStop } from './stoptrace.ts'

/**
 * Who runs the coroutine that runs on this thread: a `Schedule`, or a CPU of the kernel. Blocking calls ask
 * for it, so the same call parks a coroutine of either.
 */
export interface Runner {
  /**
   * The running coroutine will wait until its waker is used, or `ms` have passed; then it is resumed with
   * what it was woken with, or with TIMED_OUT. The caller has turned preemption off, and yields SUSPENDED
   * next. `wakeable`: someone will get the waker, so the event loop must go on; otherwise only time ends the
   * wait.
   */
  park(ms: number, wakeable: boolean): Waker
  /** The running coroutine does not wait after all: something threw before it could yield. */
  unpark(): void
  /** The running coroutine yields PREEMPTED next of its own will, not because it was told to. */
  giveWay?(): void
  /** The running coroutine tells how far it is. */
  progress(value: unknown): void
  /** The coroutine that runs, for who must tell those of one thread apart. */
  running?(): object | null
  /** Runs what follows an `await` of an async function that the running coroutine has called. */
  afterAwait?(): AfterAwait
}

/**
 * An async function goes on after an `await` as a job of the event loop, where nothing can preempt it and it
 * cannot block. An owner takes each such stretch and runs it as a coroutine instead.
 */
export interface AfterAwait {
  /**
   * Called by the event loop when the awaited promise has settled. False: the owner cannot run it; the caller
   * does.
   */
  goOn(stretch: Stretch): boolean
}

/** The part of an async function from one `await` to the next. */
export interface Stretch {
  /** Runs as a coroutine. It throws nothing: what the function throws rejects its promise. */
  run(): Generator<number, void, unknown>
  /** Runs in the event loop: it is not preempted, and a blocking call throws. */
  runInEventLoop(): void
}

/**
 * Ends one wait of one coroutine. The first call counts; later ones do nothing. Any time, from this thread.
 */
export interface Waker {
  wake(value?: unknown): void
  fail(error: unknown): void
}

/** What a wait is resumed with when its time has passed. */
export const TIMED_OUT: unique symbol = Symbol('heddle.timedOut')

let runner: Runner | null = null
let switches = 0

/**
 * A number that changes with every switch of this thread: what is known of who runs is true as long as it is
 * the same.
 */
export function switchStamp(): number {
  return switches
}

/** Part of a switch: names who runs the coroutine that comes next, and returns who ran the one before. */
export function swapRunner(next: Runner | null): Runner | null {
  const before = runner
  switches = (switches + 1) & 0x3fff_ffff
  runner = next
  return before
}

/** The runner of the coroutine that is running; throws where none is. */
export function currentRunner(what: string): Runner {
  if (runner === null) {
    throw new CoroutineError(
      'ERR_HEDDLE_RUNNING_CO_NULL',
      `${what} needs a coroutine, and none is running here: call it from a function that a schedule runs, as in schedule.run(fn)`,
    )
  }
  return runner
}

/** As `currentRunner`, but null where no coroutine runs. */
export function runnerOrNull(): Runner | null {
  return runner
}

/** Tells the runner how far its coroutine is; nothing where none runs. */
export function reportProgress(value: unknown): void {
  runner?.progress(value)
}

/**
 * The running coroutine begins to wait: from here until `endWait`, after it goes on, preemption is off.
 * Suspend against the tick:
 *
 *   coroutine                                   interrupt, at a safepoint
 *   ---------                                   -------------------------
 *   (A) preemption off
 *   state = SUSPEND, somebody may wake it
 *                                               without (A): it runs, so it is preempted
 *   yields SUSPENDED                            the loop makes it ready, although it waits and no waker woke it
 *   (B) preemption on
 */
export function beginWait(waiting: Runner, ms: number, wakeable = true): Waker {
  traceStop(beginWait)
  preemptionOff() // (A)
  try {
    return waiting.park(ms, wakeable)
  } catch (error) {
    preemptionOn()
    throw error
  }
}

/** The other end of `beginWait`: the coroutine goes on, woken, cancelled or never stopped. */
export function endWait(): void {
  preemptionOn() // (B)
}
