/**
 * Thrown when a kernel invariant does not hold: always a bug in heddle or in code that writes to its arena.
 */
export class InvariantError extends Error {
  override readonly name = 'InvariantError'
}

/**
 * A kernel invariant. These stay on in production: a scheduler that goes on after one fails corrupts
 * memory that other CPUs trust. Pass a constant message; the hot path must not build strings.
 */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) fail(message)
}

export function fail(message: string): never {
  throw new InvariantError(message)
}
