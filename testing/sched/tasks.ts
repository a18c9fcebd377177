import { acquire, release } from '../../src/arena/sync/spinlock.ts'
import { createTask, startTask, type TaskOptions } from '../../src/sched/core/fork.ts'
import type { Scheduler } from '../../src/sched/core/scheduler.ts'
import { beginSleep, endSleep, type TaskContext } from '../../src/sched/core/sleep.ts'
import { SWITCH_SLEEPS } from '../../src/sched/core/switch.ts'
import { TaskRecord } from '../../src/sched/core/taskrecord.ts'

/** createTask and startTask in one. */
export function forkTask(s: Scheduler, options: TaskOptions = {}): number {
  const task = createTask(s, options)
  startTask(s, task)
  return task
}

/**
 * The design's `scheduler_sleep`: releases a spin lock that the task holds, sleeps, and takes the lock again.
 * 0: no lock. The kernel's CPUs call the two halves themselves.
 */
export function* schedulerSleep(
  context: TaskContext,
  lock: number,
  state: number,
  timeout: number = Infinity,
): Generator<number, number, unknown> {
  const { task } = context
  if (!beginSleep(context.s, task, state, timeout)) return context.s.i32[task + TaskRecord.wakeReason]
  if (lock !== 0) release(context.s.thread, lock)
  yield SWITCH_SLEEPS
  const reason = endSleep(context.s, task, timeout)
  if (lock !== 0) acquire(context.s.thread, lock)
  return reason
}
