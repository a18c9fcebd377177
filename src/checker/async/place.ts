/** The first place of a stack that is the program's own: not the checker's, not Node's. */
export function placeOf(stack: string): Place | undefined {
  for (const line of stack.split('\n').slice(1)) {
    const found = /\(?((?:file:\/\/)?\/[^()]*?):(\d+):(\d+)\)?$/.exec(line.trim())
    if (found === null || line.includes('node:') || OWN.test(found[1])) continue
    const file = found[1].replace(/^file:\/\//, '').replace(/\?.*$/, '')
    return { file, line: Number(found[2]), column: Number(found[3]) }
  }
  return undefined
}

export interface Place {
  readonly file: string
  readonly line: number
  readonly column: number
}

const OWN =
  /\/(?:src|dist)\/(?:checker|compiler|coroutine)\/(?!.*(?:\.check\.|\.test\.|\/programs\/))|\/node_modules\//

const FRAMES_MAX = 60

/** Where the code stands that calls this. */
export function here(): Place | undefined {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = FRAMES_MAX
  try {
    return placeOf(new Error('here').stack ?? '')
  } finally {
    Error.stackTraceLimit = limit
  }
}

/** "store.ts:12:5", for a sentence. */
export function written(place: Place | undefined): string {
  return place === undefined
    ? 'at an unknown place'
    : `at ${place.file.slice(place.file.lastIndexOf('/') + 1)}:${place.line}:${place.column}`
}
