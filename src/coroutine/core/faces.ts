/**
 * Which form of a blocking call the running code may use.
 *
 * A blocking call has two forms. Compiled code calls the twin. A generator calls the function itself, the
 * face, and runs the returned object with `yield*`. Any other code cannot be suspended: there the face would
 * return an object that nothing runs, and the call would do nothing.
 *
 *   the coroutine runs             | a face of a function (sleep, wait) | a face of a method (lock, receive)
 *   -------------------------------+------------------------------------+-----------------------------------
 *   [1] a compiled function        | throws                             | throws
 *   [2] a plain function           | must be run, or be what it returns | the same; a call that locks throws
 *   [3] a generator                | must be run                        | must be run, if it has to wait
 *   [4] a twin of a blocking call  | as [3]: the twin runs it           | as [3]
 *
 * "Must be run": a coroutine that returns while one of its faces was never run ends with an error instead.
 */
import { CoroutineError } from './errors.ts'
import { here } from '../../thread/context.ts'

export const NO_COROUTINE = 0
export const COMPILED = 1
export const PLAIN = 2
export const GENERATOR = 3
export type CodeKind = typeof NO_COROUTINE | typeof COMPILED | typeof PLAIN | typeof GENERATOR

/** On the twin of a blocking call: its function is a face. */
export const blocks: unique symbol = Symbol('heddle.blocks')

/** The part of a coroutine that this file needs. */
export interface FaceUser {
  kind: CodeKind
  /** Objects that its faces returned and that it has not run, with the names of the calls; null: none. */
  unrun: Map<object, string> | null
}

/** The most objects that may wait to be run: more are calls that lack `yield*`. */
const UNRUN_MAX = 1000

let user: FaceUser | null = null
let kind: CodeKind = NO_COROUTINE
/** The object that the last face returned, until it is run. */
let last: object | null = null
let lastName = ''

/** True where the face of a method needs no further check. */
export function facesOpen(): boolean {
  return kind === GENERATOR
}

/** Part of a switch: this coroutine runs from here on. Returns the one that ran before. */
export function swapFaceUser(next: FaceUser | null): FaceUser | null {
  if (last !== null) keepLast()
  const before = user
  user = next
  kind = next === null || here.runner === null ? NO_COROUTINE : next.kind
  return before
}

/** Sets the kind of the running coroutine. */
export function setCodeKind(next: CodeKind): void {
  user!.kind = next
  if (kind !== NO_COROUTINE) kind = next
}

/**
 * The twin of a blocking call is about to call the face. Returns the argument for `closeFaces`.
 */
export function openFaces(): CodeKind {
  const before = kind
  if (here.runner !== null) kind = GENERATOR
  return before
}

export function closeFaces(before: CodeKind): void {
  kind = before
}

/** Calls a face inside another blocking call, which runs the returned object. */
export function inside<T>(face: () => T): T {
  const before = openFaces()
  const made = face()
  closeFaces(before)
  return made
}

/** A compiled function that was called as plain code calls a face: that throws in every coroutine. */
export function plainFace(fn: (...args: any[]) => unknown, self: unknown, args: unknown[]): unknown {
  const before = kind
  if (kind !== NO_COROUTINE) kind = COMPILED
  try {
    return Reflect.apply(fn, self, args)
  } finally {
    kind = before
  }
}

/** First in the face of a function: throws where nothing could run the returned object. */
export function checkFace(name: string): void {
  if (kind === COMPILED) throw cannotSuspend(name)
}

/**
 * A plain function may return the object of a method, as in `() => channel.receive()`, but it must not
 * continue without its lock.
 */
const takesLock = /^(?:lock|acquire|upgrade)/

/** First in the face of a method, unless `facesOpen`. */
export function checkMethodFace(name: string): void {
  if (kind === COMPILED || (kind === PLAIN && takesLock.test(name))) throw cannotSuspend(name)
}

/** Last in a face: registers and returns the object that the caller must run. */
export function toRun<T extends object>(name: string, made: T): T {
  if (user === null) return made
  if (last !== null) keepLast()
  last = made
  lastName = name
  if (user.unrun !== null && user.unrun.size >= UNRUN_MAX) throw neverRun(user)
  return made
}

function keepLast(): void {
  const kept = last!
  last = null
  if (user === null) return
  user.unrun ??= new Map()
  user.unrun.set(kept, lastName)
}

/** The object of a face is being run. */
export function ran(made: object): void {
  if (last === made) last = null
  else if (user !== null && user.unrun !== null) user.unrun.delete(made)
}

/** Marks the object of a face that did not have to wait. */
export const finishedFace: unique symbol = Symbol('heddle.finishedFace')

