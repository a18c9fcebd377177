import { type Blocking, blocking } from '../../coroutine/core/blocking.ts'
import { askBooterForm } from '../../kernel/cpu/askbooter.ts'
import { here } from '../../kernel/cpu/here.ts'
import { NotDurableError } from '../errors.ts'
import type { Question } from './questions.ts'

/** Asks the worker of the run that the running task is. */
export const askWorker: <T>(call: string, question: Question) => Blocking<T> = blocking(
  'askWorker',
  askWorkerForm,
) as never

/** Outside of a kernel there is no task that could be a run. */
export function checkTask(call: string): void {
  if (here.cpu === null) throw new NotDurableError(call)
}

/** The same inside another blocking call. */
export function* askWorkerForm<T>(call: string, question: Question): Generator<number, T, unknown> {
  checkTask(call)
  try {
    return yield* askBooterForm<T>(question)
  } catch (error) {
    if ((error as { code?: unknown } | null)?.code === 'ERR_HEDDLE_NOBODY_ANSWERS')
      throw new NotDurableError(call)
    throw error
  }
}
