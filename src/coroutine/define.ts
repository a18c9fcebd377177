/** Elements of lists that the runtime makes: defined, not assigned, whatever a program has put on `Array.prototype`. */

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
