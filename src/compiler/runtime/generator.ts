/**
 * Generator functions that are tasks. The twin's body is itself a generator that yields two kinds of things:
 * its stops, which are integers and go to whoever runs the coroutine, and its own values, which are boxed and
 * go to whoever iterates. What a caller gets is an object that looks and acts like the plain generator, whose
 * `next`, `return` and `throw` carry twins.
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

/** What a loop over such a generator receives instead of a value when the generator has stopped inside. */
export const paused: unique symbol = Symbol('heddle.paused')

/** Under this symbol a compiled twin knows its function. */
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

  /** What a `yield*` of another body runs over. */
  delegate(): Iterable<unknown> {
    return new Delegate(this.#raw)
  }

  enter(): void {
    if (this.busy) throw new TypeError('Generator is already running')
    this.busy = true
  }

  /** One step: a step of the generator's own, or a number when it has stopped inside. */
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

  /** A step from code that cannot stop: preemption waits, and a blocking call has nowhere to block. */
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

/** What is called when code that cannot stop drives a generator to a stop. */
export function setPlainStop(handler: () => void): void {
  onPlainStop = handler
}

/** What a blocking call throws when the code that it is in was entered from plain code. */
export const cannotBlock: string =
  'a blocking call needs a task: this code was called by plain code, which cannot wait'

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
 * The twin of a generator function: it finishes at once, with a generator object that can be preempted
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
 * What a delegate yields when it has ended by a `return` that had stopped inside: the body around it is to
 * return as well.
 */
const returned: unique symbol = Symbol('heddle.returned')

/**
 * A body inside of a `yield*`. A `return` may stop in a `finally` of the body, and what goes on then is a
 * `next` to the engine: when the body ends by it, the engine would take that for the value of the `yield*`.
 * So it is asked to return once more.
 *
 *   caller: return(1)     outer: raw.return(1)   delegate.return(1)   inner stops in its `finally`, which yields a number
 *   goes on: next()       outer: raw.next()      delegate.next()      inner ends: yields `returned`
 *   Body.step             outer: raw.return()    delegate.return()    gives the end that was kept: the engine returns
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
   * A step of a body that stopped on its way out. A value of its own is no stop: the language forgets the
   * `return` there too.
   */
  #after(step: Step): Step {
    if (isStop(step)) return step
    this.#isReturning = false
    if (!step.done) return step
    this.#end = step
    return { value: returned, done: false }
  }
}

/** True for what goes to the coroutine's owner: a number, or the wish that a body returns. */
function isStop({ value, done }: Step): boolean {
  return !done && (typeof value === 'number' || value === returned)
}

/** A result that a `yield*` hands on as it got it, unread. */
class Passed {
  readonly result: Step

  constructor(result: Step) {
    this.result = result
  }
}

/**
 * What `yield*` delegates to inside such a body: a body of ours as it is, or what hands on each result of an
 * iterator. It reads of the iterator what a plain `yield*` reads, when that does. `message` says what is
 * wrong with what has none.
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
  /** The method, where the engine asks for it. */
  const method = (name: 'return' | 'throw'): unknown => {
    const found = inner[name]
    if (found === undefined || found === null) return undefined
    // The engine gives `return` nothing when it only closes what cannot throw.
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

/** Lets a loop run over a generator that stops inside: it then sees `paused`, and calls `wait`. */
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

/** The same over an iterator whose `next` has a resumable form of its own: a channel's. */
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
 * An iterable says on its `Symbol.iterator` method that its iterators' `next` can stop inside. What the
 * compiler made resumable says something else: that the method itself can.
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

/** What a `for…of` in a twin iterates: the thing itself, or an adapter where that can stop inside. */
export function iterate(iterable: any, message: string): any {
  const method = iterable === null || iterable === undefined ? undefined : iterable[Symbol.iterator]
  return iterateBy(iterable, method, message)
}

/** The same where the method that makes its iterators has been read. */
export function iterateBy(iterable: any, method: any, message: string): any {
  const body = generatorBody(iterable)
  if (body !== undefined) return new Adapter(body as Body)
  if (stopsInNext(iterable, method)) return new NextAdapter(Reflect.apply(method, iterable, []))
  if (typeof method !== 'function') throw new TypeError(message)
  // The method has been read: the loop must not read it again.
  return { [Symbol.iterator]: () => Reflect.apply(method, iterable, []) }
}

/** Runs a stopped generator on until it has a value or an end. */
export function* wait(adapter: unknown): Generator<number, void, unknown> {
  if (!(adapter instanceof Adapter || adapter instanceof NextAdapter))
    throw new Error('only an adapter is paused')
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

/** What runs inside a generator that can stop inside; undefined for anything else. */
export function generatorBody(iterable: unknown): object | undefined {
  return typeof iterable === 'object' && iterable !== null ? bodies.get(iterable) : undefined
}

/** One step of such a generator. */
export function bodyStep(made: object): Generator<number, IteratorResult<unknown, unknown>, unknown> {
  return bodies.get(made)!.resumable('next', undefined)
}
