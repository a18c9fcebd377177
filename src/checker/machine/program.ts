import { type Twin, twinOf } from '../../coroutine/core/coroutine.ts'
import type { Always } from '../spec/always.ts'
import { CheckError } from '../errors.ts'

/**
 * A thread of a check: an ordinary function, instrumented, or a generator function in the instrumented shape.
 */
export type Body = (() => unknown) | (() => Generator<number, unknown, unknown>)

/** What the set-up of a check returns. */
export interface Program {
  /** The bodies of the virtual threads; as an object, its keys name them. */
  readonly threads: readonly Body[] | Readonly<Record<string, Body>>
  /**
   * Runs, plainly, when all threads have ended: throws if the outcome is wrong. What it returns names the
   * outcome.
   */
  readonly final?: (outcome: Outcome) => unknown
  /** With crash points: a thread that starts when another has died. */
  readonly recover?: (dead: number) => unknown
  /** What must be true at every step. */
  readonly always?: Always
}

/** What the final assertion may ask. */
export interface Outcome {
  /** Which threads died. */
  readonly crashed: readonly number[]
  /** What each thread returned. */
  readonly results: readonly unknown[]
}

export type Setup = () => Program

const parts: ReadonlySet<string> = new Set(['threads', 'final', 'recover', 'always'])

/** The bodies of its threads. Throws a CheckError that says what is wrong with it. */
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

/** A name for each thread, no two the same. */
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

/** The same of what runs when a thread has died. */
export function resumableRecovery(recover: NonNullable<Program['recover']>): Twin {
  return formOf(recover) ?? refuse('recover', 'recovery')
}

/** The same of the final assertion, where it is a thread that begins when all others have ended. */
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
