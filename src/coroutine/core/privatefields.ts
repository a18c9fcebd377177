/**
 * The private fields of instances that move. Only code inside a class reads its private names, and only `new`
 * adds the fields to an object. So the compiler adds to a class with such members:
 *
 *   a static block        gives this file functions that test, read and write the fields. A class that is not
 *                         of the module's top level gets one that reads, also of its static fields: what a
 *                         module holds is found through them
 *   a last field          its value is a call of `born`
 *   the other fields      their values run no code while `isInstalling`
 *   a derived constructor calls `super()` first while `isInstalling`
 *
 * `install` begins a `new` of each class, the base class first. The engine makes the object of a base class;
 * a derived class gets the object from its `super()`. The engine adds all fields. Then `born` throws, with
 * the object, before the constructor goes on.
 */
import { give } from './give.ts'

export interface PrivateFields {
  readonly names: readonly string[]
  /** Whether the object has the fields of the class. */
  has(object: object): boolean
  read(object: object): unknown[]
  /** Null: its instances do not move. */
  readonly write: ((object: object, values: readonly unknown[]) => void) | null
  readonly isDerived: boolean
}

/** The private fields of the class itself. A read of one throws while the class is being made. */
export interface StaticFields {
  readonly names: readonly string[]
  readonly reads: readonly (() => unknown)[]
}

const byClass = new WeakMap<object, PrivateFields>()
const staticByClass = new WeakMap<object, StaticFields>()

/** Called in a static block of the class. `names`: separated by commas. */
export function privateFields(
  cls: object,
  names: string,
  has: PrivateFields['has'],
  read: PrivateFields['read'],
  write: PrivateFields['write'] = null,
  isDerived: 0 | 1 = 0,
): void {
  byClass.set(cls, { names: namesIn(names), has, read, write, isDerived: isDerived === 1 })
}

const without = new WeakSet<object>()

/** Called in a static block: the text of the class has a `#name`, and its instances no private member. */
export function withoutPrivates(cls: object): void {
  without.add(cls)
}

/** Whether instances may have private members, for all that the text of the class shows. */
export function mayHavePrivates(cls: object): boolean {
  return !without.has(cls) && /[^\w$]#[\w$]/.test(Function.prototype.toString.call(cls))
}

/** The same for the static ones. */
export function staticFields(cls: object, names: string, reads: readonly (() => unknown)[]): void {
  staticByClass.set(cls, { names: namesIn(names), reads })
}

function namesIn(names: string): string[] {
  return names === '' ? [] : names.split(',')
}

/** The private fields that instances of the class have, by the class itself. */
export function privateFieldsOf(cls: object): PrivateFields | undefined {
  return byClass.get(cls)
}

export function staticFieldsOf(cls: object): StaticFields | undefined {
  return staticByClass.get(cls)
}

/** Whether a `new` only adds fields. Compiled field values read it. */
export const installing: { on: boolean } = { on: false }

class Born {
  readonly object: object
  constructor(object: object) {
    this.object = object
  }
}

/** The value of the last field. */
export function born(object: object): void {
  if (!installing.on) return
  installing.on = false
  throw new Born(object)
}

/** A new object with the private fields of these classes, all undefined, and with this prototype. */
export function install(classes: readonly object[], prototype: object): object {
  let object: object = {}
  for (const cls of classes)
    object = byClass.get(cls)?.isDerived === true ? extended(cls, object) : begun(cls)
  for (const key of Reflect.ownKeys(object)) Reflect.deleteProperty(object, key)
  Object.setPrototypeOf(object, prototype)
  return object
}

/** Adds the fields of a derived class to the object. */
function extended(cls: object, object: object): object {
  const parent = Object.getPrototypeOf(cls) as object | null
  try {
    give(cls, object)
    return begun(cls)
  } finally {
    if (Object.getPrototypeOf(cls) !== parent) Object.setPrototypeOf(cls, parent)
  }
}

/** The object that `new` begins. */
function begun(cls: object): object {
  installing.on = true
  try {
    Reflect.construct(cls as new () => object, [])
  } catch (thrown) {
    if (!(thrown instanceof Born)) throw thrown
    return thrown.object
  } finally {
    installing.on = false
  }
  throw new Error(`the class ${(cls as { name?: string }).name} is not compiled as movable`)
}
