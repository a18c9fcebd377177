import { CheckError } from '../errors.ts'

/** The argument of the set-up of an asynchronous check: the world outside of the program. */
export interface Outside {
  /**
   * An operation of the outside world: a query, a request, a file. The promise settles when the operation
   * completes, which may be before or after any other pending event. `answer` is its value, or a function
   * that returns the value at completion and may throw.
   */
  io<T>(name: string, answer: () => T | PromiseLike<T>, options?: IoOptions): Promise<Awaited<T>>
  io<T>(name: string, answer: T, options?: IoOptions): Promise<Awaited<T>>
  io(name: string): Promise<void>
  /** One of these values; the search tries each. */
  choose<T>(...values: readonly [T, ...T[]]): T
}

export interface IoOptions {
  /** How many milliseconds of virtual time it takes, or a list of durations to try. Default: any time. */
  readonly takes?: number | readonly number[]
  /** Operations of one line complete in the order of their calls, as on one connection. */
  readonly line?: string
  /** Aborts the operation: the promise rejects with the reason of the signal. */
  readonly signal?: AbortSignal
}

/** The result of the set-up of an asynchronous check. */
export interface AsyncProgram {
  /** The concurrent tasks: each may start at any time. The keys of an object are their names. */
  readonly tasks: readonly AsyncTask[] | Readonly<Record<string, AsyncTask>>
  /** Runs after every event, and throws if an invariant does not hold. */
  readonly always?: () => void
  /** Runs when all tasks have ended and nothing is pending. Throws or rejects if the outcome is wrong. */
  readonly final?: (outcome: AsyncOutcome) => unknown
}

export type AsyncTask = () => unknown

export interface AsyncOutcome {
  /** The results of the tasks, in their order. */
  readonly results: readonly unknown[]
}

export type AsyncSetup = (outside: Outside) => AsyncProgram

const parts: ReadonlySet<string> = new Set(['tasks', 'always', 'final'])

/** The tasks of a program with their names. Throws a CheckError that says what is wrong with the program. */
export function tasksOf(program: AsyncProgram): { name: string; body: AsyncTask }[] {
  const wrong = (text: string): CheckError => new CheckError('ERR_CHECK_SETUP', text)
  if (
    typeof program !== 'object' ||
    program === null ||
    typeof program.tasks !== 'object' ||
    program.tasks === null
  ) {
    throw typeof (program as { then?: unknown } | undefined)?.then === 'function'
      ? wrong('the set-up returned a promise; it must be synchronous: move its `await` into a task')
      : wrong(
          'the set-up must return `{ tasks: { name: async () => …, … }, final }`: the concurrent tasks, and optionally a final assertion',
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
