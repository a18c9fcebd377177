import { CheckError } from '../errors.ts'
import { pending, siteName } from '../machine/pending.ts'

/**
 * The code of a thread did something that cannot be explored. It gets an error, which ends the check even if
 * the code catches it.
 */
export function refuse(what: string, instead: string): never {
  throw noteRefusal(what, instead)
}

/** The same where a throw would become the rejection of a promise that no code handles. */
export function noteRefusal(what: string, instead: string): CheckError {
  const error = new CheckError(
    'ERR_CHECK_UNINSTRUMENTED',
    `${what}, ${where()}: the checker cannot schedule around it. ${instead}`,
  )
  pending.refusal ??= error
  return error
}

/** The place of the running code, as exactly as it is known. */
export function where(): string {
  const thread = pending.current
  if (thread < 0) return 'in the set-up'
  const name = pending.names[thread] ?? `thread ${thread}`
  const line = callerOf(wholeStack())
  if (line !== undefined) return `in ${name} at ${line}`
  if (pending.place >= 0) return `in ${name} at ${siteName(pending.place)}`
  const site = pending.site[thread]
  return site < 0 ? `in ${name}, before its first step` : `in ${name}, after its step at ${siteName(site)}`
}

/**
 * The whole stack, down to the code of the check: the models of the language's functions are on top of it.
 */
function wholeStack(): string {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 100
  const { stack = '' } = new Error('where')
  Error.stackTraceLimit = stackTraceLimit
  return stack
}

/**
 * The folders whose stack frames do not belong to a check: the checker, its compiler and the coroutines that
 * both use.
 */
const own: readonly string[] = ['checker/', 'compiler/', 'coroutine/'].map(
  folder => new URL('../../', import.meta.url).pathname + folder,
)
const LANGUAGE = /node:|<anonymous>|\(native\)|\/node_modules\//

/** The first place in a stack that is not in the checker, its compiler or the language. */
function callerOf(stack: string): string | undefined {
  for (const line of stack.split('\n').slice(1)) {
    const found = /\(?((?:file:\/\/)?\/[^()]*?:\d+:\d+)\)?$/.exec(line.trim())
    if (found === null) continue
    const isProgram = /\.(check|test)\.[cm]?[jt]sx?[:?]/.test(line)
    if (!isProgram && (LANGUAGE.test(line) || own.some(folder => line.includes(folder)))) continue
    return found[1]!
      .replace(/^file:\/\//, '')
      .replace(/\?[^:]*/, '')
      .split('/')
      .slice(-1)[0]
  }
  return undefined
}
