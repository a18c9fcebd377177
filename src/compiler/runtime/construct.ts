/** `new` of what unwinds: which object it gives when the constructor has been entered again. */
import { itself } from '../../coroutine/core/coroutine.ts'
import { frames, rest } from '../../coroutine/core/frames.ts'
import { inspectors } from './builtins/inspectors.ts'

function isObject(value: unknown): boolean {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

/** What `new` gives: what the constructor returned if that is an object, else the one that it had begun. */
export function built(begun: unknown, returned: unknown): unknown {
  return isObject(returned) ? returned : begun
}

/** What a constructor returns, for its caller: the same, by the rules of a class that extends none. */
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
 * The value of a field, which is worked out between `new` and the constructor: the permission is not meant
 * for it.
 */
export function shielded(value: () => unknown): unknown {
  const { ok } = frames
  frames.ok = 0
  const made = value()
  frames.ok = ok
  return made
}

/**
 * `new` of what may be no constructor: the engine would call it by the name of the variable that holds it.
 */
/** True for a function that has what most constructors have; any other is asked in another way. */
export function mayBuild(fn: unknown): boolean {
  return typeof fn === 'function' && (inspectors?.isProxy(fn) === true || Object.hasOwn(fn, 'prototype'))
}

export function refuseNew(fn: unknown, text: string): void {
  if (!isConstructor(fn)) throw new TypeError(`${text} is not a constructor`)
}

/** The function, which is to be constructed. */
export function constructible(fn: unknown, text: string): unknown {
  if (!mayBuild(fn)) refuseNew(fn, text)
  return fn
}

const constructing = Reflect.construct

/** `new` of what does not unwind. */
export function make(fn: any, args: readonly unknown[], text: string): unknown {
  try {
    return constructing(fn, args)
  } catch (error) {
    refuseNew(fn, text)
    throw error
  }
}

export function isConstructor(fn: any): boolean {
  try {
    const asked = new Proxy(fn, { construct: () => frames })
    return new asked() === frames
  } catch {
    return false
  }
}

/** `new` in a generator: of a constructor that unwinds, or of any other. */
export function* construct(
  fn: any,
  args: readonly unknown[],
  target: any = fn,
): Generator<number, unknown, unknown> {
  const begun = begin(fn, args, target)
  return frames.u === 0 ? begun : built(begun, yield* rest())
}

/** Runs a constructor, with the permission where it unwinds. What is no constructor has not taken it. */
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
 * True when `Reflect.construct` may give the permission: to a constructor that unwinds, where the engine asks
 * the target for its prototype without running code.
 */
export function constructsApart(fn: any, target: any): boolean {
  if (typeof fn !== 'function' || inspectors?.isProxy(fn) === true || fn[itself] !== fn) return false
  if (fn.prototype === undefined && !isConstructor(fn)) return false
  if (target === fn) return true
  if (typeof target !== 'function' || inspectors === null || inspectors.isProxy(target)) return false
  return Object.getOwnPropertyDescriptor(target, 'prototype')?.get === undefined && isConstructor(target)
}

/*
 * `super(…)`. When the parent stops inside of it, it must not return: the engine would take what it returns
 * for `this`, and set the fields of the derived class on an object that is not finished. So such a parent
 * leaves by a throw, which the derived constructor catches where it called. Later the parent's other form
 * returns the object, and `super` is called once more: of a class that does nothing but give it.
 *
 *   derived: super(1)          parent                       later, in the form of derived that goes on
 *   frames.ok = 2 ------------> how = 2, stops, saves        object = what the parent's form returned
 *   catches `unwound` <-------- throws `unwound`             give(Derived, object), super(): sets `this` and the fields
 */

/** On a class: its constructor knows how to leave when it is called by `super`. */
export const builds: unique symbol = Symbol('heddle.builds')

/** What a constructor throws that stops while `super` waits for it. */
export const unwound: unique symbol = Symbol('heddle.unwound')

/**
 * What a constructor leaves by when it has saved its frame: `how` is the permission that it was called with.
 */
export function left(how: number, _saved: undefined): object {
  // oxlint-disable-next-line no-throw-literal
  if (how === 2) throw unwound
  return frames
}

/** The permission for the class that `made` extends: 2, it may unwind, by a throw. */
export function permitParent(ok: unknown, made: any, parent: any): void {
  frames.ok =
    ok && typeof parent === 'function' && parent[builds] === parent && Object.isExtensible(made) ? 2 : 0
}

export function parentOf(made: object): unknown {
  return Object.getPrototypeOf(made)
}

/** Has the next `super()` of the class `made` give this object. No code of others runs until it has. */
export function give(made: object, object: object): void {
  const parent = Object.getPrototypeOf(made) as object | null
  const giver = new Proxy(Object, {
    construct() {
      Object.setPrototypeOf(made, parent)
      return object
    },
  })
  Object.setPrototypeOf(made, giver)
}