/** Whether the value that a plain function returned is the object of a face that nothing has run. */
export function isUnrun(made: unknown): made is Iterable<number, any, unknown> {
  if (last !== null && last === made) return true
  return typeof made === 'object' && made !== null && finishedFace in made
}

/** Runs the object of a face as a generator. */
export function runFace(made: Iterable<number, any, unknown>): Generator<number, any, unknown> {
  ran(made)
  return through(made)
}

function* through(made: Iterable<number, any, unknown>): Generator<number, any, unknown> {
  return yield* made
}

/** The running coroutine has returned: the error that it ends with if an object was not run, or null. */
export function unrunError(): CoroutineError | null {
  if (last !== null) keepLast()
  const ending = user
  if (ending === null || ending.unrun === null) return null
  const error = ending.unrun.size === 0 ? null : neverRun(ending)
  ending.unrun = null
  return error
}

function neverRun({ unrun, kind: ending }: FaceUser): CoroutineError {
  const [name] = unrun!.values()
  const more = unrun!.size > 1 ? ` (and ${unrun!.size - 1} more such calls)` : ''
  const why =
    ending === GENERATOR
      ? `it stands without yield*, or in a function that the generator calls. Write yield* ${name}() in the generator itself, or begin that function with 'use task' and call it from one that does`
      : `the function is not compiled, so it cannot be suspended. Begin it with 'use task' and load it through heddle/register or the plugin, or make it a generator that says yield* ${name}()`
  return new CoroutineError(
    'ERR_HEDDLE_CANNOT_SUSPEND',
    `${name}() was called and has not waited${more}: ${why}`,
  )
}

/** How many lines of the stack are searched for the caller that cannot be suspended. */
const LINES = 30

/** The error of a face that was called where nothing can be suspended; `name`: of the call. */
function cannotSuspend(name: string): CoroutineError {
  const limited = Error as { stackTraceLimit?: number }
  const before = limited.stackTraceLimit
  limited.stackTraceLimit = LINES
  const error = new CoroutineError('ERR_HEDDLE_CANNOT_SUSPEND', `${name}() cannot suspend here`)
  if (before !== undefined) limited.stackTraceLimit = before
  error.message = `${name}() cannot suspend the task here: ${obstacle(callersOf(error.stack ?? '', name))}`
  return error
}

/** The name that the stack or the compiler gives to a function without a name. */
const ourName = /^(?:async )?(?:[^ (]*\.)?(?:\$h_\w+|(?:\$|_\$|\$_)\d+|<anonymous>) /

/** The stack from the caller of the face outwards. */
function callersOf(stack: string, name: string): string[] {
  const lines = stack.split('\n').filter(line => /^\s+at /.test(line))
  const face = lines.findIndex(
    (line, at) => at >= 2 && !isFace(line, name) && !/ (blockingCall|plainFace|other\d?) /.test(line),
  )
  return (face < 0 ? [] : lines.slice(face)).map(line =>
    line.trim().slice(3).replace(ourName, 'without a name '),
  )
}

function isFace(line: string, name: string): boolean {
  const called = /^\s+at (?:async )?(?:[^ (]*\.)?([^ .(]+) /.exec(line)?.[1]
  return called === name || called === name.split('.').at(-1) || called === 'startSleep' || called === 'apply'
}

const builtIn = /^(?:new )?([A-Z]\w*(?:\.[\w[\]]+)+|[A-Z]\w+) (?:\[as \w+\] )?\((?:<anonymous>|native)\)$/

/** Names the function between the task and the call, as far as the stack shows it, and the fix. */
function obstacle(callers: string[]): string {
  const [first = 'its caller', second] = callers
  for (const [at, line] of callers.entries()) {
    if (/ resumeInnermost|beginCoroutine/.test(line)) break
    const native = builtIn.exec(line)
    if (native !== null && !/^(Reflect|Generator)\./.test(native[1])) {
      const callback = at === 0 ? 'it' : `the function ${callers[at - 1]}`
      return `${callback} is called by the built-in ${native[1]}, which runs to its end. Collect what it needs first, and block in a loop of a 'use task' function`
    }
    if (/<instance_members_initializer>|<static_initializer>/.test(line)) {
      return `it stands in the value of a field or in a static block (${line}), which cannot be suspended. Block in a method`
    }
    if (/^(get|set) |\[as get |\[as set /.test(line)) {
      return `it is called by the accessor ${line}, which is not resumable here. Block in a method`
    }
    if (line.startsWith('new ')) {
      return `it is called by the constructor ${line}, which is not resumable here. Block in a method, or in a function that makes the object`
    }
  }
  const called = second === undefined ? '' : `, called by ${second}`
  return `it is called by ${first}${called}, and one of them is not compiled, or is called as plain code. Begin them with 'use task' (or select their package with --compile), and call them from functions that are`
}
