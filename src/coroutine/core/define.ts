/**
 * Elements of lists that the runtime makes are defined, not assigned: a program may have changed
 * `Array.prototype`.
 */

const arrayPrototype: object = Array.prototype

/** Writes an element of a list that has no holes, or adds one at its end. */
export function put<T>(list: T[], index: number, value: T): void {
  if (index < list.length) list[index] = value
  else define(list, index, value)
}

/** `CreateDataPropertyOrThrow`. */
export function define(target: any, index: number, value: unknown): void {
  if (Object.getPrototypeOf(target) === arrayPrototype && !(index in target) && Object.isExtensible(target)) {
    target[index] = value
  } else {
    Object.defineProperty(target, index, { value, writable: true, enumerable: true, configurable: true })
  }
}

/** A part of a list. `slice` would call the program's `Symbol.species`. */
export function part<T>(list: readonly T[], from: number, to: number): T[] {
  const made: T[] = []
  for (let at = from; at < to; at++) define(made, at - from, list[at])
  return made
}

/** Takes one element out of a list. */
export function removeAt(list: unknown[], index: number): void {
  for (let at = index + 1; at < list.length; at++) list[at - 1] = list[at]
  list.length--
}
