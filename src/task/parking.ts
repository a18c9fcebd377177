import { SchedulerTask } from '../futex/tasks.ts'
import type { KernelCpu } from './kernelcpu.ts'
import { rareState, type TaskRun } from './taskrun.ts'

/** A task of the kernel as a futex waiter. A kill that is due is thrown where it would begin to wait. */
export class KernelTask extends SchedulerTask {
  private readonly on: KernelCpu
  private readonly run: TaskRun

  constructor(on: KernelCpu, run: TaskRun) {
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
}

/** The task that runs on this CPU, as a futex waiter. */
export function parkingTask(on: KernelCpu): KernelTask {
  const run = on.currentRun()
  const rare = rareState(run)
  return (rare.parking ??= new KernelTask(on, run))
}
