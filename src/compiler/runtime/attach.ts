/** Twins on functions: attached when a function is made, found when it is called. */
import { entering, itself, type Twin, twin, unwinds } from '../../coroutine/core/coroutine.ts'
import { frames } from '../../coroutine/core/frames.ts'
import { resumable as direct } from '../../coroutine/core/generators.ts'
import { isObject } from './accessors.ts'
import { asyncTwin } from './async.ts'
import { builds } from './construct.ts'
import { inspectors } from './builtins/inspectors.ts'
import { generatorTwin, owner } from './generator.ts'

type Callable = (...args: any[]) => any

/**
 * A twin knows its function. A proxy shows the twin of its target, and a function may inherit a twin from its
 * prototype: both must be called as they are.
 */
interface Owned {
  [owner]?: Callable
}

const hidden = { value: undefined as unknown, writable: true, configurable: true, enumerable: false }

let shape: (resumable: Twin) => Twin = direct

/**
 * Sets how twins are made from now on. By default, a coroutine can be resumed inside a twin without going
 * through its callers. That pays if switches are rare and deep, but not if every access is a switch.
 */
export function setTwinShape(next: (resumable: Twin) => Twin): void {
  shape = next
}

/**
 * Marks a function that unwinds, and returns it. A new `length` or `name` would cost more than the mark: V8
 * keeps the properties of such a function in a dictionary, and each check of the mark is then a search.
 */
export function unwinding<F extends Callable>(fn: F, name?: string): F {
  hidden.value = fn
  Object.defineProperty(fn, itself, hidden)
  if (name !== undefined) Object.defineProperty(fn, 'name', { value: name, configurable: true })
  return fn
}

/** On a function that unwinds: which parameter it only calls. Payloads know this symbol too. */
const takes: unique symbol = Symbol.for('heddle.takes') as never

/** `of`: the function itself, since another function may inherit from it. */
interface Taken {
  readonly of: Callable
  readonly at: number
}

/**
 * Marks a function that unwinds and only calls its parameter at this position: an unmarked function may be
 * lent to it. Returns the function. See lowering/frames/unmarkedarguments.ts.
 */
export function taking<F extends Callable>(fn: F, at: number): F {
  hidden.value = { of: fn, at } satisfies Taken
  Object.defineProperty(fn, takes, hidden)
  return fn
}

/**
 * Just before a call of `fn`, which unwinds or is plain: lends it the unmarked function that is its argument
 * at this position, if it takes one there. Any other function gets it with a mark.
 */
export function lend(fn: any, at: number, callback: Callable): void {
  const taken: Taken | undefined = fn?.[takes]
  if (taken !== undefined && taken.of === fn && taken.at === at) frames.made = callback
  else unwinding(callback)
}

/** `unwinding` for a function that other modules may call: generators call it through its twin. */
export function attachUnwinding<F extends Callable>(fn: F, name?: string): F {
  unwinding(fn, name)
  const made: Twin & Owned = entering(fn)
  made[owner] = fn
  hidden.value = made
  Object.defineProperty(fn, twin, hidden)
  return fn
}

/** Attaches the resumable form to `fn`, and returns `fn`. */
export function attach<F extends Callable>(fn: F, resumable: Twin, name?: string): F {
  ;(resumable as Owned)[owner] = fn
  hidden.value = shape(resumable)
  Object.defineProperty(fn, twin, hidden)
  if (name !== undefined) Object.defineProperty(fn, 'name', { value: name, configurable: true })
  return fn
}

/** The same for a generator function; `body` yields its own values in boxes and its stops as integers. */
export function attachGenerator<F extends Callable>(fn: F, body: Twin, name?: string): F {
  return attach(fn, generatorTwin(fn, body), name)
}

/** The same for an async function; `body` yields its awaits in boxes and its stops as integers. */
export function attachAsync<F extends Callable>(fn: F, body: Twin, name?: string): F {
  return attach(fn, asyncTwin(body), name)
}

type Attacher = <F extends Callable>(fn: F, resumable: Twin) => F

/** For a function expression that refers to itself by name: the twin must refer to the same function. */
export function attachSelf<F extends Callable>(attacher: Attacher, fn: F, make: (self: F) => Twin): F {
  return attacher(fn, make(fn))
}

/** For a function under a computed name, which is the only property of `entry`. */
export function attachEntry<E extends object>(attacher: Attacher, entry: E, resumable?: Twin): E {
  const [name] = Reflect.ownKeys(entry)
  attacher((entry as Record<PropertyKey, Callable>)[name!]!, resumable as never)
  return entry
}

const keys: symbol[] = []

/** The key under which a class or an object holds the twin of a method until it is linked. */
export function key(index: number): symbol {
  return (keys[index] ??= Symbol(`heddle.method.${index}`))
}

