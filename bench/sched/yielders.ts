import { beginSleep } from '../../src/sched/core/sleep.ts'
import { SWITCH_SLEEPS, SWITCH_YIELDS } from '../../src/sched/core/switch.ts'
import { INTERRUPTIBLE } from '../../src/sched/core/taskrecord.ts'
import { wakeupTask } from '../../src/sched/core/wakeup.ts'
import { type Body, FIFO, type Rig } from './rig.ts'

/**
 * Tasks that yield to each other until their CPU has switched `total` times, and then sleep. They live as
 * long as the rig: their start and end is not measured.
 */
export class Yielders {
  private left = 0
  private end = 0
  private readonly rig: Rig
  private readonly tasks: number[] = []

  constructor(rig: Rig, count: number, priority: number = FIFO) {
    this.rig = rig
    for (let task = 0; task < count; task++) this.tasks.push(rig.spawn(this.body(task), priority))
    rig.run()
  }

  measure(total: number = 1_000_000): number {
    this.left = total
    for (const task of this.tasks) wakeupTask(this.rig.s, task)
    const start = performance.now()
    this.rig.run()
    return ((this.end - start) * 1e6) / total
  }

  private *body(self: number): Body {
    for (;;) {
      beginSleep(this.rig.s, this.tasks[self], INTERRUPTIBLE)
      yield SWITCH_SLEEPS
      while (--this.left > 0) yield SWITCH_YIELDS
      if (this.left === 0) this.end = performance.now()
    }
  }
}
