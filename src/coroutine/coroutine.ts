/**
 * A coroutine is what can be started, resumed and thrown into. Who runs it never sees how it is made: a generator
 * today, the saved frames of a compiled function tomorrow.
 *
 * A function may carry a resumable form of itself, its twin, under the symbol `twin`. The twin takes the same
 * parameters and the same `this`, and is driven through `next`, `throw` and `return`. Between two resumptions it hands
 * out one small integer that says why it stopped:
 *
 *   PREEMPTED  it stood at a safepoint while its CPU's word was up: still runnable
 *   SUSPENDED  it has queued itself somewhere and blocks: who finds it there makes it runnable
 */

/** Under this symbol a function carries its resumable form. */
export const twin: unique symbol = Symbol.for('heddle.twin') as never

export const PREEMPTED = 0
export const SUSPENDED = 1

/** A resumable form: what calling it returns is driven to its end by whoever runs the coroutine. */
export type Twin = (this: any, ...args: any[]) => Generator<number, any, any>

/** The twin that `fn` carries, or undefined. Never throws, whatever `fn` is. */
export function twinOf(fn: unknown): Twin | undefined {
  return (fn as { [twin]?: Twin } | null | undefined)?.[twin]
}

/**
 * What a coroutine is doing.
 *   ready      made, not started
 *   preempted  stopped at a safepoint
 *   suspended  blocked
 *   running    inside start, resume or raise
 *   returned   finished; `result` is the value
 *   threw      finished; `result` is what was thrown
 */
export type CoroutineState = 'ready' | 'preempted' | 'suspended' | 'running' | 'returned' | 'threw'

export interface Coroutine<T = unknown> {
  readonly state: CoroutineState
  /** The value when returned, the thrown thing when threw, else undefined. */
  readonly result: T | unknown
  /** Runs from the beginning to the first stop. True: finished. */
  start(): boolean
  /** Continues after the last stop, which sees `value`. True: finished. */
  resume(value?: unknown): boolean
  /** Continues by throwing `error` at the last stop (or before the first line). True: finished. */
  raise(error: unknown): boolean
}

class GeneratorCoroutine<T> implements Coroutine<T> {
  state: CoroutineState = 'ready'
  result: T | unknown = undefined
  readonly #generator: Iterator<number, T, unknown> & { throw(error: unknown): IteratorResult<number, T> }

  constructor(generator: Generator<number, T, unknown>) {
    this.#generator = generator as never
  }

  start(): boolean {
    if (this.state !== 'ready') throw new Error(`coroutine started while ${this.state}`)
    return this.#run(false, undefined)
  }

  resume(value?: unknown): boolean {
    if (this.state !== 'preempted' && this.state !== 'suspended') {
      throw new Error(`coroutine resumed while ${this.state}`)
    }
    return this.#run(false, value)
  }

  raise(error: unknown): boolean {
    if (this.state !== 'preempted' && this.state !== 'suspended' && this.state !== 'ready') {
      throw new Error(`coroutine thrown into while ${this.state}`)
    }
    return this.#run(true, error)
  }

  #run(raising: boolean, value: unknown): boolean {
    this.state = 'running'
    let step: IteratorResult<number, T>
    try {
      step = raising ? this.#generator.throw(value) : this.#generator.next(value)
    } catch (error) {
      this.state = 'threw'
      this.result = error
      return true
    }
    if (step.done) {
      this.state = 'returned'
      this.result = step.value
      return true
    }
    this.state = step.value === SUSPENDED ? 'suspended' : 'preempted'
    return false
  }
}

/**
 * A coroutine, not yet started, that runs `fn` with this `self` and these arguments: through its twin where it has
 * one, through itself where it is a generator function, else in one go.
 */
export function coroutineOf<T>(
  fn: (...args: any[]) => T,
  args: readonly unknown[],
  self?: unknown,
): Coroutine<T> {
  if (typeof fn !== 'function') throw new TypeError('a coroutine needs a function')
  return new GeneratorCoroutine<T>(enter(fn, args, self) as never)
}

function* enter(
  fn: (...args: any[]) => unknown,
  args: readonly unknown[],
  self: unknown,
): Generator<number, unknown> {
  const resumable = twinOf(fn)
  if (resumable !== undefined) return yield* resumable.apply(self, args as unknown[])
  const result = fn.apply(self, args as unknown[])
  return isGenerator(result) ? yield* result : result
}

function isGenerator(value: unknown): value is Generator<number, unknown> {
  return Object.prototype.toString.call(value) === '[object Generator]'
}

let flagView: Int32Array = new Int32Array(1)
let flagIndex = 0

/** Points this thread's safepoints at its CPU's `needResched` word. Until then they look at a word that stays 0. */
export function setSafepointFlag(view: Int32Array, index: number): void {
  if (!(view instanceof Int32Array)) throw new TypeError('the safepoint flag is a word of an Int32Array')
  if (!(Number.isInteger(index) && index >= 0 && index < view.length)) {
    throw new RangeError(`no word ${index} in a view of ${view.length}`)
  }
  flagView = view
  flagIndex = index
}

/** What a safepoint asks: does the scheduler want this CPU? An atomic load, which no engine moves out of a loop. */
export function needResched(): boolean {
  return Atomics.load(flagView, flagIndex) !== 0
}
