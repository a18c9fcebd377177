/** The class and name of an error. */
import * as format from './format.ts'

const hasOwn = Object.hasOwn

/** The nearest built-in class of an error, by number. */
export function errorNumber(error: Error): number {
  for (let at: object | null = error; at !== null; at = Object.getPrototypeOf(at) as object | null) {
    if (!hasOwn(at, 'constructor')) continue
    const number = format.errorClasses.indexOf((at as { constructor: never }).constructor)
    if (number >= 0) return number
  }
  // An error of another realm: its class is found by name.
  return Math.max(
    0,
    format.errorClasses.findIndex(Class => Class.name === error.name),
  )
}

export function descriptorValue(error: Error, key: string): unknown {
  return Object.getOwnPropertyDescriptor(error, key)?.value as unknown
}

/** The name of an error if it differs from the name of its built-in class: its own, or that of its class. */
export function ownName(error: Error): string | undefined {
  const name: unknown = error.name
  return typeof name === 'string' && name !== format.errorClasses[errorNumber(error)].name ? name : undefined
}
