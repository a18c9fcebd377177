import { type Blocking, suspendForm, type WaitOptions } from '../../coroutine/core/blocking.ts'
import { blocking } from '../../coroutine/core/blocking.ts'
import type { Waker } from '../../thread/runner.ts'
import { taskHere } from './current.ts'
import { JOB_BOOTER, Job, JOB_POSTED } from '../spawn/job.ts'

/**
 * Sends a message from a task to the booting thread, which spawned the task: `task.on('message', listener)`
 * receives it there. The value is copied, as by `postMessage`; objects in `transfer` are moved.
 */
export function post(value: unknown, transfer: readonly object[] = []): void {
  const { on, run } = taskHere('post()')
  const { i32 } = on.view
  if ((i32[run.job + Job.control] & JOB_BOOTER) === 0) {
    throw new TypeError(
      'post(): another task spawned this one; give it a Channel of heddle/sync to talk to its spawner',
    )
  }
  on.mail.send({ kind: 'message', task: i32[run.job + Job.number], value }, transfer)
  Atomics.or(i32, run.job + Job.control, JOB_POSTED)
}

/** Waits for the next message that `task.post(value)` sent to the running task. */
export const receive: <T = unknown>(options?: WaitOptions) => Blocking<T> = blocking(
  'receive',
  function* (options: WaitOptions = {}) {
    const { on, run } = taskHere('receive()')
    const inbox = on.mail.inboxOf(on.view.i32[run.job + Job.number])
    const taken = inbox.take()
    if (taken !== undefined) return taken.message
    let waiting: Waker | undefined
    try {
      const came = yield* suspendForm<{ message: unknown }>(waker => {
        waiting = waker
        inbox.wait(waker)
      }, options)
      waiting = undefined
      return came.message
    } finally {
      if (waiting !== undefined) inbox.forget(waiting)
    }
  },
) as never
