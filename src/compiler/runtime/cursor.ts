/** The iteration of loops in functions that unwind: cursors, which are saved like any other value. */
import { run } from '../../coroutine/core/frames.ts'
import { bodyStep, callableIn, generatorBody, isObject, nextOf, stopsInNext } from './generator.ts'

const arrayValues: unknown = Array.prototype.values
const arrayIterator = Object.getPrototypeOf([][Symbol.iterator]())
const arrayNext: unknown = arrayIterator.next

/** A `for…of` that can be suspended: `step`, then `value`; `fail` or `close` on an early exit. */
export interface Cursor {
  value: any
  step(): unknown
  fail(): void
  close(): void
}

export class IteratorCursor implements Cursor {
  value: any = undefined
  #iterator: any
  #next: any
  #open = false

  constructor(iterable: any, method: unknown, message: string) {
    if (typeof method !== 'function') {
      // The engine's own error, with the name in the source.
      throw new TypeError(message)
    }
    const iterator = Reflect.apply(method, iterable, [])
    if (!isObject(iterator)) throw new TypeError('Result of the Symbol.iterator method is not an object')
    this.#iterator = iterator
    this.#next = iterator.next
  }

  /** The parts that travel. */
  parts(): unknown[] {
    return [this.#iterator, this.#next, this.#open, this.value]
  }

  /** A cursor whose parts follow. */
  static empty(): IteratorCursor {
    return new IteratorCursor(undefined, () => ({}), '')
  }

  fill([iterator, next, open, value]: readonly unknown[]): void {
    this.#iterator = iterator
    this.#next = next
    this.#open = open === true
    this.value = value
  }

  step(): boolean {
    this.#open = false
    const step = this.#next.call(this.#iterator)
    if (!isObject(step)) throw new TypeError(`Iterator result ${String(step)} is not an object`)
    if (step.done) return false
    this.value = step.value
    this.#open = true
    return true
  }

  /** The body threw: its error is rethrown, whatever `return` does. */
  fail(): void {
    if (!this.#open) return
    this.#open = false
    try {
      const method = this.#iterator.return
      if (method !== undefined && method !== null) Reflect.apply(method, this.#iterator, [])
    } catch {
      // The body's own error has precedence.
    }
  }

  close(): void {
    if (!this.#open) return
    this.#open = false
    const method = this.#iterator.return
    if (method === undefined || method === null) return
    const result = Reflect.apply(callableIn(method), this.#iterator, [])
    if (!isObject(result)) throw new TypeError(`Iterator result ${String(result)} is not an object`)
  }
}

/** A cursor whose step may unwind. */
abstract class StoppingCursor implements Cursor {
  value: any = undefined
  #open = false

  protected abstract next(): Generator<number, IteratorResult<unknown>, unknown>
  /** Closes the iterator on an early exit. */
  protected abstract leave(): void

  step(): unknown {
    this.#open = false
    return run(this.#stepping())
  }

  *#stepping(): Generator<number, boolean, unknown> {
    const step = yield* this.next()
    if (step.done) return false
    this.value = step.value
    this.#open = true
    return true
  }

  fail(): void {
    try {
      this.close()
    } catch {
      // The body's own error has precedence.
    }
  }

  close(): void {
    if (!this.#open) return
    this.#open = false
    this.leave()
  }
}

/** Over a generator that can suspend inside. */
class BodyCursor extends StoppingCursor {
  readonly #made: any

  constructor(made: unknown) {
    super()
    this.#made = made
  }

  protected next(): Generator<number, IteratorResult<unknown>, unknown> {
    return bodyStep(this.#made)
  }

  protected leave(): void {
    this.#made.return()
  }
}

/** Over an iterator whose `next` can suspend: a channel's. */
class NextCursor extends StoppingCursor {
  readonly #iterator: Iterator<unknown>

  constructor(iterator: Iterator<unknown>) {
    super()
    this.#iterator = iterator
  }

  protected next(): Generator<number, IteratorResult<unknown>, unknown> {
    return nextOf(this.#iterator)
  }

  protected leave(): void {
    this.#iterator.return?.()
  }
}

/**
 * The cursor of a `for…of`; null for an array, which is iterated by index. `message` is the engine's error
 * for a value that is not iterable.
 */
export function cursor(ok: unknown, iterable: any, message: string): Cursor | null {
  if (!Array.isArray(iterable) && ok && generatorBody(iterable) !== undefined) return new BodyCursor(iterable)
  const method = iterable === undefined || iterable === null ? undefined : iterable[Symbol.iterator]
  if (method === arrayValues && Array.isArray(iterable) && arrayIterator.next === arrayNext) return null
  if (ok && stopsInNext(iterable, method)) return new NextCursor(Reflect.apply(method, iterable, []))
  return new IteratorCursor(iterable, method, message)
}

/**
 * A `for…in` that can be suspended. It uses the engine's own loop, which reads each key of the object only
 * when it gets there.
 */
export class KeyCursor {
  value: string = ''
  readonly #keys: Iterator<string, undefined>

  constructor(object: unknown) {
    this.#keys = keysOf(object as object)
  }

  step(): boolean {
    const step = this.#keys.next()
    if (step.done) return false
    this.value = step.value
    return true
  }
}

function* keysOf(object: object): Generator<string, undefined> {
  // oxlint-disable-next-line guard-for-in
  for (const key in object) yield key
}
