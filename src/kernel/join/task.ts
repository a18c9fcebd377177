import { refuseUnknown } from '../../coroutine/core/knownoptions.ts'
import {
  checkSignal,
  checkTime,
  timeoutError,
  type WaitOptions,
  waitOptions,
} from '../../coroutine/core/blocking.ts'
import { startAlarm } from '../../machine/timekeeper/alarm.ts'
import { ask, ASK_BYTES, ASK_CHECKPOINT, ASK_SUSPEND, type AskKind } from '../cpu/asking.ts'
import { JobImages, KILL_ABORTED, KILL_TIMED_OUT } from '../spawn/job.ts'
import type { SpawnOptions } from '../boot/options.ts'
import { TaskEndedError } from './errors.ts'
import { type TaskEvent, TaskHandle } from './taskhandle.ts'
import type { KernelView } from '../boot/view.ts'

/** What few tasks have: a program may have a hundred thousand handles. */
interface Extra {
  /** The reason of a kill on this thread. */
  killReason: unknown
  /** The cleanup of the limits of the spawn. */
  cleanup: (() => void) | null
  /** The requests for its state, one after the other; null: there was none. */
  requests: Promise<unknown> | null
  /** Called when it ends while a request is open. */
  onEnd: (() => void) | null
  image: Uint8Array | null
  /** Handles a failure in place of the joiners: the promise of another outcome, or null. */
  instead: ((error: unknown) => PromiseLike<unknown> | null) | null
}

/**
 * The handle of a task on the booting thread. It can be awaited: it resolves with the function's result, or
 * rejects with its error.
 */
export class Task<T = unknown> extends TaskHandle implements PromiseLike<T> {
  /** @internal The place that spawned it. */
  readonly origin: { readonly stack?: string } | null
  /** Its promise, from the first join on; before that, how it ended. Null: neither. */
  private outcome: Outcome | Ended | null = null
  private extra: Extra | null = null

  /** @internal */
  constructor(
    view: KernelView,
    job: number,
    name: string,
    options: SpawnOptions,
    origin: { readonly stack?: string } | null,
  ) {
    super(view, job, name)
    this.origin = origin
    const { signal, timeout } = options
    if (signal !== undefined || timeout !== undefined) this.watch(signal, timeout)
  }

