/**
 * Whether `JSON.stringify` of a value is brief, as far as a look at its first few objects tells. Nothing of
 * the program runs for it: getters are not called, and neither proxies nor what is behind them are looked at.
 */
import { inspectors } from '../builtins/inspectors.ts'

/**
 * So many objects and properties, and characters of text, are written at once: some tenths of a millisecond.
 */
export const partsMost = 1_000
const characters_most = 64 * 1024

interface Waiting {
  readonly object: object
  next: Waiting | null
}

const describe = Object.getOwnPropertyDescriptor

/** True when the value is written quickly; also where that cannot be told without running code. */
export function isBriefJson(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || inspectors === null) return true
  return partsOf(value, null) !== 0
}

/**
 * How many objects and properties the value has; 0: too many, or what runs code when it is read, or one of
 * `outside`.
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
