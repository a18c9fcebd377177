import { type Known, refuseUnknown, show } from './knownoptions.ts'
import { type Twin, twin, twinOf } from './coroutine.ts'
import { blocks, checkFace, ran, toRun } from './faces.ts'
import { asFrame, type Reenter, take } from './frames.ts'
import { resumable } from './generators.ts'
import type { Waker } from '../../thread/runner.ts'
import { beginWait, currentRunner, endWait, reportProgress, TIMED_OUT } from './runner.ts'
import { PREEMPTED, SUSPENDED } from './stops.ts'
import { follow, isThenable } from './thenable.ts'

/**
 * The calls that block a coroutine. In a 'use task' function they are plain calls; in a generator they follow
 * `yield*`. Each function is its own twin.
 */

/**
 * The result of a blocking call: the value itself in a 'use task' function, through `yield*` in a generator.
 */
export type Blocking<T> = [T & Generator<number, T, unknown>] extends [never]
  ? Generator<number, T, unknown>
  : T & Generator<number, T, unknown>

export interface WaitOptions {
  /** Ends the wait by throwing the signal's reason. */
  signal?: AbortSignal | undefined
  /** Milliseconds; then the wait ends by throwing a TimeoutError. */
  timeout?: number | undefined
}

export const waitOptions: Known<WaitOptions> = { signal: true, timeout: true }

/**
 * Gives a generator function the two faces of a blocking call. `checkCaller`: throws the call's own error
 * where it cannot run.
 */
export function blocking<A extends unknown[], T>(
  name: string,
  body: (...args: A) => Generator<number, T, unknown>,
  checkCaller?: (label: string) => void,
): (...args: A) => Blocking<T> {
  const label = `${name}()`
  const blockingCall = (...args: A): Blocking<T> => {
    checkCaller?.(label)
    currentRunner(label)
    checkFace(name)
    return toRun(name, body(...args)) as Blocking<T>
  }
  return named(name, blockingCall, resumable(body as never))
}

function named<F extends (...args: any[]) => unknown>(name: string, call: F, resumed: Twin): F {
  Object.defineProperty(call, 'name', { value: name, configurable: true })
  Object.defineProperty(resumed, blocks, { value: true, configurable: true })
  Object.defineProperty(call, twin, { value: resumed })
  return call
}

function* suspending(
  ms: number,
  signal: AbortSignal | undefined,
  register: ((waker: Waker) => void) | undefined,
): Generator<number, unknown, unknown> {
  signal?.throwIfAborted()
  const runner = currentRunner('a blocking call')
  let onAbort: (() => void) | undefined
  const waker = beginWait(runner, ms, register !== undefined || signal !== undefined)
  try {
    try {
      if (signal !== undefined) {
        onAbort = () => waker.fail(signal.reason)
        signal.addEventListener('abort', onAbort, { once: true })
      }
      register?.(waker)
    } catch (error) {
      runner.unpark()
      throw error
    }
    return yield SUSPENDED
  } finally {
    endWait()
    if (onAbort !== undefined) signal?.removeEventListener('abort', onAbort)
  }
}

/** Waits until its waker is used. `register` receives the waker when the coroutine can be woken. */
export const suspend: <T = unknown>(register?: (waker: Waker) => void, options?: WaitOptions) => Blocking<T> =
  blocking('suspend', suspendForm) as never

/** The same inside another blocking call. */
export function* suspendForm<T>(
  register?: (waker: Waker) => void,
  options: WaitOptions = {},
): Generator<number, T, unknown> {
  refuseUnknown('suspend(register, options)', options, waitOptions)
  const { signal, timeout = Infinity } = options
  checkTime('timeout', timeout)
  checkSignal(signal)
  const value = yield* suspending(timeout, signal, register)
  if (value === TIMED_OUT) throw timeoutError('suspend', timeout)
  return value as T
}

/** One for all: a generator that sleeps inside `yield*` keeps the result. */
const suspendedResult: IteratorYieldResult<number> = { value: SUSPENDED, done: false }

/**
 * A sleep as one small object instead of two generators: a program may have a hundred thousand sleepers.
 */
class Sleep implements Iterator<number, void, unknown> {
  /** -1: it has begun. */
  #ms: number

  constructor(ms: number) {
    this.#ms = ms
  }