  // oxlint-disable-next-line unicorn/no-thenable
  then<A = T, B = never>(
    onResolved?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((error: any) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.join().then(onResolved, onRejected)
  }

  catch<B = never>(onRejected?: ((error: any) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.join().catch(onRejected)
  }

  finally(onSettled?: (() => void) | null): Promise<T> {
    return this.join().finally(onSettled)
  }

  /** A promise of the task's result. A signal or a timeout ends only this wait: the task goes on. */
  join(options?: WaitOptions): Promise<T> {
    if (options !== undefined) checkLimits(options)
    const outcome = this.outcome instanceof Outcome ? this.outcome : new Outcome(this.outcome)
    this.outcome = outcome
    outcome.joiners++
    const promise = outcome.promise as Promise<T>
    return options === undefined ? promise : limited(promise, this.name, options, () => outcome.joiners--)
  }

  /**
   * Sends a message to the task, which takes it with `receive()`. A task that is not started finds it when it
   * starts. Copied as by `postMessage`; `transfer` lists objects to move instead. False: the task has ended.
   */
  post(value: unknown, transfer: readonly object[] = []): boolean {
    return this.view.booter?.mail.send(this, value, transfer) ?? false
  }

  /**
   * Writes the state of the task to shared memory, at its next safepoint. If its CPU dies, the task goes on
   * from there: all that it did since happens again, messages that it sent and files that it wrote included.
   * Waits while the task holds a lock. Resolves when the state is written. Rejects if a value cannot travel,
   * or if the task ends first; it goes on in the first case.
   */
  checkpoint(): Promise<void> {
    return this.request('checkpoint', ASK_CHECKPOINT) as Promise<void>
  }

  /**
   * Takes the task out of the kernel, at its next safepoint: its whole state as bytes, for `kernel.resume` of
   * this kernel, another process or another machine with the same code. A joiner gets a TaskSuspendedError.
   * Rejects if a value cannot travel, and the task goes on; or if the task ends first.
   */
  suspendToBytes(): Promise<Uint8Array> {
    return this.request('suspendToBytes', ASK_SUSPEND) as Promise<Uint8Array>
  }

  /**
   * The state of the task as bytes, at its next safepoint, for `kernel.resume`. The task goes on here: write
   * the bytes to a disk, and go on from there if this process dies. All that it did since happens again then.
   * Rejects as `suspendToBytes` does.
   */
  copyToBytes(): Promise<Uint8Array> {
    return this.request('copyToBytes', ASK_BYTES) as Promise<Uint8Array>
  }

  /** @internal Its state has left the kernel. */
  suspended(image: Uint8Array): void {
    this.rare.image = image
  }

  /** @internal See Extra. */
  set instead(handle: Extra['instead']) {
    this.rare.instead = handle
  }

  private request(what: string, kind: AskKind): Promise<unknown> {
    const before = this.extra?.requests ?? Promise.resolve()
    const result = before.then(() => this.requestNow(what, kind))
    this.rare.requests = result.catch(() => undefined)
    return result
  }

  private async requestNow(what: string, kind: AskKind): Promise<unknown> {
    const { view, job } = this
    if (job === 0) throw new TaskEndedError(what, this.name)
    const { i32, obstacles, jobs, futexes } = view
    const isOver = new AbortController()
    this.rare.onEnd = () => isOver.abort()
    const asks = ask(view, job, kind)
    const word = view.answerWord(job)
    const images = view.imagesOf(job)
    while (this.job !== 0) {
      const seen = Atomics.load(i32, images + JobImages.answers)
      if (seen === asks) {
        if (kind !== ASK_BYTES) return undefined
        const word = view.codec.take(images + JobImages.reply)
        try {
          return view.codec.decode(word)
        } finally {
          view.codec.free(word)
        }
      }
      if (seen === -asks) {
        const why = obstacles.read(jobs.indexOf(job), this.id) ?? 'its state cannot travel'
        throw new TypeError(`${what}: task ${this.name} goes on where it is: ${why}`)
      }
      await futexes.waitAsync(word, seen, { signal: isOver.signal }).catch(() => undefined)
    }
    const image = this.extra?.image ?? null
    if (kind === ASK_SUSPEND && image !== null) return image
    throw new TaskEndedError(what, this.name)
  }

  override on(event: 'message', listener: (value: any) => void): () => void
  override on(event: TaskEvent, listener: () => void): () => void
  override on(event: TaskEvent, listener: (value?: any) => void): () => void {
    if (event === 'message') this.view.booter?.mail.listen(this)
    return super.on(event as 'message', listener)
  }

  /** @internal A joiner waits for the outcome, or has received it. */
  get isJoined(): boolean {
    return this.outcome instanceof Outcome && this.outcome.joiners > 0
  }

  /** @internal The reason of a kill on this thread: the same object, not a copy. */
  get killReason(): unknown {
    return this.extra?.killReason
  }

  /** @internal Its outcome has arrived. */
  deliver(threw: boolean, value: unknown): void {
    const other = threw ? (this.extra?.instead?.(value) ?? null) : null
    if (this.extra !== null) this.extra.instead = null
    this.extra?.onEnd?.()
    if (other !== null) {
      other.then(
        result => this.deliver(false, result),
        (error: unknown) => this.deliver(true, error),
      )
      return
    }
    const { outcome, extra } = this
    if (outcome instanceof Outcome) outcome.settle({ threw, value })
    else this.outcome = { threw, value }
    extra?.cleanup?.()
    // An open request still reads the image.
    const isAsked = extra !== null && (extra.requests !== null || extra.image !== null)
    this.extra = isAsked ? { ...extra, killReason: undefined, cleanup: null } : null
    this.emit('end')
  }

  /** @internal */
  protected override killed(reason: unknown): void {
    this.rare.killReason = reason
  }

  private get rare(): Extra {
    return (this.extra ??= {
      killReason: undefined,
      cleanup: null,
      requests: null,
      onEnd: null,
      image: null,
      instead: null,
    })
  }

  /** The limits of the spawn: unlike those of a join, they kill. */
  private watch(signal: AbortSignal | undefined, timeout: number | undefined): void {
    const onAbort = (): void => void this.killAs(KILL_ABORTED, signal?.reason)
    const cancel = startAlarm(timeout ?? Infinity, () => void this.killAs(KILL_TIMED_OUT, timeout))
    const cleanup = (): void => {
      cancel()
      signal?.removeEventListener('abort', onAbort)
    }
    this.rare.cleanup = cleanup
    if (signal?.aborted) this.abortedBefore(signal)
    else signal?.addEventListener('abort', onAbort, { once: true })
  }

  /** The spawn has killed it then (`killUnstarted`), unless it goes on from an image. */
  private abortedBefore({ reason }: AbortSignal): void {
    if (!this.killAs(KILL_ABORTED, reason)) this.killed(reason)
  }
}

/** How a task ended. */
interface Ended {
  readonly threw: boolean
  readonly value: unknown
}

/** A promise of a task's result. */
class Outcome {
  readonly promise: Promise<unknown>
  /** Joins, without those that gave up at their limit. */
  joiners = 0
  private resolve!: (value: unknown) => void
  private reject!: (error: unknown) => void

  /** `ended`: how the task ended before its first join; null: it has not. */
  constructor(ended: Ended | null) {
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
    if (ended !== null) this.settle(ended)
  }

  settle({ threw, value }: Ended): void {
    if (threw) this.reject(value)
    else this.resolve(value)
  }
}

function checkLimits(options: WaitOptions): void {
  refuseUnknown('join(options)', options, waitOptions)
  const { signal, timeout } = options
  if (timeout !== undefined) checkTime('timeout', timeout)
  checkSignal(signal)
}

/** `gaveUp` is called when the wait ends before the task. */
function limited<T>(
  promise: Promise<T>,
  name: string,
  { signal, timeout }: WaitOptions,
  gaveUp: () => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (reason: unknown): void => {
      done()
      gaveUp()
      reject(reason)
    }
    const onAbort = (): void => giveUp(signal?.reason)
    const cancel = startAlarm(timeout ?? Infinity, () =>
      giveUp(timeoutError(`join of task ${name}`, timeout ?? 0)),
    )
    const done = (): void => {
      cancel()
      signal?.removeEventListener('abort', onAbort)
    }
    promise.then(resolve, reject).finally(done)
    if (signal?.aborted) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
  })
}
