import { imageFromBytes, imageToBytes } from '../payload/imagebytes.ts'
import { ImageError } from '../payload/imagekinds.ts'
import type { RunError } from './states.ts'

/**
 * Results and errors of runs, as bytes of the payload codec, which have a version (payload/imagebytes.ts).
 */
export function encodeResult(run: string, value: unknown): Uint8Array {
  return imageToBytes(value, `the result of run ${run}`)
}

/** Throws ImageError, which begins with `what`, if the bytes are not what was stored. */
export function decodeValue(bytes: Uint8Array, what: string): unknown {
  try {
    return imageFromBytes(bytes)
  } catch (error) {
    throw new ImageError(`${what} cannot be read: ${(error as Error).message}`, { cause: error })
  }
}

/** The error itself; null: it holds what cannot travel, and only its text is stored. */
export function encodeError(error: unknown): Uint8Array | null {
  try {
    return imageToBytes(error, 'error')
  } catch {
    return null
  }
}

export function errorText(error: unknown): RunError {
  if (!(error instanceof Error)) return { name: 'Error', message: textOf(error) }
  const { name, message, stack } = error
  const { code } = error as { code?: unknown }
  return {
    name: textOf(name),
    message: textOf(message),
    ...(typeof stack === 'string' && { stack: textOf(stack) }),
    ...(typeof code === 'string' && { code }),
  }
}

/** Each entry of a history has a copy: it is bounded. The whole error is in the outcome. */
const TEXT_MAX = 20_000

/** A value that was thrown may have no text: `Object.create(null)`. */
export function textOf(value: unknown): string {
  try {
    return String(value).slice(0, TEXT_MAX)
  } catch {
    return Object.prototype.toString.call(value)
  }
}

/** The error of a failed run: the object if its class is known here, else one with its texts. */
export function decodeError(outcome: Uint8Array | null, text: RunError | null): unknown {
  if (outcome !== null) {
    try {
      return imageFromBytes(outcome)
    } catch {
      // A class of a module that this process has not loaded: the text is enough.
    }
  }
  const { name = 'Error', message = 'the run has failed', stack, code } = text ?? {}
  return Object.assign(new Error(message), {
    name,
    ...(stack !== undefined && { stack }),
    ...(code !== undefined && { code }),
  })
}
