/**
 * Generator functions that are tasks. The twin's body is itself a generator. It yields two kinds of values:
 * its stops, which are integers for the code that runs the coroutine, and its own values, which are boxed for
 * the code that iterates. Its caller gets an object that behaves like the plain generator; `next`, `return`
 * and `throw` of this object have twins.
 */
import { define } from '../../coroutine/core/define.ts'
import { SUSPENDED, type Twin, twin } from '../../coroutine/core/coroutine.ts'

type Callable = (...args: any[]) => any
type Step = IteratorResult<any, any>
type Verb = 'next' | 'return' | 'throw'

/** A value that the generator yields to its iterator. */
export class Out {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }
}

/** A loop over such a generator receives this instead of a value when the generator has stopped inside. */
export const paused: unique symbol = Symbol('heddle.paused')

/** The key under which a compiled twin holds its function. */
export const owner: unique symbol = Symbol.for('heddle.owner') as never

const bodies = new WeakMap<object, Body>()
const generatorPrototype: object = Object.getPrototypeOf(function* () {}).prototype

/** The running body of one generator object. */
class Body {
  readonly #raw: Generator<unknown, any, any>
  /** True from the start of a `next` to its end, also while stopped inside. */
  busy = false

  constructor(raw: Generator<unknown, any, any>) {
    this.#raw = raw
  }

  /** The iterable for a `yield*` of another body. */
  delegate(): Iterable<unknown> {
    return new Delegate(this.#raw)
  }

  enter(): void {
    if (this.busy) throw new TypeError('Generator is already running')
    this.busy = true
  }

  /** One step: a result of the generator, or a number if it has stopped inside. */
  step(verb: Verb, value: unknown): Step | number {
    let step: Step
    try {
      step = this.#raw[verb](value)
      while (step.value === returned && !step.done) step = this.#raw.return(undefined)
    } catch (error) {
      this.busy = false
      throw error
    }
    if (!step.done && typeof step.value === 'number') return step.value
    this.busy = false
    if (step.done) return step
    const given = step.value as Out | Passed
    return given instanceof Passed ? given.result : { value: given.value, done: false }
  }

  /** A step for code that cannot stop: preemption is deferred, and a blocking call throws. */
  plain(verb: Verb, value: unknown): Step {
    this.enter()
    let step = this.step(verb, value)
    while (typeof step === 'number') {
      onPlainStop()
      step = step === SUSPENDED ? this.step('throw', new Error(cannotBlock)) : this.step('next', undefined)
    }
    return step
  }

  *resumable(verb: Verb, value: unknown): Generator<number, Step, unknown> {
    this.enter()
    return yield* this.finish(this.step(verb, value))
  }

  *finish(first: Step | number): Generator<number, Step, unknown> {
    let step = first
    while (typeof step === 'number') {
      let sent: unknown
      try {
        sent = yield step
      } catch (error) {
        step = this.step('throw', error)
        continue
      }
      step = this.step('next', sent)
    }
    return step
  }
}

let onPlainStop = (): void => undefined

/** Sets the function that is called if code that cannot stop drives a generator to a stop. */
export function setPlainStop(handler: () => void): void {
  onPlainStop = handler
}

/** The error of a blocking call inside code that plain code called. */
export const cannotBlock: string =
  'a blocking call needs a task: plain code, which cannot wait, called this code'

function method(name: Verb): Callable {
  const plain = {
    [name](this: object, value: unknown): Step {
      return bodyOf(this, name).plain(name, value)
    },
  }[name]!
  Object.defineProperty(plain, twin, {
    value: function* (this: object, value: unknown): Generator<number, Step, unknown> {
      return yield* bodyOf(this, name).resumable(name, value)
    },
  })
  return plain
}

function bodyOf(made: object, name: string): Body {
  const body = bodies.get(made)
  if (body === undefined)
    throw new TypeError(`${name} method called on incompatible receiver ${String(made)}`)
  return body
}

/** `next`, `return` and `throw` of each generator object that is made here. */
export const generatorMethods: readonly Callable[] = (['next', 'return', 'throw'] as const).map(method)

const verbs: PropertyDescriptorMap = {}
for (const value of generatorMethods)
  verbs[value.name] = { value, writable: true, configurable: true, enumerable: false }

/**
 * The twin of a generator function: it returns immediately, with a generator object that can be preempted
 * inside.
 */
export function generatorTwin(fn: Callable, body: Twin): Twin {
  // oxlint-disable-next-line require-yield
  return function* (this: unknown, ...args: unknown[]) {
    const raw = Reflect.apply(body, this, args)
    const { prototype } = fn
    const parent = typeof prototype === 'object' && prototype !== null ? prototype : generatorPrototype
    const made = Object.create(parent, verbs) as object
    bodies.set(made, new Body(raw as never))
    return made
  }
}

/**
 * A delegate yields this if a `return` that had stopped inside ended it: the body around it must return as
 * well.
 */
const returned: unique symbol = Symbol('heddle.returned')

/**
 * A body inside a `yield*`. A `return` may stop in a `finally` of the body, and continues by a `next` of the
 * engine. If the body then ends, the engine would take its value for the value of the `yield*`. So it is
 * asked to return once more.
 *
 *   caller: return(1)     outer: raw.return(1)   delegate.return(1)   inner stops in its `finally`, which yields a number
 *   continues: next()     outer: raw.next()      delegate.next()      inner ends: yields `returned`
 *   Body.step             outer: raw.return()    delegate.return()    returns the saved result: the engine returns
 */
class Delegate implements IterableIterator<unknown> {
  readonly #raw: Generator<unknown, any, any>
  #isReturning = false
  #end: Step | null = null

