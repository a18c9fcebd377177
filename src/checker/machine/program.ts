import { type Twin, twinOf } from '../../coroutine/core/coroutine.ts'
import { inspectors } from '../../compiler/runtime/builtins/inspectors.ts'
import { isThenable } from '../instrument/foreign.ts'
import type { Always } from '../spec/always.ts'
import { CheckError } from '../errors.ts'

/** A thread of a check: an instrumented function, or a generator function in the instrumented form. */
export type Body = (() => unknown) | (() => Generator<number, unknown, unknown>)

/** The program of a check, which its set-up returns. */
export interface Program {
  /** The bodies of the virtual threads. The keys of an object are their names. */
  readonly threads: readonly Body[] | Readonly<Record<string, Body>>
  /** Runs without steps when all threads have ended. Throws if the outcome is wrong; its result names it. */
  readonly final?: (outcome: Outcome) => unknown
  /** With crash points: a thread that starts when another has died. */
  readonly recover?: (dead: number) => unknown
  /** A condition that must hold at every step. */
  readonly always?: Always
}

/** The argument of the final assertion. */
export interface Outcome {
  readonly crashed: readonly number[]
  /** The result of each thread. */
  readonly results: readonly unknown[]
}

export type Setup = () => Program

const parts: ReadonlySet<string> = new Set(['threads', 'final', 'recover', 'always'])

/** The bodies of the threads of a program. Throws a CheckError when the program is invalid. */
export function bodiesOf(program: Program): readonly Body[] {
  if (typeof program !== 'object' || program === null || typeof program.threads !== 'object') {
    throw new CheckError(
      'ERR_CHECK_SETUP',
      'the set-up must return `{ threads: [body, body, …], final }`: the bodies of the virtual threads, and optionally a final assertion',
    )
  }
  for (const key of Object.keys(program)) {
    if (parts.has(key)) continue
    throw new CheckError(
      'ERR_CHECK_SETUP',
      `the set-up returns \`${key}\`, which means nothing here; there are ${[...parts].join(', ')}`,
    )
  }
  for (const name of ['final', 'recover'] as const) {
    if (program[name] !== undefined && typeof program[name] !== 'function')
      throw new CheckError(
        'ERR_CHECK_SETUP',
        `\`${name}\` is ${textOf(program[name])}; it must be a function`,
      )
  }
  return Array.isArray(program.threads) ? Array.from(program.threads as Body[]) : namedBodies(program.threads)
}

/** Throws where a body would be left out: under a symbol, in a prototype, not enumerable, in a Map. */
function namedBodies(threads: object): readonly Body[] {
  const prototype = Object.getPrototypeOf(threads) as object | null
  const names = Object.keys(threads)
  const other = Reflect.ownKeys(threads).find(key => typeof key === 'symbol' || !names.includes(key))
  if (other === undefined && (prototype === null || Object.getPrototypeOf(prototype) === null))
    return Object.values(threads)
  throw new CheckError(
    'ERR_CHECK_SETUP',
    `\`threads\` ${other === undefined ? 'has a prototype of its own' : `has ${String(other)}, which is not an enumerable property with a name`}, so a body would never run; return an array, or a plain object whose keys name the bodies`,
  )
}

/** Throws where the result is a function or a generator, or has a `then` of its own: its code never runs. */
export function requireEnded(what: string, result: unknown): void {
  if (typeof result === 'function') {
    throw new CheckError(
      'ERR_CHECK_SETUP',
      `${what} returned a function, whose code never runs; call it, or leave one \`() =>\` out`,
    )
  }
  if (typeof result !== 'object' || result === null || inspectors?.isProxy(result) === true) return
  if (isThenable(result)) {
    throw new CheckError(
      'ERR_CHECK_PROMISE',
      `${what} returned an object with a method \`then\`, and nothing calls it; await it, or call it, before`,
    )
  }
  if (!generators.some(made => isPrototypeOf.call(made, result))) return
  throw new CheckError(
    'ERR_CHECK_SETUP',
    `${what} returned a generator, whose code never runs; make it an ordinary function, and drive the generator in it`,
  )
}

