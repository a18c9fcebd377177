import { CodeChangedError } from '../../coroutine/core/movable.ts'

/**
 * The names of task-locals, by which a task that has moved finds them on its new CPU. A module makes its
 * task-locals when it is loaded, so the place in the source names one, the same on every CPU. A task-local
 * that another one of the same place precedes has no name, unless the program gives it one.
 */
const byName = new Map<string, object>()
const names = new WeakMap<object, string>()

/** Names a task-local: `given`, or the place in the source that `made` was called from. */
export function nameLocal(local: object, given: string | undefined, made: unknown): void {
  const name = given ?? placeOf(made)
  if (name === null) return
  if (byName.has(name)) {
    if (given !== undefined)
      throw new TypeError(`TaskLocal: the name '${given}' is taken; give each task-local its own`)
    return
  }
  byName.set(name, local)
  names.set(local, name)
}

/** Null: it has no name. */
export function nameOfLocal(local: object): string | null {
  return names.get(local) ?? null
}

/** The task-local of a name. Throws if this CPU has none: its code is not that of the sender. */
export function localOf(name: string): object {
  const local = byName.get(name)
  if (local !== undefined) return local
  throw new CodeChangedError(
    name.replace(/:\d+:\d+$/, ''),
    name,
    `the task has a value for the TaskLocal '${name}', and there is none here; for images that other code or another folder reads, give it a name: new TaskLocal(initial, { name })`,
  )
}

interface Captures {
  captureStackTrace?(target: object, below: unknown): void
}

function placeOf(below: unknown): string | null {
  const at: { stack?: string } = {}
  const { captureStackTrace } = Error as unknown as Captures
  if (captureStackTrace === undefined) return null
  captureStackTrace(at, below)
  const [, line] = (at.stack ?? '').split('\n')
  return line === undefined ? null : line.replace(/^.*?\(?([^()\s]+:\d+:\d+)\)?$/, '$1')
}
