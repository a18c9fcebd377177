/** What functions that unwind import: how they are told apart, and how they call and iterate what is not of their kind. */
import { frames, run } from '../../coroutine/frames.ts'
import { itself, twin } from '../../coroutine/coroutine.ts'
import { own, refuse, unwinding } from './attach.ts'
import { bodyStep, collect, generatorBody, nextOf, stopsInNext } from './generator.ts'

/** Nothing given, nothing saved. */
export const nothing: readonly unknown[] = []

/** On a twin: the form of a built-in that unwinds. */
export const form: unique symbol = Symbol('heddle.form')

/** Calls what carries a twin that is not itself, or has a `call` of its own. */
export function other(ok: unknown, fn: any, self: unknown, args: unknown[], text: string): unknown {
  if (typeof fn !== 'function') return refuse(text)
  if (ok) {
    const found = fn[twin]
    if (fn[itself] === fn) frames.ok = 1
    else if (found !== undefined) {
      const built = found[form]
      if (built !== undefined && built.of === fn) return Reflect.apply(built, self, args)
      return run(Reflect.apply(own(fn), self, args))
    }
  }
  return Reflect.apply(fn, self, args)
}

export function other0(ok: unknown, fn: any, self: unknown, text: string): unknown {
  const built = fn?.[twin]?.[form]
  return ok && built !== undefined && built.of === fn ? built.call(self) : other(ok, fn, self, [], text)
}

export function other1(ok: unknown, fn: any, self: unknown, first: unknown, text: string): unknown {
  const built = fn?.[twin]?.[form]
  return ok && built !== undefined && built.of === fn
    ? built.call(self, first)
    : other(ok, fn, self, [first], text)
}

export function other2(
  ok: unknown,
  fn: any,
  self: unknown,
  first: unknown,
  second: unknown,
  text: string,
): unknown {
  const built = fn?.[twin]?.[form]
  return ok && built !== undefined && built.of === fn
    ? built.call(self, first, second)
    : other(ok, fn, self, [first, second], text)
}

/** The function that was last made where it is given to a built-in: it unwinds, and bears no mark yet. */
let made: unknown = null

export function isMade(fn: unknown): boolean {
  return fn === made
}

/**
 * A call that is given a function made on the spot. To mark it costs more than to make it, so it is marked only when
 * somebody but a built-in gets it.
 */
export function given(
  ok: unknown,
  fn: any,
  self: unknown,
  callback: any,
  rest: readonly unknown[],
  text: string,
): unknown {
  const built = fn?.[twin]?.[form]
  if (ok && built !== undefined && built.of === fn) {
    made = callback
    if (rest.length === 0) return built.call(self, callback)
    return built.call(self, callback, ...rest)
  }
  unwinding(callback)
  return other(ok, fn, self, [callback, ...rest], text)
}

/** What a template is tagged with: called at once, with the values alone in between. */
export function tagging(ok: unknown, fn: any, text: string): unknown {
  if (typeof fn !== 'function') return refuse(text)
  if (fn[itself] === fn) frames.ok = ok ? 1 : 0
  else if (ok && fn[twin] !== undefined)
    return (...args: unknown[]) => run(Reflect.apply(own(fn), undefined, args))
  return fn
}

/** What is spread: a generator that stops inside is run to its end first. */
export function spreads(ok: unknown, iterable: unknown): unknown {
  return ok && generatorBody(iterable) !== undefined ? run(collect(iterable)) : iterable
}

const arrayValues: unknown = Array.prototype.values
const arrayIterator = Object.getPrototypeOf([][Symbol.iterator]())
const arrayNext: unknown = arrayIterator.next

/** A `for…of` that can be left and entered again: `step`, then `value`; `fail` or `close` when it is left early. */
export interface Cursor {
  value: any
  step(): unknown
  fail(): void
  close(): void
}

class IteratorCursor implements Cursor {
  value: any = undefined
  readonly #iterator: any
  readonly #next: any
  #open = false