/** The same for code that must be synchronous. */
export function requireSynchronous(what: string, result: unknown): void {
  requireEnded(what, result)
  if (!isPromise(result)) return
  Reflect.apply(then, result, [undefined, () => undefined])
  throw new CheckError(
    'ERR_CHECK_PROMISE',
    `${what} returned a promise, and nothing awaits it; it must be synchronous`,
  )
}

/** The same for `final`. `named`: the check names its outcomes. */
export function requireJudged(result: unknown, named: boolean): void {
  requireSynchronous(FINAL, result)
  const isVerdict = result === false || result instanceof Error
  if (!isVerdict || named) return
  throw new CheckError(
    'ERR_CHECK_SETUP',
    `${FINAL} returned ${textOf(result)}, which judges nothing: its result is the outcome; throw if the outcome is wrong, or name the outcomes with \`expectOutcomes\``,
  )
}

/** The same for an assertion whose result is not looked at. */
export function requireAssertion(what: string, result: unknown): void {
  requireSynchronous(what, result)
  if (result !== false && !(result instanceof Error)) return
  throw new CheckError(
    'ERR_CHECK_SETUP',
    `${what} returned ${textOf(result)}, which judges nothing: throw if the state is wrong`,
  )
}

export const FINAL = 'the final assertion'
const { then } = Promise.prototype
const isPromise = inspectors?.isPromise ?? ((x: unknown) => x instanceof Promise)
const { isPrototypeOf } = Object.prototype
/** The prototypes of all generator objects. */
const generators: readonly object[] = [function* () {}, async function* () {}].map(
  fn => (Object.getPrototypeOf(fn) as { prototype: object }).prototype,
)

/** What a value of the wrong kind is. */
function textOf(value: unknown): string {
  if (value instanceof Error) return 'an error'
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}

/** A unique name for each thread. */
export function namesOf(program: Program): string[] {
  const given = Array.isArray(program.threads)
    ? program.threads.map((body: Body | undefined, t: number) => body?.name || `thread ${t}`)
    : Object.keys(program.threads)
  const names = given.map((name, t) =>
    given.indexOf(name) === given.lastIndexOf(name) ? name : `${name} ${t}`,
  )
  if (program.recover !== undefined) names.push('recovery')
  return names
}

/** The form of a body that stops before each of its operations. */
export function resumable(body: Body, thread: number, name: string | undefined): Twin {
  if (typeof body !== 'function') {
    throw new CheckError('ERR_CHECK_SETUP', `threads[${thread}] is not a function: it must be a thread body`)
  }
  return formOf(body) ?? refuse(`threads[${thread}]`, name ?? body.name)
}

/** The same for the recovery function, which runs when a thread has died. */
export function resumableRecovery(recover: NonNullable<Program['recover']>): Twin {
  return formOf(recover) ?? refuse('recover', 'recovery')
}

/** The same for the final assertion, where it is a thread that begins when all others have ended. */
export function resumableFinal(final: NonNullable<Program['final']>): Twin {
  return formOf(final) ?? refuse('final', FINAL)
}

function formOf(body: unknown): Twin | undefined {
  return twinOf(body) ?? (isGeneratorFunction(body) ? (body as Twin) : undefined)
}

const GeneratorFunction = Object.getPrototypeOf(function* () {}) as object

function isGeneratorFunction(fn: unknown): boolean {
  return Object.getPrototypeOf(fn) === GeneratorFunction
}

function refuse(what: string, name: string): never {
  throw new CheckError(
    'ERR_CHECK_NOT_INSTRUMENTED',
    `the body ${what}${name ? ` (${name})` : ''} is not instrumented: the checker cannot stop it at its shared accesses. ` +
      'Put the check into a file *.check.ts and run `heddle check`, or load it through the `heddle/checker/vite` plugin or `node --import heddle/checker/register`',
  )
}
