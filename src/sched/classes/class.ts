import type { Scheduler } from '../core/scheduler.ts'

/**
 * A scheduling class: ten operations on a class run queue. All but `selectTaskRq` are called with the lock of
 * the run queue held. A switch calls them in this order only:
 *
 *   pickNextTask   chooses, and leaves the chosen one queued
 *   setNextTask    takes it out of the queue: it is the current entity
 *   ~ switch ~
 *   putPrevTask    puts the old entity back, if it still wants to run; else dequeueTask or taskDead
 *
 * `rq` is a class run queue (ClassRq), `se` an entity.
 */
export interface SchedClass {
  readonly name: string
  /** Adds an entity that has become runnable, or has come from another CPU. */
  enqueueTask(s: Scheduler, rq: number, se: number): void
  /** Removes an entity that no longer wants to run here: queued, or the current one. */
  dequeueTask(s: Scheduler, rq: number, se: number): void
  /**
   * The CPU, out of this mask, whose queue a waking or new entity should go to. The mask is never empty and
   * has only active CPUs. No run queue lock is held: it reads the published words.
   */
  selectTaskRq(s: Scheduler, se: number, maskLow: number, maskHigh: number): number
  /**
   * The best entity: a queued one, or the run queue's contender when that should keep the CPU. The queue is
   * not empty.
   */
  pickNextTask(s: Scheduler, rq: number): number
  putPrevTask(s: Scheduler, rq: number, se: number): void
  setNextTask(s: Scheduler, rq: number, se: number): void
  /** The current entity's slice may have ended: raises `needResched` or marks it as yielding when it has. */
  taskTick(s: Scheduler, rq: number, se: number): void
  /** A new entity, before its first enqueue. */
  taskFork(s: Scheduler, rq: number, se: number): void
  /** The current entity has ended. */
  taskDead(s: Scheduler, rq: number, se: number): void
  /** The current entity yields to others of its priority. */
  yieldTask(s: Scheduler, rq: number, se: number): void
  /**
   * Recovery: makes the class run queue empty, whatever state it is in. `running` is the entity of this level
   * that its CPU runs, or 0.
   */
  reset?(s: Scheduler, rq: number, running: number): void
  /**
   * Recovery: adds an entity that was queued here, as it was. Without this operation enqueueTask does it. Its
   * links are zero.
   */
  restore?(s: Scheduler, rq: number, se: number): void
}
