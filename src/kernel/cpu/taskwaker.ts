import type { Waker } from '../../thread/runner.ts'
import type { CpuTask } from './cputask.ts'
import type { KernelCpu } from './kernelcpu.ts'

/** The waker of a wait that only its time limit ends. */
export const timeOnly: Waker = { wake: () => {}, fail: () => {} }

/** Ends one wait of a task of this CPU. */
export class CpuTaskWaker implements Waker {
  private readonly on: KernelCpu
  private readonly run: CpuTask
  private readonly wait: number

  constructor(on: KernelCpu, run: CpuTask, wait: number) {
    this.on = on
    this.run = run
    this.wait = wait
  }

  wake(value?: unknown): void {
    this.on.wake(this.run, this.wait, value, false)
  }

  fail(error: unknown): void {
    this.on.wake(this.run, this.wait, error, true)
  }
}

/** Ends a wait by an error: it is thrown into the task. */
export class Raised {
  readonly error: unknown

  constructor(error: unknown) {
    this.error = error
  }
}
