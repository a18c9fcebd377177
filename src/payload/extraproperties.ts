/**
 * The own properties of an object that its kind does not imply: what an image writes beside the slots of a
 * Map, an error, a view. `encode.ts` writes the rest. Runs no code of the object.
 *
 *   kind                           implied, so not listed
 *   -----------------------------  ------------------------------------------------------------------
 *   Map, Set, Date, ArrayBuffer    nothing
 *   RegExp                         a `lastIndex` that can be written
 *   error                          message, stack, cause, errors, name as a constructor sets them, and ordinary
 *                                  properties
 *   array, typed array, String     elements, `length`; for an array also ordinary properties
 *
 * To list the keys of a long array or typed array costs as much as to write it. So of these only symbols are
 * seen, unless its class is one of the program.
 */
import * as kinds from './kinds.ts'

/** Longer arrays and typed arrays are not searched for hidden properties. */
const SEARCHED_LENGTH_MAX = 64

const getOwn = Object.getOwnPropertyDescriptor
const none: readonly PropertyKey[] = []

/** `isOfClass`: the object has a prototype of its own. */
export function extraProperties(value: object, slot: number, isOfClass: boolean): readonly PropertyKey[] {
  switch (slot) {
    case kinds.MAP:
    case kinds.SET:
    case kinds.DATE:
    case kinds.ARRAY_BUFFER:
      return Reflect.ownKeys(value)
    case kinds.REGEXP:
      return Reflect.ownKeys(value).filter(
        key => key !== 'lastIndex' || getOwn(value, key)?.writable !== true,
      )
    case kinds.ERROR:
      return errorExtras(value)
    case kinds.ARRAY: {
      const { length } = value as unknown[]
      if (length > SEARCHED_LENGTH_MAX) return Object.getOwnPropertySymbols(value)
      const keys = Reflect.ownKeys(value)
      // A dense array of nothing but its elements and `length`.
      if (keys.length === length + 1 && getOwn(value, 'length')?.writable === true) return none
      return keys.filter(key => !isElement(key) && !isArrayProperty(value, key))
    }
    case kinds.VIEW: {
      const { length } = value as Uint8Array
      if (length === undefined) return Reflect.ownKeys(value)
      if (length > SEARCHED_LENGTH_MAX && !isOfClass) return Object.getOwnPropertySymbols(value)
      return Reflect.ownKeys(value).slice(length)
    }
    case kinds.BOXED:
      return typeof kinds.unbox(value) === 'string'
        ? Reflect.ownKeys(value).filter(key => key !== 'length' && !isElement(key))
        : Reflect.ownKeys(value)
    default:
      return none
  }
}

function isElement(key: PropertyKey): boolean {
  return typeof key === 'string' && String(Number(key) >>> 0) === key && key !== '4294967295'
}

/** True for `length`, and for a property that the array's other properties are written like. */
function isArrayProperty(value: object, key: PropertyKey): boolean {
  if (key === 'length') return getOwn(value, key)!.writable === true
  return typeof key === 'string' && isOrdinary(getOwn(value, key)!)
}

/** A value that can be written, listed and deleted: what an assignment makes. */
export function isOrdinary({ writable, enumerable, configurable }: PropertyDescriptor): boolean {
  return writable === true && enumerable === true && configurable === true
}

/** The flags of what the constructor of an error sets. */
function isHidden({ writable, enumerable, configurable }: PropertyDescriptor): boolean {
  return writable === true && enumerable === false && configurable === true
}

function errorExtras(error: object): PropertyKey[] {
  return Reflect.ownKeys(error).filter(key => {
    // Each engine makes it in its own way.
    if (key === 'stack') return false
    const property = getOwn(error, key)!
    switch (key) {
      case 'message':
      case 'name':
        return !isHidden(property) || typeof property.value !== 'string'
      case 'cause':
        return !isHidden(property)
      case 'errors':
      case 'error':
      case 'suppressed':
        return !isOrdinary(property) && !isHidden(property)
      default:
        return typeof key === 'symbol' || !isOrdinary(property)
    }
  })
}
