import { follow } from '../../coroutine/core/thenable.ts'
import { AWAITS } from '../../sched/core/cpuloop.ts'
import { beginSleep, endSleep, takePending } from '../../sched/core/sleep.ts'
import { SWITCH_PREEMPTED, SWITCH_SLEEPS } from '../../sched/core/switch.ts'
import { INTERRUPTIBLE } from '../../sched/core/taskrecord.ts'
import { wakeupTask } from '../../sched/core/wakeup.ts'
import { JOB_ASYNC, Job } from '../spawn/job.ts'
import { type CpuTask, extrasOf } from './cputask.ts'
import type { KernelCpu } from './kernelcpu.ts'
import type { Stretches } from './stretches.ts'

/**
 * Tasks that wait for a promise on their CPU: async functions, and tasks whose module or arguments have not
 * arrived yet. The task sleeps until the promise settles, or until one of its stretches can run
 * (stretches.ts).
 */

/**
 * After so many stretches an async task yields its CPU: the event loop must turn, and the clock must be read.
 */
const STRETCHES_MAX = 16

/** `drive`: the coroutine has finished. Different from every SWITCH_ reason of src/sched. */
export const DRIVEN_TO_END = -1

/** The task waits for a promise outside of its code: it is async, or its module is not loaded yet. */
export function awaitResult(on: KernelCpu, run: CpuTask, promise: PromiseLike<unknown>): number {
  const rare = extrasOf(run)
  rare.promise = promise
  rare.settled = null
  on.bind(run.task)
  on.beginOutside()
  Atomics.or(on.view.i32, run.job + Job.control, JOB_ASYNC)
  const settle = (threw: boolean, value: unknown): void => {
    if (on.isGone || rare.promise !== promise) return
    rare.settled = { threw, value }
    wakeFromAwait(on, run)
  }
  void follow(
    promise,
    value => settle(false, value),
    error => settle(true, error),
  )
  return awaitMicrotasks(on, run)
}

/** The code after an await is often ready within a few microtasks: then the task need not sleep. */
function awaitMicrotasks(on: KernelCpu, run: CpuTask): number {
  const stretches = run.extras?.stretches ?? null
  return stretches === null || on.cpu.stepwise ? sleepAsync(on, run) : AWAITS
}

/**
 * Sleeps until the promise is settled. A kill cannot be thrown into an `await`: it aborts the task's
 * signal.
 */
function sleepAsync(on: KernelCpu, run: CpuTask): number {
  while (!beginSleep(on.s, run.task, INTERRUPTIBLE)) {
    if (!on.takeKill(run)) takePending(on.view.i32, run.task)
  }
  extrasOf(run).sleepsAsync = true
  return SWITCH_SLEEPS
}

export function resumeAsync(on: KernelCpu, run: CpuTask): number {
  const rare = extrasOf(run)
  if (rare.sleepsAsync) {
    rare.sleepsAsync = false
    endSleep(on.s, run.task)
  }
  const { stretches } = rare
  if (stretches !== null && stretches.isReady) {
    const why = runStretches(on, run, stretches)
    if (why !== DRIVEN_TO_END) return why
    if (rare.settled === null) return awaitMicrotasks(on, run)
  }
  on.takeKill(run)
  const { settled } = rare
  if (settled === null) return sleepAsync(on, run)
  rare.promise = null
  on.endOutside()
  stretches?.release()
  // The promise was for the module or for the arguments: now the task can begin.
  if (!run.hasCode && on.view.i32[run.job + Job.cpu] === 0 && !settled.threw) return on.begin(run.task)
  return on.finish(settled)
}

/** Whether the task has only stretches left to run. */
export function takesStretches(run: CpuTask): boolean {
  return run.extras !== null && run.extras.promise !== null && run.extras.settled === null
}

export function wakeFromAwait(on: KernelCpu, run: CpuTask): void {
  if (run.extras?.sleepsAsync !== true) return
  wakeupTask(on.s, run.task)
  on.kickSelf()
}

/** Runs ready stretches until the task must yield its CPU. DRIVEN_TO_END: no stretch is ready any more. */
function runStretches(on: KernelCpu, run: CpuTask, stretches: Stretches): number {
  for (;;) {
    if (on.cpu.needResched || stretches.inARow >= STRETCHES_MAX) {
      stretches.inARow = 0
      return SWITCH_PREEMPTED
    }
    stretches.inARow++
    const why = on.drive(run, stretches.begin())
    if (why !== DRIVEN_TO_END) {
      if (why === SWITCH_SLEEPS) stretches.release()
      return why
    }
    stretches.end()
    if (!stretches.isReady) return DRIVEN_TO_END
  }
}
