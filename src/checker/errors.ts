/** The check itself is wrong, not the code under it. The message says what to change. */
export class CheckError extends Error {
  override readonly name = 'CheckError'
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
