import { timeoutError } from '../coroutine/blocking.ts'
import { checkTime, type WaitOptions } from '../coroutine/blocking.ts'
import { KILL_ABORTED, KILL_TIMED_OUT } from './job.ts'
import type { SpawnOptions } from './options.ts'
import { TaskHandle } from './taskhandle.ts'
import type { KernelView } from './view.ts'

const WAITING = 0
const RESOLVED = 1
const REJECTED = 2

/**
 * A task, as the thread that booted the kernel holds it. It can be awaited: it gives what the function returned, or throws
 * what it threw.
 */
export class Task<T = unknown> extends TaskHandle implements PromiseLike<T> {
  /** @internal Where it was spawned. */
  readonly origin: { readonly stack?: string } | null
  /** @internal What a kill from here was given: the very object, not what travelled. */
  killReason: unknown = undefined
  /** @internal Someone has asked how it ends. */
  isJoined = false
  private state: typeof WAITING | typeof RESOLVED | typeof REJECTED = WAITING
  private value: unknown = undefined
  private promise: Promise<T> | null = null
  private resolvePromise: ((value: T) => void) | null = null
  private rejectPromise: ((error: unknown) => void) | null = null
  private cleanup: (() => void) | null = null

  /** @internal */
  constructor(
    view: KernelView,
    job: number,
    name: string,
    options: SpawnOptions,
    origin: { readonly stack?: string } | null,
  ) {
    super(view, job, name, options)
    this.origin = origin
    const { signal, timeout } = options
    if (signal !== undefined || timeout !== undefined) this.watch(signal, timeout)
  }

  // oxlint-disable-next-line unicorn/no-thenable
  then<A = T, B = never>(
    onResolved?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.join().then(onResolved, onRejected)
  }

  catch<B = never>(onRejected?: ((error: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.join().catch(onRejected)
  }

  finally(onSettled?: (() => void) | null): Promise<T> {
    return this.join().finally(onSettled)
  }

  /** A promise of how it ends. With a signal or a timeout, only the wait ends by those: the task goes on. */
  join(options?: WaitOptions): Promise<T> {
    this.isJoined = true
    this.promise ??= this.makePromise()
    if (options === undefined) return this.promise
    return limited(this.promise, this.name, options)
  }

  /** @internal Its result has come. */
  settle(threw: boolean, value: unknown): void {
    this.state = threw ? REJECTED : RESOLVED
    this.value = value
    if (threw) this.rejectPromise?.(value)
    else this.resolvePromise?.(value as T)
    this.resolvePromise = null
    this.rejectPromise = null
    this.cleanup?.()
    this.cleanup = null
    this.emit('end')
  }

  /** @internal */
  protected override killed(reason: unknown): void {
    this.killReason = reason
  }

  private makePromise(): Promise<T> {
    if (this.state === RESOLVED) return Promise.resolve(this.value as T)
    if (this.state === REJECTED) return Promise.reject(this.value)
    return new Promise<T>((resolve, reject) => {
      this.resolvePromise = resolve
      this.rejectPromise = reject
    })
  }

  /** The spawn's own limits: unlike those of a join, they kill. */
  private watch(signal: AbortSignal | undefined, timeout: number | undefined): void {
    const onAbort = (): void => void this.killAs(KILL_ABORTED, signal?.reason)
    const timer =
      timeout === undefined || timeout === Infinity
        ? undefined
        : setTimeout(() => void this.killAs(KILL_TIMED_OUT, timeout), timeout)
    this.cleanup = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
    if (signal?.aborted) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
  }
}

function limited<T>(promise: Promise<T>, name: string, { signal, timeout }: WaitOptions): Promise<T> {
  if (timeout !== undefined) checkTime('timeout', timeout)
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const onAbort = (): void => reject(signal?.reason)
    const timer =
      timeout === undefined || timeout === Infinity
        ? undefined
        : setTimeout(() => reject(timeoutError(`join of task ${name}`, timeout)), timeout)
    signal?.addEventListener('abort', onAbort, { once: true })
    const done = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
    promise.then(resolve, reject).finally(done)
  })
}
