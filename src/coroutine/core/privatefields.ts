/**
 * The private fields of instances that move. Only code inside a class reads its private names, and only `new`
 * adds the fields to an object. So the compiler adds to a base class with such members:
 *
 *   a static block     gives this file functions that test, read and write the fields. Other classes get one
 *                      that reads, also of their static fields: what a module holds is found through them
 *   a last field       its value is a call of `born`
 *   the other fields   their values run no code while `isInstalling`
 *
 * `install` begins a `new` of the class: the engine makes the object and adds all fields. Then `born` throws,
 * with the object, before the constructor runs.
 */

export interface PrivateFields {
  readonly names: readonly string[]
  /** Whether the object has the fields of the class. */
  has(object: object): boolean
  read(object: object): unknown[]
  /** Null for a derived class: its instances do not move. */
  readonly write: ((object: object, values: readonly unknown[]) => void) | null
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
): void {
  byClass.set(cls, { names: namesIn(names), has, read, write })
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

/** A new object with the private fields of this class, all undefined, and with this prototype. */
export function install(cls: object, prototype: object): object {
  installing.on = true
  try {
    Reflect.construct(cls as new () => object, [])
  } catch (thrown) {
    if (!(thrown instanceof Born)) throw thrown
    const { object } = thrown
    for (const key of Reflect.ownKeys(object)) Reflect.deleteProperty(object, key)
    Object.setPrototypeOf(object, prototype)
    return object
  } finally {
    installing.on = false
  }
  throw new Error(`the class ${(cls as { name?: string }).name} is not compiled as movable`)
}
