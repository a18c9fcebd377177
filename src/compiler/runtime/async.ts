/**
 * Async functions that are tasks. If a task calls one, the part up to the first `await` runs inside that
 * task: it can be preempted and can block. Then the caller gets the promise, as usual. The code after an
 * `await` starts as a job of the event loop. The owner of the calling coroutine (a kernel task, a schedule)
 * takes it over and runs it as a coroutine. Without an owner, or after the owner has ended, the event loop
 * runs it to its end.
 */
import { SUSPENDED, type Twin, twin } from '../../coroutine/core/coroutine.ts'
import { resumable } from '../../coroutine/core/generators.ts'
import { here } from '../../thread/context.ts'
import type { AfterAwait, Stretch } from '../../thread/runner.ts'
import { cannotBlock } from './generator.ts'

/** A value that the function awaits. */
export class Await {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }
}

type Raw = Generator<unknown, unknown, unknown>
type Verb = 'next' | 'throw'

const { then } = Promise.prototype
const resolved = Promise.resolve.bind(Promise)

/** The twin of an async function: it returns the promise at the first `await`. */
export function asyncTwin(body: Twin): Twin {
  return function* (this: unknown, ...args: unknown[]) {
    let call!: AsyncCall
    const promise = new Promise((resolve, reject) => {
      call = new AsyncCall(resolve, reject, here.runner?.afterAwait?.() ?? null)
    })
    try {
      call.raw = Reflect.apply(body, this, args) as never
    } catch (error) {
      call.reject(error)
      return promise
    }
    yield* call.stretch('next', undefined)
    return promise as never
  }
}

/** One call of an async function. */
class AsyncCall {
  raw!: Raw
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
  readonly #owner: AfterAwait | null

  constructor(resolve: (value: unknown) => void, reject: (error: unknown) => void, owner: AfterAwait | null) {
    this.resolve = resolve
    this.reject = reject
    this.#owner = owner
  }

  /** Runs to the next `await`, or to the end. Yields each stop in between. */
  *stretch(verb: Verb, value: unknown): Generator<number, void, unknown> {
    let stop = this.advance(verb, value)
    while (stop !== null) {
      let sent: unknown
      try {
        sent = yield stop
      } catch (error) {
        stop = this.advance('throw', error)
        continue
      }
      stop = this.advance('next', sent)
    }
  }

  /** Runs to the next stop, and returns it; null at an `await` or at the end. */
  advance(verb: Verb, value: unknown): number | null {
    let step: IteratorResult<unknown, unknown>
    try {
      step = this.raw[verb](value)
    } catch (error) {
      this.reject(error)
      return null
    }
    if (step.done) {
      this.resolve(step.value)
      return null
    }
    if (typeof step.value === 'number') return step.value
    let promise: Promise<unknown>
    try {
      promise = resolved((step.value as Await).value)
    } catch (error) {
      return this.advance('throw', error)
    }
    Reflect.apply(then, promise, [
      (settled: unknown) => this.#goOn('next', settled),
      (error: unknown) => this.#goOn('throw', error),
    ])
    return null
  }

  #goOn(verb: Verb, value: unknown): void {
    const stretch = new AfterOneAwait(this, verb, value)
    if (this.#owner === null || !this.#owner.goOn(stretch)) stretch.runInEventLoop()
  }
}

resumable(AsyncCall.prototype.stretch)

/** The code after one `await`. */
class AfterOneAwait implements Stretch {
  readonly #call: AsyncCall
  readonly #verb: Verb
  readonly #value: unknown

  constructor(call: AsyncCall, verb: Verb, value: unknown) {
    this.#call = call
    this.#verb = verb
    this.#value = value
  }

  run(): Generator<number, void, unknown> {
    return this.#call.stretch(this.#verb, this.#value)
  }

  runInEventLoop(): void {
    let stop = this.#call.advance(this.#verb, this.#value)
    while (stop !== null) {
      stop =
        stop === SUSPENDED
          ? this.#call.advance('throw', new Error(cannotBlock))
          : this.#call.advance('next', undefined)
    }
  }
}

// It runs only compiled code.
Object.defineProperty(AfterOneAwait.prototype.run, twin, { value: AfterOneAwait.prototype.run })
