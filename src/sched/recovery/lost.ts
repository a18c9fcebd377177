import { assert } from '../../arena/assert.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { publishCount, publishQueue, rqDequeueTask } from '../classes/classrq.ts'
import { Entity, POLICY_BOUND } from '../core/entity.ts'
import { reapTask } from '../core/exit.ts'
import { RunQueue } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'
import { lockTaskQueue } from '../core/taskqueue.ts'
import { isSleeping, SLEEP_LOST, RUNNING, TaskRecord, UNUSED, WAKENING, ZOMBIE } from '../core/taskrecord.ts'
import { cancelTimer } from '../core/timer.ts'

/**
 * The tasks that were started on a CPU that is dead: their coroutines were in its heap, so they never run
 * again, wherever they are: queued, asleep, stopped, or in the middle of a turn. Other threads may wake,
 * stop, kill or boost them during the recovery:
 *
 *   recovering thread                          waker
 *   -----------------                          -----
 *                                              pi lock; asleep -> WAKENING -> RUNNING;
 *                                              queues it on the dead CPU; unlock
 *   pi lock; (A) any state -> WAKENING
 *   takes it off that queue; unlock
 *                                              pi lock; WAKENING: nothing to do; unlock
 *
 * From (A) on the recovering thread owns the task, as a waker owns a WAKENING task, until it is a ZOMBIE.
 * This holds even if that waker dies while it holds the pi lock: the thread that breaks the lock finishes any
 * wakeup that it finds, but `wakeReason` SLEEP_LOST says that this is not a wakeup.
 */

/** A task that was started on a CPU that is dead, and what it was doing there. */
export interface LostTask {
  readonly task: number
  readonly was: 'running' | 'waiting for its turn' | 'asleep' | 'stopped'
}

/**
 * Finds the lost tasks of a dead CPU, and takes them off every queue, tree and timer. The caller
 * ends them. `current` is the entity that the CPU was running.
 */
export function claimLost(s: Scheduler, dead: number, current: number): LostTask[] {
  const { i32, tasks } = s
  const lost: LostTask[] = []
  for (let task = tasks.after(i32, 0); task !== 0; task = tasks.after(i32, task)) {
    if (!tasks.isPublished(i32, task) || !isLiving(i32, task)) continue
    const se = i32[task + TaskRecord.entity]
    if (Atomics.load(i32, se + Entity.cpu) !== dead || !isBound(s, se)) continue
    lost.push({ task, was: se === current ? 'running' : 'waiting for its turn' })
  }
  return lost.map(({ task, was }) => ({ task, was: claimTask(s, task) ?? was }))
}

function isLiving(i32: Int32Array, task: number): boolean {
  const state = Atomics.load(i32, task + TaskRecord.state)
  return state !== UNUSED && state !== ZOMBIE
}

function isBound(s: Scheduler, se: number): boolean {
  acquire(s.thread, se + Entity.piLock)
  const bound = (s.i32[se + Entity.policy] & POLICY_BOUND) !== 0
  release(s.thread, se + Entity.piLock)
  return bound
}

/**
 * Takes a task that no CPU runs off every queue, tree and timer: the caller ends it. Returns whether it slept
 * or was stopped.
 */
export function claimTask(s: Scheduler, task: number): 'asleep' | 'stopped' | undefined {
  const { i32, thread } = s
  const se = i32[task + TaskRecord.entity]
  acquire(thread, s.sleepLock)
  if (s.waitTree.isQueued(task)) s.waitTree.take(task)
  release(thread, s.sleepLock)
  cancelTimer(s, task)
  acquire(thread, se + Entity.piLock)
  const state = Atomics.load(i32, task + TaskRecord.state)
  assert(isSleeping(state) || state === RUNNING, 'no other thread has claimed a lost task')
  i32[task + TaskRecord.wakeReason] = SLEEP_LOST
  Atomics.store(i32, task + TaskRecord.state, WAKENING) // (A)
  const queue = lockTaskQueue(s, se)
  if (Atomics.load(i32, se + Entity.onRq) === 1) {
    const rq = i32[se + Entity.rq]
    rqDequeueTask(s, rq, se)
    Atomics.store(i32, se + Entity.onRq, 0)
    publishCount(s, rq, se)
    publishQueue(s, queue)
  }
  const stopped = i32[task + TaskRecord.stopped] !== 0
  release(thread, queue + RunQueue.lock)
  release(thread, se + Entity.piLock)
  if (stopped) return 'stopped'
  return isSleeping(state) ? 'asleep' : undefined
}

/** Ends tasks that claimLost returned, and frees their slots. */
export function endLost(s: Scheduler, lost: readonly number[]): void {
  const { i32 } = s
  for (const task of lost) {
    const was = Atomics.compareExchange(i32, task + TaskRecord.state, WAKENING, ZOMBIE)
    assert(was === WAKENING, 'only a task that was claimed as lost ends here')
    reapTask(s, task)
  }
}
