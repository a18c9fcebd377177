import { Entity } from '../../sched/core/entity.ts'
import { beginSleep, endSleep, type TaskContext } from '../../sched/core/sleep.ts'
import { SWITCH_SLEEPS } from '../../sched/core/switch.ts'
import { INTERRUPTIBLE, SLEEP_KILLED, RUNNING, TaskRecord } from '../../sched/core/taskrecord.ts'
import { cancelTimer } from '../../sched/core/timer.ts'
import type { FutexContext } from './context.ts'
import { LockOwner, ownerOfTask } from './owner.ts'
import type { TaskWaiter } from './sleep.ts'

/**
 * A task of the scheduler as a futex waiter: it sleeps INTERRUPTIBLE, so a kill ends the wait with EINTR.
 */
export class SchedTaskWaiter implements TaskWaiter {
  readonly suspended: number = SWITCH_SLEEPS
  private readonly current: TaskContext
  private readonly contextOf: (current: TaskContext) => FutexContext
  private timeout = Infinity
  private lockOwner: LockOwner | undefined = undefined

  /** `contextOf` returns the futex context of the task's CPU. */
  constructor(current: TaskContext, contextOf: (current: TaskContext) => FutexContext) {
    this.current = current
    this.contextOf = contextOf
  }

  get task(): number {
    return this.current.task
  }

  /**
   * Its own priority, not the inherited one: as on Linux, inherited priorities order only waiters for locks.
   */
  get priority(): number {
    const { s, task } = this.current
    return s.i32[s.i32[task + TaskRecord.entity] + Entity.basePriority]
  }

  get owner(): LockOwner {
    if (this.lockOwner === undefined) {
      const context = this.context()
      this.lockOwner = new LockOwner(context, ownerOfTask(context, this.task))
    }
    return this.lockOwner
  }

  context(): FutexContext {
    return this.contextOf(this.current)
  }

  beginPark(timeout: number): boolean {
    this.timeout = timeout
    return beginSleep(this.current.s, this.current.task, INTERRUPTIBLE, timeout)
  }

  cancelPark(): boolean {
    const { s, task } = this.current
    if (Atomics.compareExchange(s.i32, task + TaskRecord.state, INTERRUPTIBLE, RUNNING) !== INTERRUPTIBLE)
      return false
    if (this.timeout !== Infinity) cancelTimer(s, task)
    return true
  }

  leaves(): boolean {
    return false
  }

  get mayFollow(): boolean {
    return false
  }

  endPark(): boolean {
    return endSleep(this.current.s, this.current.task, this.timeout) === SLEEP_KILLED
  }
}
