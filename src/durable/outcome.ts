import { imageFromBytes, imageToBytes } from '../payload/imagebytes.ts'
import type { RunError } from './states.ts'

/**
 * Results and errors of runs, as bytes of the payload codec, which have a version (payload/imagebytes.ts).
 */
export function encodeResult(run: string, value: unknown): Uint8Array {
  return imageToBytes(value, `the result of run ${run}`)
}

export function decodeValue(bytes: Uint8Array): unknown {
  return imageFromBytes(bytes)
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
  if (!(error instanceof Error)) return { name: 'Error', message: String(error) }
  const { name, message, stack } = error
  const { code } = error as { code?: unknown }
  return { name, message, ...(stack !== undefined && { stack }), ...(typeof code === 'string' && { code }) }
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