  next(): IteratorResult<number, void> {
    ran(this)
    if (this.#ms < 0) {
      endWait()
      return { value: undefined, done: true }
    }
    beginWait(currentRunner('sleep()'), this.#ms, false)
    this.#ms = -1
    return suspendedResult
  }

  throw(error: unknown): never {
    if (this.#ms < 0) endWait()
    throw error
  }

  return(): IteratorResult<number, void> {
    if (this.#ms < 0) endWait()
    return { value: undefined, done: true }
  }

  [Symbol.iterator](): this {
    return this
  }

  get [asFrame](): Reenter {
    return afterSleep
  }
}

/** The second form of a frame that stands for a sleep: all that it waits for is in its runner. */
export function afterSleep(): undefined {
  endWait()
  take()
}

const sleeping: (ms: number, options?: Pick<WaitOptions, 'signal'>) => Blocking<void> = blocking(
  'sleep',
  function* (ms: number, options: Pick<WaitOptions, 'signal'> = {}) {
    checkTime('ms', ms)
    checkSignal(options.signal)
    yield* suspending(ms, options.signal, undefined)
  },
)

/** The twin of `sleep`. */
function sleepForm(ms: number, options?: Pick<WaitOptions, 'signal'>): Generator<number, void, unknown> {
  if (options !== undefined) {
    refuseUnknown('sleep(ms, options)', options, { signal: true })
    if (options.signal !== undefined) return twinOf(sleeping)!(ms, options)
  }
  checkTime('ms', ms)
  return new Sleep(ms) as unknown as Generator<number, void, unknown>
}

function startSleep(ms: number, options?: Pick<WaitOptions, 'signal'>): Blocking<void> {
  if (options !== undefined) {
    refuseUnknown('sleep(ms, options)', options, { signal: true })
    if (options.signal !== undefined) return sleeping(ms, options)
  }
  currentRunner('sleep()')
  checkFace('sleep')
  checkTime('ms', ms)
  return toRun('sleep', new Sleep(ms)) as unknown as Blocking<void>
}

/** Waits for `ms` milliseconds; other coroutines run meanwhile. */
export const sleep: (ms: number, options?: Pick<WaitOptions, 'signal'>) => Blocking<void> =
  /* @__PURE__ */ named('sleep', startSleep, sleepForm)

/** Waits for a promise, and returns its value or throws its error, as `await` does in an async function. */
export const wait: <T>(promise: PromiseLike<T> | T, options?: WaitOptions) => Blocking<T> = blocking(
  'wait',
  waitForm,
) as never

/** The same inside another blocking call. */
export function* waitForm<T>(
  promise: PromiseLike<T> | T,
  options: WaitOptions = {},
): Generator<number, T, unknown> {
  refuseUnknown('wait(promise, options)', options, waitOptions)
  const { signal, timeout = Infinity } = options
  checkTime('timeout', timeout)
  checkSignal(signal)
  if (!isThenable(promise)) return promise
  const value = yield* suspending(timeout, signal, waker => {
    void follow(
      promise,
      settled => waker.wake(settled),
      error => waker.fail(error),
    )
  })
  if (value === TIMED_OUT) throw timeoutError('wait', timeout)
  return value as T
}

/** Lets other coroutines of the same priority run, and continues after them. */
export const yieldNow: () => Blocking<void> = blocking('yieldNow', function* () {
  currentRunner('yieldNow()').giveWay?.()
  yield PREEMPTED
})

/**
 * Reports the progress of the running coroutine. Its `onProgress` receives the last value of each slice,
 * between slices: a million reports cost a million stores. Outside of a coroutine the call does nothing.
 */
export function progress(value: unknown): void {
  reportProgress(value)
}

resumable(suspending)

/** The error of a time limit, named as the platform's own. */
export function timeoutError(what: string, ms: number): Error {
  return new DOMException(`${what}: ${ms} ms have passed`, 'TimeoutError')
}

/** Throws unless `signal` is an AbortSignal or left out. */
export function checkSignal(signal: unknown): asserts signal is AbortSignal | undefined {
  if (signal === undefined) return
  if (
    typeof (signal as AbortSignal | null)?.addEventListener === 'function' &&
    'aborted' in (signal as object)
  )
    return
  throw new TypeError(`signal: ${show(signal)} is not an AbortSignal; give the signal of an AbortController`)
}

/** Throws unless `ms` is a number of milliseconds, 0 and Infinity included. */
export function checkTime(name: string, ms: unknown): asserts ms is number {
  if (typeof ms !== 'number' || !(ms >= 0)) {
    throw new RangeError(`${name}: ${show(ms)} is not a time; give a number of milliseconds, 0 or more`)
  }
}
