/**
 * Estimates whether `JSON.stringify` of a value is brief, by its first few objects. It runs no code of the
 * program: it calls no getters, and does not read proxies.
 */
import { inspectors } from '../builtins/inspectors.ts'

/**
 * Up to this many objects, properties and characters are written in one call: some tenths of a millisecond.
 */
export const partsMost = 1_000
const characters_most = 64 * 1024

interface Waiting {
  readonly object: object
  next: Waiting | null
}

const describe = Object.getOwnPropertyDescriptor

/** True if the value is written quickly, or if only code of the program could show its size. */
export function isBriefJson(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || inspectors === null) return true
  return partsOf(value, null) !== 0
}

/**
 * The number of objects and properties of the value; 0 if there are too many, if reading it runs code, or if
 * it contains one of `outside`.
 */
export function partsOf(
  value: object,
  outside: ReadonlySet<object> | null,
  most: number = partsMost,
): number {
  const first: Waiting = { object: value, next: null }
  let last = first
  let parts = 0
  let characters = 0
  for (let at: Waiting | null = first; at !== null; at = at.next) {
    const { object } = at
    if (inspectors!.isProxy(object) || outside?.has(object)) return 0
    const isList = Array.isArray(object)
    const keys = isList ? null : Object.keys(object)
    const count = isList ? object.length : keys!.length
    parts += count + 1
    if (parts > most) return 0
    for (let index = 0; index < count; index++) {
      const found = describe(object, isList ? index : keys![index]!)
      if (found === undefined) continue
      const part: unknown = found.value
      if (typeof part === 'string') characters += part.length
      else if (typeof part === 'object' && part !== null) {
        last.next = { object: part, next: null }
        last = last.next
      } else if (part === undefined && found.get !== undefined) return 0
    }
    if (characters > characters_most) return 0
  }
  return parts
}
