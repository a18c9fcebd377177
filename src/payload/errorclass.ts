/** What an error is, beside what it carries. */
import * as format from './format.ts'

const hasOwn = Object.hasOwn

/** The nearest built-in class of an error, by number. */
export function errorNumber(error: Error): number {
  for (let at: object | null = error; at !== null; at = Object.getPrototypeOf(at) as object | null) {
    if (!hasOwn(at, 'constructor')) continue
    const number = format.errorClasses.indexOf((at as { constructor: never }).constructor)
    if (number >= 0) return number
  }
  // Of another realm: by the name that it has there.
  return Math.max(
    0,
    format.errorClasses.findIndex(Class => Class.name === error.name),
  )
}

export function descriptorValue(error: Error, key: string): unknown {
  return Object.getOwnPropertyDescriptor(error, key)?.value as unknown
}

/** The name of an error where it is not the one of its built-in class: its own, or that of its class. */
export function ownName(error: Error): string | undefined {
  const name: unknown = error.name
  return typeof name === 'string' && name !== format.errorClasses[errorNumber(error)].name ? name : undefined
}
