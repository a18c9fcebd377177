/** `new` of constructors that unwind: which object it returns after the constructor was entered again. */
import { itself } from '../../coroutine/core/coroutine.ts'
import { frames, rest } from '../../coroutine/core/frames.ts'
import { inspectors } from './builtins/inspectors.ts'

function isObject(value: unknown): boolean {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

/** The value of `new`: the returned value if it is an object, else the object that the constructor began. */
export function built(begun: unknown, returned: unknown): unknown {
  return isObject(returned) ? returned : begun
}

/** The value that a constructor returns to its caller, by the rules of a base class. */
export function based(returned: unknown, self: () => unknown): unknown {
  return isObject(returned) ? returned : self()
}

/** The same by the rules of a derived class. */
export function derived(returned: unknown, self: () => unknown): unknown {
  if (returned === undefined) return self()
  if (isObject(returned)) return returned
  throw new TypeError('Derived constructors may only return object or undefined')
}

/**
 * The value of a field, which is computed between `new` and the constructor and must not take the
 * constructor's permission.
 */
export function shielded(value: () => unknown): unknown {
  const { ok } = frames
  frames.ok = 0
  const made = value()
  frames.ok = ok
  return made
}

/** `new` of a value that may be no constructor. The engine's message would show the compiler's variable. */
/** True for a function with the properties of most constructors; others need another test. */
export function mayBuild(fn: unknown): boolean {
  return typeof fn === 'function' && (inspectors?.isProxy(fn) === true || Object.hasOwn(fn, 'prototype'))
}

export function refuseNew(fn: unknown, text: string): void {
  if (!isConstructor(fn)) throw new TypeError(`${text} is not a constructor`)
}

/** Returns the function if it is a constructor, else throws. */
export function constructible(fn: unknown, text: string): unknown {
  if (!mayBuild(fn)) refuseNew(fn, text)
  return fn
}

const constructing = Reflect.construct

/** `new` of a constructor that does not unwind. */
export function make(fn: any, args: readonly unknown[], text: string): unknown {
  try {
    return constructing(fn, args)
  } catch (error) {
    refuseNew(fn, text)
    throw error
  }
}

function isConstructor(fn: any): boolean {
  try {
    const asked = new Proxy(fn, { construct: () => frames })
    return new asked() === frames
  } catch {
    return false
  }
}

/** `new` in a generator, of any constructor. */
export function* construct(
  fn: any,
  args: readonly unknown[],
  target: any = fn,
): Generator<number, unknown, unknown> {
  const begun = begin(fn, args, target)
  return frames.u === 0 ? begun : built(begun, yield* rest())
}

/** Runs a constructor, with the permission if it unwinds. A value that is no constructor has not taken it. */
export function begin(fn: any, args: readonly unknown[], target: any): unknown {
  if (fn[itself] === fn) frames.ok = 1
  try {
    return constructing(fn, args, target)
  } catch (error) {
    frames.ok = 0
    throw error
  }
}

/**
 * True if `Reflect.construct` may give the permission: the constructor unwinds, and the engine reads the
 * prototype of the target without running code.
 */
export function constructsApart(fn: any, target: any): boolean {
  if (typeof fn !== 'function' || inspectors?.isProxy(fn) === true || fn[itself] !== fn) return false
  if (fn.prototype === undefined && !isConstructor(fn)) return false
  if (target === fn) return true
  if (typeof target !== 'function' || inspectors === null || inspectors.isProxy(target)) return false
  return Object.getOwnPropertyDescriptor(target, 'prototype')?.get === undefined && isConstructor(target)
}

/*
 * `super(…)`. If the parent suspends inside it, `super` must not return: the engine would take the returned
 * value for `this`, and set the fields of the derived class on an unfinished object. So such a parent exits
 * by a throw, which the derived constructor catches. Later the parent's second form returns the object, and
 * `super` is called once more, of a class that only returns this object.
 *
 *   derived: super(1)          parent                       later, in the second form of derived
 *   frames.ok = 2 ------------> how = 2, suspends, saves     object = the result of the parent's second form
 *   catches `unwound` <-------- throws `unwound`             give(Derived, object), super(): sets `this` and the fields
 */

/** On a class: its constructor can exit by a throw when `super` calls it. */
export const builds: unique symbol = Symbol('heddle.builds')

/** Thrown by a constructor that suspends inside `super(…)`. */
export const unwound: unique symbol = Symbol('heddle.unwound')

/** How a constructor exits after it saved its frame: `how` is the permission that it got. */
export function left(how: number, _saved: undefined): object {
  // oxlint-disable-next-line no-throw-literal
  if (how === 2) throw unwound
  return frames
}

/** Gives the permission to the parent class of `made`: 2, it may unwind, by a throw. */
export function permitParent(ok: unknown, made: any, parent: any): void {
  frames.ok =
    ok && typeof parent === 'function' && parent[builds] === parent && Object.isExtensible(made) ? 2 : 0
}

export function parentOf(made: object): unknown {
  return Object.getPrototypeOf(made)
}
