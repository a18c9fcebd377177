/** The check itself is wrong, not the code under it. The message says what to change. */
export class CheckError extends Error {
  override readonly name = 'CheckError'
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/**
 * The same error as one of this module's class, for the code under check may have met another copy of it;
 * else undefined.
 */
export function asCheckError(error: unknown): CheckError | undefined {
  if (error instanceof CheckError) return error
  if (!(error instanceof Error) || error.name !== 'CheckError') return undefined
  return new CheckError((error as CheckError).code, error.message, { cause: error })
}