const attachers: Record<string, Attacher> = { plain: attach, generator: attachGenerator, async: attachAsync }

function link(target: any, name: PropertyKey, index: number, flavor: string): void {
  // `frames1`: one that takes an unmarked function as its parameter 1.
  const isFrames = flavor.startsWith('frames')
  if (flavor === 'inner' || isFrames || flavor === 'class') {
    const method = Object.getOwnPropertyDescriptor(target, name)?.value
    if (typeof method === 'function') (isFrames ? attachUnwinding : unwinding)(method)
    const at = flavor.slice('frames'.length)
    if (isFrames && at !== '' && typeof method === 'function') taking(method, Number(at))
    if (flavor === 'class') Object.defineProperty(method, builds, hidden)
    return
  }
  if (flavor === 'get' || flavor === 'set') {
    // To convert an object to a name would run its code once more.
    if (isObject(name)) return
    const made = Object.getOwnPropertyDescriptor(target, name)?.[flavor]
    if (made !== undefined) unwinding(made)
    return
  }
  const symbol = key(index)
  const resumable = target[symbol] as Twin
  delete target[symbol]
  const found = Object.getOwnPropertyDescriptor(target, name)
  if (flavor === 'getter' || flavor === 'setter') {
    const accessor = flavor === 'getter' ? found?.get : found?.set
    if (accessor !== undefined) attach(accessor, resumable)
  } else if (typeof found?.value === 'function') attachers[flavor]!(found.value, resumable)
}

/**
 * Moves the twins of a class's methods onto the methods. The links: name, key, is static, flavor, and so on.
 */
export function linkClass(made: any, ...links: any[]): void {
  for (let at = 0; at < links.length; at += 4) {
    link(links[at + 2] ? made : made.prototype, links[at], links[at + 1], links[at + 3])
  }
}

/** The same for an object literal: name, key, flavor, and so on. */
export function linkObject<O extends object>(made: O, ...links: any[]): O {
  for (let at = 0; at < links.length; at += 3) link(made, links[at], links[at + 1], links[at + 2])
  return made
}

/** The twin to call instead of `fn`, which shows one: its own, or else one that calls `fn` as it is. */
export function own(fn: Callable & { [twin]?: Twin }): Twin {
  const found = fn[twin]
  if (found === undefined) return unwinds(fn) ? entering(fn) : plainly(fn)
  const of = (found as Owned)[owner]
  return of === fn || of === undefined ? found : plainly(fn)
}

/** A twin that calls `fn` as it is. */
function plainly(fn: Callable): Twin {
  // oxlint-disable-next-line require-yield
  return function* (this: unknown, ...args: unknown[]) {
    return Reflect.apply(fn, this, args)
  }
}

/** The twin of the getter that a read of `object[name]` would call, or undefined. */
export function getter(object: any, name: PropertyKey): Twin | undefined {
  const found = accessor(object, name)?.get as (Callable & { [twin]?: Twin }) | undefined
  return found?.[twin] === undefined ? undefined : own(found)
}

/** The twin of the setter that an assignment to `object[name]` would call, or undefined. */
export function setter(object: any, name: PropertyKey): Twin | undefined {
  const found = accessor(object, name)?.set as (Callable & { [twin]?: Twin }) | undefined
  return found?.[twin] === undefined ? undefined : own(found)
}

function accessor(object: any, name: PropertyKey): PropertyDescriptor | undefined {
  if (typeof object !== 'object' && typeof object !== 'function') return undefined
  for (let holder = object; holder !== null; holder = Object.getPrototypeOf(holder)) {
    if (inspectors?.isProxy(holder)) return undefined
    const found = Object.getOwnPropertyDescriptor(holder, name)
    if (found !== undefined) return found
  }
  return undefined
}

/** `Function.prototype.call` at the time this module was loaded. */
export const call: unknown = Function.prototype.call

/** `Function.prototype.apply`, likewise. */
export const applyOf: unknown = Function.prototype.apply

/** Calls a value that has its own `call`, or that is no function. */
export function apply(fn: unknown, self: unknown, args: unknown[], text: string): unknown {
  if (typeof fn === 'function') return Reflect.apply(fn, self, args)
  return refuse(text)
}

/**
 * What is called as `fn.call(self, …)` in place of `fn`: mostly `fn`. A value that cannot be called so is
 * called, or refused, after the arguments of that call are evaluated.
 */
export function callable(fn: any, text: string): (...args: unknown[]) => unknown {
  return fn?.call === call && typeof fn === 'function' ? fn : unusual(fn, text)
}

function unusual(fn: unknown, text: string): (...args: unknown[]) => unknown {
  return function (this: unknown, ...args) {
    return apply(fn, this, args, text)
  }
}

/** Throws the engine's error for a call of such a value. */
export function refuse(text: string): never {
  throw new TypeError(`${text} is not a function`)
}
