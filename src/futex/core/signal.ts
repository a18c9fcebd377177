import type { FutexContext } from './context.ts'
import { TASK, Waiter } from './records.ts'

/** Adds the sleeper to the wake queue: the next `wakeAll` signals it. */
export function signalLater({ i32, wakeQueue }: FutexContext, sleeper: number): void {
  const isTask = Atomics.load(i32, sleeper + Waiter.kind) === TASK
  wakeQueue.push(sleeper, isTask ? Atomics.load(i32, sleeper + Waiter.task) : 0)
}
