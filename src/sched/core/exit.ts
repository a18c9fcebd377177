import { assert } from '../../arena/assert.ts'
import { listFirst, listNext, listRemove, listShift } from '../../arena/trees/list.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { Entity, POLICY_BOUND } from './entity.ts'
import { recordExit } from './events.ts'
import { RunQueue } from './runqueue.ts'
import { EXIT_PRIORITY } from './priority.ts'
import type { Scheduler } from './scheduler.ts'
import { setPriority } from './setpriority.ts'
import { sleepOnChannelLocked, type TaskContext, wakeupOnChannel } from './sleep.ts'
import { INTERRUPTIBLE, RUNNING, TaskRecord, UNUSED, SLEEP_WOKEN, ZOMBIE } from './taskrecord.ts'
import { waitOffCpu } from './wakeup.ts'

/**
 * The end of a task. It makes itself a ZOMBIE and switches away for the last time; its parent reaps it:
 *
 *   the task                                   its parent
 *   --------                                   ----------
 *                                              sleep lock; no child is a ZOMBIE
 *   (A) state = ZOMBIE                         (C) sleeps on the channel that is its own pointer; unlock
 *   (B) sleep lock; wakes that channel
 *                                              finds it; takes it off its children
 *   switches away: onCpu = 0                   (D) waits while onCpu is 1
 *                                              frees it, through RCU
 *
 * (A) before (B), and the parent looks and sleeps under the one sleep lock: either it sees the ZOMBIE or (B)
 * finds it asleep. (D) holds no lock: the task has still to switch. A task without a parent is reaped by the
 * CPU that ran it, after the switch.
 *
 * A parent that ends reaps the children that have ended, and its CPU can die with one in its hands:
 *
 *   the parent's CPU                           who recovers it
 *   ----------------                           ---------------
 *   (E) puts its name on the child
 *   (F) child.parent = 0
 *   dies
 *                                              the parent is lost, and has this child no more
 *                                              (G) a ZOMBIE without a parent, with the dead CPU's name: reaps it
 *
 * Without (E) nobody could tell it from one that a living CPU is about to reap, and its slots would never
 * come back.
 */

/**
 * The task has begun to end: whatever it still has to do for that comes before everything else. From any
 * thread.
 */
export function beginExit(s: Scheduler, task: number): void {
  setPriority(s, task, EXIT_PRIORITY)
}

/** Ends the current task: it must switch away (FINISHED) at once, and never runs again. */
export function exitTask(s: Scheduler, task: number, exitCode: number): void {
  const { i32 } = s
  assert(i32[i32[s.queue + RunQueue.current] + Entity.task] === task, 'only the current task can end')
  assert(Atomics.load(i32, task + TaskRecord.state) === RUNNING, 'a task ends while it runs')
  if (i32[task + TaskRecord.owner] !== 0) {
    assert(s.lockHooks !== undefined, 'a task that has owned a lock ends where locks are known')
    s.lockHooks.exiting(task)
  }
  const se = i32[task + TaskRecord.entity]
  if ((i32[se + Entity.policy] & POLICY_BOUND) !== 0) Atomics.sub(i32, s.queue + RunQueue.bound, 1)
  if (i32[s.recording] !== 0) recordExit(s, task, exitCode)
  becomeZombie(s, task, exitCode)
}

/**
 * The end itself: the task has no children any more, and its parent learns of it. By who runs it, or has
 * claimed it.
 */
export function becomeZombie(s: Scheduler, task: number, exitCode: number): void {
  const { i32, thread } = s
  i32[task + TaskRecord.exitCode] = exitCode
  acquire(thread, task + TaskRecord.lock)
  for (;;) {
    const node = listShift(i32, task + TaskRecord.children)
    if (node === 0) break
    release(thread, task + TaskRecord.lock)
    disownChild(s, node - TaskRecord.sibling)
    acquire(thread, task + TaskRecord.lock)
  }
  // Under the lock: who disowns this task sees it either alive, and it will be reaped by its CPU, or a
  // ZOMBIE.
  const parent = Atomics.load(i32, task + TaskRecord.parent)
  if (parent === 0) i32[task + TaskRecord.orphan] = 1
  Atomics.store(i32, task + TaskRecord.state, ZOMBIE) // (A)
  release(thread, task + TaskRecord.lock)
  if (parent !== 0) wakeupOnChannel(s, parent) // (B)
}

/** The child of a task that ends has no parent any more; if it is a ZOMBIE it is reaped here. */
export function disownChild(s: Scheduler, child: number): void {
  const { i32, thread } = s
  acquire(thread, child + TaskRecord.lock)
  const ended = Atomics.load(i32, child + TaskRecord.state) === ZOMBIE
  if (ended) s.rcu.see(thread, child + TaskRecord.rcu) // (E)
  Atomics.store(i32, child + TaskRecord.parent, 0) // (F)
  release(thread, child + TaskRecord.lock)
  if (ended) reapTask(s, child)
}

/**
 * Waits for a child of this task to end, and reaps it. Returns its slot and exit code; undefined: it has no
 * children.
 */
export function* waitChild(
  context: TaskContext,
): Generator<number, { slot: number; exitCode: number } | { interrupted: number } | undefined, unknown> {
  const { task } = context
  for (;;) {
    const { i32, thread, sleepLock } = context.s
    acquire(thread, sleepLock)
    acquire(thread, task + TaskRecord.lock)
    const child = findZombie(i32, task)
    const childless = listFirst(i32, task + TaskRecord.children) === 0
    if (child !== 0) listRemove(i32, task + TaskRecord.children, child + TaskRecord.sibling)
    release(thread, task + TaskRecord.lock)
    if (child !== 0 || childless) {
      release(thread, sleepLock)
      if (child === 0) return undefined
      const ended = { slot: i32[child + TaskRecord.slot], exitCode: i32[child + TaskRecord.exitCode] }
      reapTask(context.s, child)
      return ended
    }
    const reason = yield* sleepOnChannelLocked(context, task, 0, INTERRUPTIBLE) // (C)
    if (reason !== SLEEP_WOKEN) return { interrupted: reason }
  }
}

function findZombie(i32: Int32Array, task: number): number {
  const head = task + TaskRecord.children
  for (let node = listFirst(i32, head); node !== 0; node = listNext(i32, head, node)) {
    if (Atomics.load(i32, node - TaskRecord.sibling + TaskRecord.state) === ZOMBIE)
      return node - TaskRecord.sibling
  }
  return 0
}

/**
 * Gives a ZOMBIE's slots back, after a grace period: others may still be reading its record. By who took it
 * off its parent's children, or, for a task without a parent, by its CPU after the switch. Once.
 */
export function reapTask(s: Scheduler, task: number): void {
  const { i32, thread } = s
  waitOffCpu(s, i32[task + TaskRecord.entity]) // (D)
  s.rcu.see(thread, task + TaskRecord.rcu)
  const was = Atomics.compareExchange(i32, task + TaskRecord.state, ZOMBIE, UNUSED)
  assert(was === ZOMBIE, 'a task is reaped once, when it has ended')
  s.rcu.callRcu(thread, task + TaskRecord.rcu, s.freeTask)
  // A thread that is no CPU has no idle loop to do this in.
  if (s.cpu < 0) s.rcu.runCallbacks(thread)
}
