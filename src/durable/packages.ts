/**
 * An optional package that cannot be loaded. `missing`: the error when it is not installed. A package that is
 * installed may lack one of its own.
 */
export function packageError(name: string, missing: string, cause: unknown): Error {
  const { code, message } = (cause ?? {}) as { readonly code?: unknown; readonly message?: unknown }
  const isAnother = code === 'ERR_MODULE_NOT_FOUND' && !String(message).includes(`'${name}'`)
  const text = isAnother
    ? `heddle/durable: the package '${name}' is installed and cannot be loaded: ${String(message)}; install that too`
    : missing
  return new Error(text, { cause })
}
