import { type Twin, twinOf } from '../../coroutine/core/coroutine.ts'
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
  return Array.isArray(program.threads) ? program.threads : Object.values(program.threads)
}

/** A unique name for each thread. */
export function namesOf(program: Program): string[] {
  const given = Array.isArray(program.threads)
    ? program.threads.map((body: Body, t: number) => body.name || `thread ${t}`)
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
  return formOf(final) ?? refuse('final', 'the final assertion')
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
