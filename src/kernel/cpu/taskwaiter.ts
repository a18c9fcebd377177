import { SchedTaskWaiter } from '../../futex/core/schedtaskwaiter.ts'
import type { TaskWaiter } from '../../futex/core/sleep.ts'
import type { KernelCpu } from './kernelcpu.ts'
import { type CpuTask, extrasOf, RUN_FOLLOWS, RUN_LEAVES, RUN_MOVABLE, RUN_RESTARTS } from './cputask.ts'
import { here } from './here.ts'

/**
 * A task of the kernel as a futex waiter. A pending kill is thrown where the task would begin to wait. The
 * wakeup of a kill may come after the kill was thrown:
 *
 *   killer                                     task
 *   ------                                     ----
 *   (A) marks the kill as pending
 *                                              throws it; a `finally` block waits for a lock
 *   (B) wakes the task: the reason is KILLED
 *                                              (C) the kill was thrown before: waits on
 *
 * Without (C) the wait for the lock would end with EINTR, and that error would replace the kill.
 */
export class KernelTaskWaiter extends SchedTaskWaiter {
  private readonly on: KernelCpu
  private readonly run: CpuTask

  constructor(on: KernelCpu, run: CpuTask) {
    super({ s: on.s, task: run.task }, () => on.view.futexes.context)
    this.on = on
    this.run = run
  }

  override beginPark(timeout: number): boolean {
    this.on.throwIfKilled(this.run)
    if (super.beginPark(timeout)) return true
    this.on.throwIfKilled(this.run)
    return false
  }

  /** Whether the task can be packed at all: only then is a call inside it worth restarting. */
  get isMovable(): boolean {
    return (this.run.flags & RUN_MOVABLE) !== 0
  }

  /**
   * The task is inside a call that can end its wait and begin again on another CPU, until `endRestartable`.
   * `follows`: the policy may choose that CPU.
   */
  beginRestartable(follows: boolean): void {
    this.run.flags |= follows ? RUN_RESTARTS | RUN_FOLLOWS : RUN_RESTARTS
  }

  endRestartable(): void {
    this.run.flags &= ~(RUN_RESTARTS | RUN_FOLLOWS | RUN_LEAVES)
  }

  override leaves(): boolean {
    return (this.run.flags & RUN_LEAVES) !== 0
  }

  override get mayFollow(): boolean {
    return (this.run.flags & RUN_FOLLOWS) !== 0
  }

  /** A pending kill has been thrown before this call. */
  override endPark(): boolean {
    return super.endPark() && this.run.extras?.isKilled !== true // (C)
  }
}

/** The task of a kernel that runs on this thread, as a futex waiter; null: none runs. */
export function currentTask(): TaskWaiter | null {
  const { task, cpu } = here
  if (task !== null || cpu === null) return task
  const run = cpu.currentRun()
  const rare = extrasOf(run)
  return (here.task = rare.waiter ??= new KernelTaskWaiter(cpu, run))
}
