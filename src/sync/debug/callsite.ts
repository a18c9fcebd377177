import { isStackLimitable } from '../../machine/core/stacklimit.ts'
import { ownFolder } from '../../machine/core/ownfolder.ts'

const ownPath: string = ownFolder.replace(/^file:\/\//, '')

const LINES_MAX = 8
/** Deep enough to pass the library's own frames. */
const DEPTH_MAX = 40
/** At the begin of a wait there are few such frames, and the trace must be cheap. */
const DEPTH_SHORT = 16

/** The frames of the program in the caller's stack, without those of this library and of the platform. */
export function callSite(): string {
  return siteOf(stackNow(DEPTH_MAX))
}

/** A short stack of the caller, unformatted; `siteOf` formats it if it is needed. */
export function shortStack(): Error {
  return stackNow(DEPTH_SHORT)
}

function stackNow(depth: number): Error {
  if (!isStackLimitable) return new Error('here')
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = depth
  const here = new Error('here')
  Error.stackTraceLimit = stackTraceLimit
  return here
}

/** The lines of the program in a stack; all lines if it has none of the program. */
export function siteOf({ stack = '' }: Error): string {
  const lines = stack.split('\n').slice(1)
  const users = lines.filter(line => !isOwn(line) && !/\bnode:|\(native\)|<anonymous>\)?$/.test(line))
  return (users.length > 0 ? users : lines)
    .slice(0, LINES_MAX)
    .map(line => line.trim())
    .join('\n')
}

function isOwn(line: string): boolean {
  // Tests are programs, although they are in the folders of the library.
  return (line.includes(ownFolder) || line.includes(ownPath)) && !/\.test\.[jt]s/.test(line)
}
