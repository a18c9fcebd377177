/** `new` of what unwinds: which object it gives when the constructor has been entered again. */
import { itself } from '../../coroutine/coroutine.ts'
import { frames, rest } from '../../coroutine/frames.ts'

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

/** The value of a field, which is worked out between `new` and the constructor: the permission is not meant for it. */
export function shielded(value: () => unknown): unknown {
  const { ok } = frames
  frames.ok = 0
  const made = value()
  frames.ok = ok
  return made
}

/** `new` of what is no function. */
export function refuseNew(text: string): never {
  throw new TypeError(`${text} is not a constructor`)
}

const constructing = Reflect.construct

/** `new` of what does not unwind. */
export function make(fn: any, args: readonly unknown[], text: string): unknown {
  if (typeof fn !== 'function') return refuseNew(text)
  try {
    return constructing(fn, args)
  } catch (error) {
    if (!isConstructor(fn)) refuseNew(text)
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

/** `new` in a generator: of a constructor that unwinds, or of any other. */
export function* construct(fn: any, args: readonly unknown[]): Generator<number, unknown, unknown> {
  if (fn[itself] === fn) frames.ok = 1
  const begun: unknown = constructing(fn, args)
  return frames.u === 0 ? begun : built(begun, yield* rest())
}

/*
 * `super(…)`. When the parent stops inside of it, it must not return: the engine would take what it returns for `this`, and
 * set the fields of the derived class on an object that is not finished. So such a parent leaves by a throw, which the derived
 * constructor catches where it called. Later the parent's other form returns the object, and `super` is called once more: of
 * a class that does nothing but give it.
 *
 *   derived: super(1)          parent                       later, in the form of derived that goes on
 *   frames.ok = 2 ------------> how = 2, stops, saves        object = what the parent's form returned
 *   catches `unwound` <-------- throws `unwound`             give(Derived, object), super(): sets `this` and the fields
 */

/** On a class: its constructor knows how to leave when it is called by `super`. */
export const builds: unique symbol = Symbol('heddle.builds')

/** What a constructor throws that stops while `super` waits for it. */
export const unwound: unique symbol = Symbol('heddle.unwound')

/** What a constructor leaves by when it has saved its frame: `how` is the permission that it was called with. */
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
