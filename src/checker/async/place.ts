import { messageOf } from '../report/failure.ts'

/**
 * The first place of a stack that belongs to the program, not to the checker or Node. `check`: the file of
 * the check. It is skipped if the stack has another file, because the place in the program tells more.
 */
function placeOf(stack: string, check?: string): Place | undefined {
  let first: Place | undefined
  for (const line of stack.split('\n').slice(1)) {
    const found = /\(?((?:file:\/\/)?\/[^()]*?):(\d+):(\d+)\)?$/.exec(line.trim())
    if (found === null || line.includes('node:') || OWN.test(found[1])) continue
    const file = found[1].replace(/^file:\/\//, '').replace(/\?.*$/, '')
    const place = { file, line: Number(found[2]), column: Number(found[3]) }
    if (file !== check) return place
    first ??= place
  }
  return first
}

export interface Place {
  readonly file: string
  readonly line: number
  readonly column: number
}

const OWN =
  /\/(?:src|dist)\/(?:checker|compiler|coroutine)\/(?!.*(?:\.check\.|\.test\.|\/programs\/))|\/node_modules\//

const FRAMES_MAX = 60

/** The place of the caller, outside of the file of the check if possible. */
export function here(check?: string): Place | undefined {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = FRAMES_MAX
  try {
    return placeOf(new Error('here').stack ?? '', check)
  } finally {
    Error.stackTraceLimit = limit
  }
}

/** The message of an error, and the place of the program that threw it. */
export function messageWithPlace(error: unknown): string {
  const message = messageOf(error)
  const place = error instanceof Error && typeof error.stack === 'string' ? placeOf(error.stack) : undefined
  return place === undefined ? message : `${message} (${written(place)})`
}

/** "at store.ts:12:5", for a sentence. */
export function written(place: Place | undefined): string {
  return place === undefined
    ? 'at an unknown place'
    : `at ${place.file.slice(place.file.lastIndexOf('/') + 1)}:${place.line}:${place.column}`
}
