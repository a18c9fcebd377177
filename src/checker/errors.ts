/** The check itself is wrong, not the code that it checks. The message says what to change. */
export class CheckError extends Error {
  override readonly name = 'CheckError'
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/**
 * The same error as an instance of this module's class, because the code under check may have thrown one of
 * another copy of this module. Undefined for any other error.
 */
export function asCheckError(error: unknown): CheckError | undefined {
  if (error instanceof CheckError) return error
  if (!(error instanceof Error) || error.name !== 'CheckError') return undefined
  return new CheckError((error as CheckError).code, error.message, { cause: error })
}