  constructor(raw: Generator<unknown, any, any>) {
    this.#raw = raw
  }

  [Symbol.iterator](): this {
    return this
  }

  next(value: unknown): Step {
    const step = this.#raw.next(value)
    return this.#isReturning ? this.#after(step) : step
  }

  return(value: unknown): Step {
    const end = this.#end
    if (end !== null) {
      this.#end = null
      return end
    }
    const step = this.#raw.return(value)
    this.#isReturning = isStop(step)
    return step
  }

  throw(error: unknown): Step {
    const step = this.#raw.throw(error)
    return this.#isReturning ? this.#after(step) : step
  }

  /**
   * A step of a body that stopped during a `return`. If it yields a value of its own, the `return` is
   * forgotten, as in the language.
   */
  #after(step: Step): Step {
    if (isStop(step)) return step
    this.#isReturning = false
    if (!step.done) return step
    this.#end = step
    return { value: returned, done: false }
  }
}

/** True for a value that goes to the coroutine's owner: a number, or `returned`. */
function isStop({ value, done }: Step): boolean {
  return !done && (typeof value === 'number' || value === returned)
}

/** A result that a `yield*` passes on unread. */
class Passed {
  readonly result: Step

  constructor(result: Step) {
    this.result = result
  }
}

/**
 * The iterable for `yield*` inside such a body: the body of a compiled generator itself, or a wrapper that
 * passes each result on. It reads the same properties of the iterator as a plain `yield*`, at the same times.
 * `message` is the error for a value that is not iterable.
 */
export function delegate(iterable: any, message: string): Iterable<unknown> {
  const body = generatorBody(iterable) as Body | undefined
  if (body !== undefined) return body.delegate()
  const make = iterable === undefined || iterable === null ? undefined : iterable[Symbol.iterator]
  if (typeof make !== 'function') throw new TypeError(message)
  const inner = Reflect.apply(make, iterable, [])
  if (!isObject(inner)) throw new TypeError('Result of the Symbol.iterator method is not an object')
  const { next } = inner
  const step = (method: Callable, ...given: unknown[]): Step => {
    const result = Reflect.apply(method, inner, given)
    if (!isObject(result)) throw new TypeError(`Iterator result ${String(result)} is not an object`)
    return result.done ? { value: result.value, done: true } : { value: new Passed(result), done: false }
  }
  /** The method, read where the engine reads it. */
  const method = (name: 'return' | 'throw'): unknown => {
    const found = inner[name]
    if (found === undefined || found === null) return undefined
    // The engine passes no argument to `return` when it only closes an iterator that cannot throw.
    return (...given: unknown[]) => step(callableIn(found), ...given)
  }
  const outer = {
    [Symbol.iterator]: () => outer,
    next: (value: unknown) => step(next, value),
    get return() {
      return method('return') as () => Step
    },
    get throw() {
      return method('throw') as () => Step
    },
  }
  return outer
}

/** A method of an iterator, or the engine's error. */
export function callableIn(method: unknown): Callable {
  if (typeof method === 'function') return method as Callable
  throw new TypeError(`${typeof method} ${String(method)} is not a function`)
}

