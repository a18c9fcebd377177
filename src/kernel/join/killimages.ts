import { registerImageKind } from '../../payload/imagekinds.ts'
import { TaskKilledError } from './errors.ts'
import { TaskExit } from './finish.ts'

/** What passes through a task that ends, and may be held by its `finally` blocks while it moves. */
type Writable<T> = { -readonly [K in keyof T]: T[K] }

let isRegistered = false

/**
 * Lets the errors of kills and exits travel in the state of a task. Called before a state is written or read.
 */
export function registerKillImages(): void {
  if (isRegistered) return
  isRegistered = true
  registerImageKind<TaskKilledError>(TaskKilledError.prototype, {
    name: 'killed',
    parts: error => [error.task, error.how, error.message, error.stack, 'cause' in error, error.cause],
    create: () => new TaskKilledError('', 'thrown', undefined),
    fill(error, [task, how, message, stack, hasCause, cause]) {
      const made = error as Writable<TaskKilledError>
      made.task = String(task)
      made.how = how as TaskKilledError['how']
      for (const [key, value] of Object.entries({ message, stack, ...(hasCause === true && { cause }) })) {
        Object.defineProperty(made, key, { value, writable: true, configurable: true })
      }
    },
    steps: (_error, part) => [['task', 'how', 'message', 'stack', 'cause', 'cause'][part]],
  })
  registerImageKind<TaskExit>(TaskExit.prototype, {
    name: 'exit',
    parts: ({ value }) => [value],
    create: () => new TaskExit(undefined),
    fill(exit, [value]) {
      ;(exit as Writable<TaskExit>).value = value
    },
    steps: () => ['value'],
  })
}