  constructor(iterable: any, message: string) {
    const method = iterable === undefined || iterable === null ? undefined : iterable[Symbol.iterator]
    if (typeof method !== 'function') {
      // What is wrong with it, the engine says best, but for the name.
      throw new TypeError(message)
    }
    const iterator = Reflect.apply(method, iterable, [])
    if (!isObject(iterator)) throw new TypeError('Result of the Symbol.iterator method is not an object')
    this.#iterator = iterator
    this.#next = iterator.next
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

  /** The body threw: whatever `return` does, that error goes on. */
  fail(): void {
    if (!this.#open) return
    this.#open = false
    try {
      const method = this.#iterator.return
      if (method !== undefined && method !== null) Reflect.apply(method, this.#iterator, [])
    } catch {
      // The body's own error is the one that counts.
    }
  }

  close(): void {
    if (!this.#open) return
    this.#open = false
    const method = this.#iterator.return
    if (method === undefined || method === null) return
    const result = Reflect.apply(method, this.#iterator, [])
    if (!isObject(result)) throw new TypeError(`${String(result)} is not an object`)
  }
}

/** Over a generator that stops inside: a step may unwind. */
class BodyCursor implements Cursor {
  value: any = undefined
  readonly #made: any
  #open = false

  constructor(made: unknown) {
    this.#made = made
  }

  step(): unknown {
    this.#open = false
    return run(this.#stepping())
  }

  *#stepping(): Generator<number, boolean, unknown> {
    const step = yield* bodyStep(this.#made)
    if (step.done) return false
    this.value = step.value
    this.#open = true
    return true
  }

  fail(): void {
    if (!this.#open) return
    this.#open = false
    try {
      this.#made.return()
    } catch {
      // The body's own error is the one that counts.
    }
  }

  close(): void {
    if (!this.#open) return
    this.#open = false
    this.#made.return()
  }
}

/** Over an iterator whose `next` can stop inside: a channel's. */
class NextCursor implements Cursor {
  value: any = undefined
  readonly #iterator: Iterator<unknown>
  #open = false

  constructor(iterator: Iterator<unknown>) {
    this.#iterator = iterator
  }

  step(): unknown {
    this.#open = false
    return run(this.#stepping())
  }

  *#stepping(): Generator<number, boolean, unknown> {
    const step = yield* nextOf(this.#iterator)
    if (step.done) return false
    this.value = step.value
    this.#open = true
    return true
  }

  fail(): void {
    try {
      this.close()
    } catch {
      // The body's own error is the one that counts.
    }
  }

  close(): void {
    if (!this.#open) return
    this.#open = false
    this.#iterator.return?.()
  }
}

/** What a `for…of` runs over; null: an array, place by place. `message` is what the engine says when it cannot. */
export function cursor(ok: unknown, iterable: any, message: string): Cursor | null {
  if (
    Array.isArray(iterable) &&
    iterable[Symbol.iterator] === arrayValues &&
    arrayIterator.next === arrayNext
  ) {
    return null
  }
  if (ok && generatorBody(iterable) !== undefined) return new BodyCursor(iterable)
  if (ok && stopsInNext(iterable)) return new NextCursor(iterable[Symbol.iterator]())
  return new IteratorCursor(iterable, message)
}

/** A `for…in` that can be left and entered again: keys that are deleted meanwhile are passed by. */
export class KeyCursor {
  value: string = ''
  readonly #object: any
  readonly #keys: string[] = []
  #at = 0

  constructor(object: unknown) {
    this.#object = object
    // oxlint-disable-next-line guard-for-in
    for (const key in object as object) this.#keys.push(key)
  }

  step(): boolean {
    while (this.#at < this.#keys.length) {
      const key = this.#keys[this.#at++]!
      if (!(key in Object(this.#object))) continue
      this.value = key
      return true
    }
    return false
  }
}

/** A variable that closures share across suspensions. */
export class Box {
  v: any = undefined
}

/** The same for one that may be looked at before its declaration has run. */
class EarlyBox {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }

  get v(): any {
    throw new ReferenceError(`Cannot access '${this.name}' before initialization`)
  }

  set v(_value: any) {
    throw new ReferenceError(`Cannot access '${this.name}' before initialization`)
  }
}

export function early(name: string): { v: any } {
  return new EarlyBox(name)
}

/** The declaration of an early variable has run. */
export function declared<T>(box: object, value: T): T {
  Object.defineProperty(box, 'v', { value, writable: true, enumerable: true, configurable: true })
  return value
}

/** What the engine says of what cannot be taken apart. */
export function refuseList(text: string): never {
  throw new TypeError(text)
}

export function refuseObject(text: string, value: unknown): never {
  throw new TypeError(`${text}${String(value)}.`)
}

/** The name of a property, worked out where it stands. */
export function keyOf(value: unknown): PropertyKey {
  return typeof value === 'symbol' ? value : typeof value === 'string' ? value : `${value as string}`
}

function isObject(value: unknown): value is any {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}
