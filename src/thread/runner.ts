/**
 * Resumes the coroutine that runs on this thread: a `Schedule`, or a CPU of a kernel. Blocking calls read it
 * from the thread context, so one call parks a coroutine of either.
 */
export interface Runner {
  /**
   * The running coroutine waits until its waker is used or `ms` have passed. It is resumed with the value of
   * the waker, or with TIMED_OUT. The caller has turned preemption off, and yields SUSPENDED next.
   * `wakeable`: the waker is handed out, so the event loop must keep turning; otherwise only time ends the
   * wait.
   */
  park(ms: number, wakeable: boolean): Waker
  /** The running coroutine does not wait: something threw before it could yield. */
  unpark(): void
  /** The running coroutine yields PREEMPTED next of its own accord. */
  giveWay?(): void
  /** The running coroutine reports its progress. */
  progress(value: unknown): void
  /** The coroutine that runs. It tells the coroutines of one thread apart. */
  running?(): object | null
  /** Runs the code after an `await` of an async function that the running coroutine has called. */
  afterAwait?(): AfterAwait
}

/**
 * An async function continues after an `await` as a job of the event loop, where it can neither be preempted
 * nor block. A runner takes each such stretch and runs it as a coroutine instead.
 */
export interface AfterAwait {
  /**
   * Called by the event loop when the awaited promise has settled. False: the runner cannot run the stretch,
   * and the caller runs it.
   */
  goOn(stretch: Stretch): boolean
}

/** The part of an async function from one `await` to the next. */
export interface Stretch {
  /** Runs as a coroutine. It throws nothing: an error of the function rejects its promise. */
  run(): Generator<number, void, unknown>
  /** Runs in the event loop: it is not preempted, and a blocking call throws. */
  runInEventLoop(): void
}

/** Ends one wait of one coroutine. The first call counts; later ones do nothing. Any time, on this thread. */
export interface Waker {
  wake(value?: unknown): void
  fail(error: unknown): void
}
