import { isStackLimitable } from '../../machine/core/stacklimit.ts'
import { ownFolder } from '../../machine/core/ownfolder.ts'

const ownPath: string = ownFolder.replace(/^file:\/\//, '')

const LINES_MAX = 8
/** The library's own frames come first. */
const DEPTH_MAX = 40
/** Where a wait begins there are few of them, and it is not to take long. */
const DEPTH_SHORT = 16

/** The caller's stack, without the frames of this library and of the platform: where the program called. */
export function callSite(): string {
  return siteOf(stackNow(DEPTH_MAX))
}

/** The caller's stack as it is, cut short: what it says is worked out by `siteOf`, if anyone asks. */
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

/** The lines of the program in a stack; all of them if there is none. */
export function siteOf({ stack = '' }: Error): string {
  const lines = stack.split('\n').slice(1)
  const users = lines.filter(line => !isOwn(line) && !/\bnode:|\(native\)|<anonymous>\)?$/.test(line))
  return (users.length > 0 ? users : lines)
    .slice(0, LINES_MAX)
    .map(line => line.trim())
    .join('\n')
}

function isOwn(line: string): boolean {
  // Tests are programs, though they stand beside the library.
  return (line.includes(ownFolder) || line.includes(ownPath)) && !/\.test\.[jt]s/.test(line)
}