export function isObject(value: unknown): value is any {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

/** Lets a loop iterate a generator that can stop inside: the loop then sees `paused`, and calls `wait`. */
class Adapter implements IterableIterator<unknown> {
  readonly #body: Body
  #stopped: number | null = null
  #ready: Step | null = null

  constructor(body: Body) {
    this.#body = body
  }

  [Symbol.iterator](): this {
    return this
  }

  next(): Step {
    if (this.#ready !== null) {
      const step = this.#ready
      this.#ready = null
      return step
    }
    this.#body.enter()
    const step = this.#body.step('next', undefined)
    if (typeof step !== 'number') return step
    this.#stopped = step
    return { value: paused, done: false }
  }

  return(): Step {
    if (this.#stopped !== null) return { value: undefined, done: true }
    return this.#body.plain('return', undefined)
  }

  *wait(): Generator<number, void, unknown> {
    this.#ready = yield* this.#body.finish(this.#stopped!)
    this.#stopped = null
  }
}

/** The same for an iterator whose `next` has its own resumable form: a channel's. */
class NextAdapter implements IterableIterator<unknown> {
  readonly #iterator: Iterator<unknown>
  #running: Generator<number, Step, unknown> | null = null
  #stopped = 0
  #ready: Step | null = null

  constructor(iterator: Iterator<unknown>) {
    this.#iterator = iterator
  }

  [Symbol.iterator](): this {
    return this
  }

  next(): Step {
    const ready = this.#ready
    this.#ready = null
    if (ready !== null) return ready
    const running = nextOf(this.#iterator)
    const step = running.next()
    if (step.done) return step.value
    this.#running = running
    this.#stopped = step.value
    return { value: paused, done: false }
  }

  return(): Step {
    this.#iterator.return?.()
    return { value: undefined, done: true }
  }

  *wait(): Generator<number, void, unknown> {
    const running = this.#running!
    let stop = this.#stopped
    for (;;) {
      let step: IteratorResult<number, Step>
      try {
        step = running.next(yield stop)
      } catch (thrown) {
        step = running.throw(thrown)
      }
      if (step.done) {
        this.#ready = step.value
        return
      }
      stop = step.value
    }
  }
}

/**
 * True if the `next` of the iterators can stop inside: the twin of the `Symbol.iterator` method says so. A
 * compiled twin says only that the method itself can stop.
 */
export function stopsInNext(iterable: any, method: any): boolean {
  if (typeof iterable !== 'object' || iterable === null) return false
  const found = method?.[twin]
  return found !== undefined && !Object.hasOwn(found, owner)
}

/** One step of such an iterator. */
export function nextOf(iterator: Iterator<unknown>): Generator<number, Step, unknown> {
  const resumable = (iterator.next as { [twin]?: Twin })[twin]!
  return Reflect.apply(resumable, iterator, []) as Generator<number, Step, unknown>
}

/** The iterable of a `for…of` in a twin: the value itself, or an adapter if it can stop inside. */
export function iterate(iterable: any, message: string): any {
  const method = iterable === null || iterable === undefined ? undefined : iterable[Symbol.iterator]
  return iterateBy(iterable, method, message)
}

/** The same, after the `Symbol.iterator` method was read. */
export function iterateBy(iterable: any, method: any, message: string): any {
  const body = generatorBody(iterable)
  if (body !== undefined) return new Adapter(body as Body)
  if (stopsInNext(iterable, method)) return new NextAdapter(Reflect.apply(method, iterable, []))
  if (typeof method !== 'function') throw new TypeError(message)
  // The loop must not read the method again.
  return { [Symbol.iterator]: () => Reflect.apply(method, iterable, []) }
}

/** Runs a stopped generator until it has a value or ends. */
export function* wait(adapter: unknown): Generator<number, void, unknown> {
  if (!(adapter instanceof Adapter || adapter instanceof NextAdapter))
    throw new Error('only an adapter can be paused')
  yield* adapter.wait()
}

/** True for a generator that can stop inside. */
export function stops(iterable: unknown): boolean {
  return typeof iterable === 'object' && iterable !== null && bodies.has(iterable)
}

/** All values of an iterable that may stop inside. */
export function* collect(iterable: any): Generator<number, any, unknown> {
  const body = typeof iterable === 'object' && iterable !== null ? bodies.get(iterable) : undefined
  if (body === undefined) return iterable
  const values: unknown[] = []
  let count = 0
  for (;;) {
    const step = yield* body.resumable('next', undefined)
    if (step.done) return values
    define(values, count++, step.value)
  }
}

/** The body of a generator that can stop inside; undefined for any other value. */
export function generatorBody(iterable: unknown): object | undefined {
  return typeof iterable === 'object' && iterable !== null ? bodies.get(iterable) : undefined
}

/** One step of such a generator. */
export function bodyStep(made: object): Generator<number, IteratorResult<unknown, unknown>, unknown> {
  return bodies.get(made)!.resumable('next', undefined)
}
