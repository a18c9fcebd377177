/**
 * workerpool's kind of promise: it calls its callbacks synchronously when it settles, it can be cancelled,
 * and it can have a timeout.
 */
export interface Resolver<T = any> {
  readonly promise: WorkerpoolPromise<T>
  resolve(value: T): void
  reject(error: unknown): void
}

export class CancellationError extends Error {
  constructor(message = 'promise cancelled') {
    super(message)
    this.name = 'CancellationError'
  }
}

export class TimeoutError extends Error {
  constructor(message = 'timeout exceeded') {
    super(message)
    this.name = 'TimeoutError'
  }
}

type Handler<T> = (resolve: (value: T) => void, reject: (error: any) => void) => void

export class WorkerpoolPromise<T = any> implements PromiseLike<T> {
  static readonly CancellationError: typeof CancellationError = CancellationError
  static readonly TimeoutError: typeof TimeoutError = TimeoutError

  resolved = false
  rejected = false
  pending = true
  readonly [Symbol.toStringTag]: string = 'Promise'
  readonly #parent: WorkerpoolPromise | undefined
  #outcome: unknown
  #listeners: { settled(value: any): void; failed(error: any): void }[] = []

  constructor(handler: Handler<T>, parent?: WorkerpoolPromise) {
    if (typeof handler !== 'function')
      throw new SyntaxError('Function parameter handler(resolve, reject) missing')
    this.#parent = parent
    handler(
      value => this.#settle(true, value),
      error => this.#settle(false, error),
    )
  }

  // oxlint-disable-next-line unicorn/no-thenable -- A promise is what this is.
  then<R = T, F = never>(
    onSuccess?: ((value: T) => R | PromiseLike<R>) | null,
    onFail?: ((error: any) => F | PromiseLike<F>) | null,
  ): WorkerpoolPromise<R | F> {
    return new WorkerpoolPromise<R | F>((resolve, reject) => {
      const settled = onSuccess ? calling(onSuccess, resolve, reject) : (resolve as (value: any) => void)
      const failed = onFail ? calling(onFail, resolve, reject) : reject
      if (this.pending) this.#listeners.push({ settled, failed })
      else if (this.resolved) settled(this.#outcome as T)
      else failed(this.#outcome)
    }, this)
  }

  catch<F = never>(onFail?: ((error: any) => F | PromiseLike<F>) | null): WorkerpoolPromise<T | F> {
    return this.then(null, onFail)
  }

  /** Calls the function with the value, or with the error. */
  always<R>(fn: (outcome: any) => R | PromiseLike<R>): WorkerpoolPromise<R> {
    return this.then(fn, fn)
  }

  /** Calls the function without arguments, and passes the outcome on. */
  finally(fn?: (() => unknown) | null): WorkerpoolPromise<T> {
    const last = (): WorkerpoolPromise<T> =>
      new WorkerpoolPromise<undefined>(resolve => resolve(undefined))
        .then(fn && (() => fn()))
        .then(() => this)
    return this.then(last, last)
  }

  /** Rejects the first promise of the chain, and so this one, with a CancellationError. */
  cancel(): this {
    if (this.#parent === undefined) this.#settle(false, new CancellationError())
    else this.#parent.cancel()
    return this
  }

  /** Rejects the promise with a TimeoutError after this many milliseconds. */
  timeout(delay: number): this {
    if (this.#parent === undefined) {
      const late = setTimeout(
        () => this.#settle(false, new TimeoutError(`Promise timed out after ${delay} ms`)),
        delay,
      )
      this.always(() => clearTimeout(late))
    } else this.#parent.timeout(delay)
    return this
  }

  static all<T>(promises: readonly PromiseLike<T>[]): WorkerpoolPromise<T[]> {
    return new WorkerpoolPromise<T[]>((resolve, reject) => {
      const results: T[] = []
      let remaining = promises.length
      if (remaining === 0) resolve(results)
      for (const [at, promise] of promises.entries())
        promise.then(value => {
          results[at] = value
          remaining--
          if (remaining === 0) resolve(results)
        }, reject)
    })
  }

  static defer<T = any>(): Resolver<T> {
    let resolve!: (value: T) => void
    let reject!: (error: unknown) => void
    const promise = new WorkerpoolPromise<T>((resolved, rejected) => {
      resolve = resolved
      reject = rejected
    })
    return { promise, resolve, reject }
  }

  #settle(isValue: boolean, outcome: unknown): void {
    if (!this.pending) return
    this.pending = false
    this.resolved = isValue
    this.rejected = !isValue
    this.#outcome = outcome
    const listeners = this.#listeners
    this.#listeners = []
    for (const { settled, failed } of listeners) {
      if (isValue) settled(outcome)
      else failed(outcome)
    }
  }
}

function calling(
  callback: (value: any) => any,
  resolve: (value: any) => void,
  reject: (error: any) => void,
): (value: any) => void {
  return value => {
    try {
      const result = callback(value)
      if (isPromise(result)) result.then(resolve, reject)
      else resolve(result)
    } catch (error) {
      reject(error)
    }
  }
}

export function isPromise(value: any): value is Promise<any> {
  return Boolean(value) && typeof value.then === 'function' && typeof value.catch === 'function'
}
