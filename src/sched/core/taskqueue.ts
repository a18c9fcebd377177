import { acquire, release } from '../../arena/sync/spinlock.ts'
import { Entity } from './entity.ts'
import { RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'

/**
 * Locks the run queue that the entity is on, runs from, or was last on, and returns it. The task may move
 * from one queue to another until the lock is held, so its CPU is read again then. With the pi lock held as
 * well, a task that is on no queue stays off: only a waker or a continue could enqueue it.
 */
export function lockTaskQueue(s: Scheduler, se: number): number {
  const { i32, thread } = s
  for (;;) {
    const cpu = Atomics.load(i32, se + Entity.cpu)
    const queue = s.queueOf(cpu)
    acquire(thread, queue + RunQueue.lock)
    if (Atomics.load(i32, se + Entity.cpu) === cpu) return queue
    release(thread, queue + RunQueue.lock)
  }
}
