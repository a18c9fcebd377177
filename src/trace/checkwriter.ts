import { checkOptions } from '../coroutine/core/knownoptions.ts'

/** Throws unless the arguments of a writer are valid: a function, and options with a `pid` at most. */
export function checkWriter(call: string, write: unknown, options: object): void {
  checkOptions(`${call}(write, options)`, options, { pid: 'number' })
  if (typeof write === 'function') return
  throw new TypeError(`${call}(write): ${String(write)} is not a function; give one that takes the pieces`)
}
