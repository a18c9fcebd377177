/**
 * The engine's messages for a value that cannot be spread or destructured, with the name that it has in the
 * source.
 */
import { inspectors } from './builtins/inspectors.ts'

/** True if it is certain, without running code of the program, that a value is not iterable. */
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
 * Returns an iterable value; throws the text for any other. A text that begins with dots names a spread at
 * the end of a call, for which the engine has another message.
 */
export function listed(value: unknown, text: string): unknown {
  if (Array.isArray(value) || !hasNoIterator(value)) return value
  if (!text.startsWith('...')) throw new TypeError(text)
  if (value !== null && value !== undefined) {
    throw new TypeError('Spread syntax requires ...iterable[Symbol.iterator] to be a function')
  }
  throw new TypeError(`${text.slice(3)} is not iterable (cannot read property ${String(value)})`)
}

/** Returns a value that can be destructured as an object; throws for any other. */
export function unpacked(value: unknown, text: string): unknown {
  if (value === null || value === undefined) throw new TypeError(`${text}${String(value)}.`)
  return value
}
