import { type Blocking, blocking, suspendForm } from '../../coroutine/core/blocking.ts'
import type { Waker } from '../../thread/runner.ts'
import { Job } from '../spawn/job.ts'
import { taskHere } from './current.ts'

/** Asks the answerer of the running task, and waits for the answer. */
export const askBooter: <T = unknown>(question: unknown) => Blocking<T> = blocking(
  'askBooter',
  askBooterForm,
) as never

/** The same inside another blocking call. */
export function* askBooterForm<T>(question: unknown): Generator<number, T, unknown> {
  const { on, run } = taskHere('a question')
  const number = on.view.i32[run.job + Job.number]
  let id = 0
  try {
    const { answer } = yield* suspendForm<{ answer: T }>((waker: Waker) => {
      id = on.mail.ask(number, question, waker) // (A), (B)
    })
    return answer
  } finally {
    on.mail.forgetQuestion(id)
  }
}
