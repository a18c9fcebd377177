/**
 * What the engine says of a thing that is spread or taken apart and cannot be: by the name that it has in the
 * source.
 */
import { inspectors } from './builtins/inspectors.ts'

/** True where it is certain, without running code of the program, that a value has no iterator. */
function hasNoIterator(value: unknown): boolean {
  if (value === null || value === undefined) return true
  if (typeof value === 'string' || inspectors === null) return false
  for (let holder: object | null = Object(value); holder !== null; holder = Object.getPrototypeOf(holder)) {
    if (inspectors.isProxy(holder)) return false
    const found = Object.getOwnPropertyDescriptor(holder, Symbol.iterator)
    if (found !== undefined) return 'value' in found && typeof found.value !== 'function'
  }
  return true
}

/**
 * The value, which is to be a list. Any other is refused with the text. A text that begins with dots names
 * what is spread into the end of a call, of which the engine speaks in another way.
 */
export function listed(value: unknown, text: string): unknown {
  if (Array.isArray(value) || !hasNoIterator(value)) return value
  if (!text.startsWith('...')) throw new TypeError(text)
  if (value !== null && value !== undefined) {
    throw new TypeError('Spread syntax requires ...iterable[Symbol.iterator] to be a function')
  }
  throw new TypeError(`${text.slice(3)} is not iterable (cannot read property ${String(value)})`)
}

/** The value, which is to be taken apart as an object. */
export function unpacked(value: unknown, text: string): unknown {
  if (value === null || value === undefined) throw new TypeError(`${text}${String(value)}.`)
  return value
}
