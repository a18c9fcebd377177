import { CheckError } from '../errors.ts'

/** What the set-up of an asynchronous check is given: the world outside of the program. */
export interface Outside {
  /**
   * An operation of the outside world: a query, a request, a file. The promise settles when the operation
   * completes, which may be before or after anything else that is pending. `answer` is its value, or a
   * function that makes the value when it completes, and may throw.
   */
  io<T>(name: string, answer: () => T | PromiseLike<T>, options?: IoOptions): Promise<Awaited<T>>
  io<T>(name: string, answer: T, options?: IoOptions): Promise<Awaited<T>>
  io(name: string): Promise<void>
  /** One of these values: each is tried. */
  choose<T>(...values: readonly [T, ...T[]]): T
}

export interface IoOptions {
  /** How many milliseconds of virtual time it takes, or all that it may take. Without it: any time. */
  readonly takes?: number | readonly number[]
  /** Operations of one line complete in the order in which they were called, as on one connection. */
  readonly line?: string
  /** Ends it: the promise rejects with the reason of the signal. */
  readonly signal?: AbortSignal
}

/** What the set-up of an asynchronous check returns. */
export interface AsyncProgram {
  /** What goes on at the same time: each is called at any time. As an object, its keys name them. */
  readonly tasks: readonly AsyncTask[] | Readonly<Record<string, AsyncTask>>
  /** Runs after every event: throws if something is wrong that must never be. */
  readonly always?: () => void
  /** Runs when all tasks have ended and nothing is pending: throws, or rejects, if the outcome is wrong. */
  readonly final?: (outcome: AsyncOutcome) => unknown
}

export type AsyncTask = () => unknown

export interface AsyncOutcome {
  /** What each task returned, in their order. */
  readonly results: readonly unknown[]
}

export type AsyncSetup = (outside: Outside) => AsyncProgram

const parts: ReadonlySet<string> = new Set(['tasks', 'always', 'final'])

/** The tasks of a program with their names. Throws a CheckError that says what is wrong with it. */
export function tasksOf(program: AsyncProgram): { name: string; body: AsyncTask }[] {
  const wrong = (text: string): CheckError => new CheckError('ERR_CHECK_SETUP', text)
  if (
    typeof program !== 'object' ||
    program === null ||
    typeof program.tasks !== 'object' ||
    program.tasks === null
  ) {
    throw typeof (program as { then?: unknown } | undefined)?.then === 'function'
      ? wrong(
          'the set-up returned a promise; it must be synchronous: what it would await belongs into a task',
        )
      : wrong(
          'the set-up must return `{ tasks: { name: async () => …, … }, final }`: what goes on at the same time, and optionally a final assertion',
        )
  }
  for (const key of Object.keys(program)) {
    if (!parts.has(key)) {
      throw wrong(
        `the set-up returns \`${key}\`, which means nothing here; there are ${[...parts].join(', ')}`,
      )
    }
  }
  for (const key of ['always', 'final'] as const) {
    if (program[key] !== undefined && typeof program[key] !== 'function')
      throw wrong(`\`${key}\` is not a function`)
  }
  const isList = Array.isArray(program.tasks)
  const tasks = Object.entries(program.tasks as Record<string, AsyncTask>).map(([key, body]) => {
    if (typeof body !== 'function')
      throw wrong(
        `tasks.${key} is not a function: it must be an async function, or one that returns a promise`,
      )
    return { name: isList ? body.name || `task ${key}` : key, body }
  })
  if (tasks.length === 0) throw wrong('the set-up returns no tasks: there is nothing to explore')
  const names = tasks.map(({ name }) => name)
  return tasks.map(({ name, body }, t) => ({
    name: names.indexOf(name) === names.lastIndexOf(name) ? name : `${name} ${t}`,
    body,
  }))
}
