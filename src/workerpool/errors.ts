/** The rejection of a task whose worker died. */
export class TerminateError extends Error {
  constructor(message = 'worker terminated', cause?: unknown) {
    super(message, { cause })
  }
}

/** A thrown value for another thread: the properties that `JSON` preserves, as in workerpool. */
export function converted(error: any): Record<string, unknown> {
  if (typeof error !== 'object' || error === null) return { message: String(error) }
  try {
    const own = Object.getOwnPropertyNames(error).map(name => [name, error[name]])
    const plain = typeof error.toJSON === 'function' ? error : Object.fromEntries(own)
    return JSON.parse(JSON.stringify(plain))
  } catch {
    // A circular structure, or a getter that throws.
    return { message: String(error.message), stack: String(error.stack) }
  }
}

export function errorOf(properties: Record<string, unknown>): Error {
  return Object.assign(new Error(''), properties)
}
