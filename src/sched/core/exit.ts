import { assert } from '../../arena/assert.ts'
import { Entity, POLICY_BOUND } from './entity.ts'
import { recordExit } from './events.ts'
import { RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'
import { RUNNING, TaskRecord, UNUSED, ZOMBIE } from './taskrecord.ts'
import { cancelTimer } from './timer.ts'
import { waitOffCpu } from './wakeup.ts'

/**
 * The end of a task. It makes itself a ZOMBIE and switches away for the last time; the CPU that ran it then
 * gives its slots back, through RCU. No task waits for a ZOMBIE: a join waits for the outcome of the job
 * (kernel/join), which outlives the task record.
 *
 *   the CPU that ran the task                  the recovering thread, if that CPU dies
 *   -------------------------                  ---------------------------------------
 *   (A) state = ZOMBIE
 *   switches away: onCpu = 0
 *                                              (C) a ZOMBIE whose last CPU is dead: reaps it
 *   (B) ZOMBIE -> UNUSED, and through RCU free
 *                                              UNUSED, with the dead CPU's name: frees it (recovery.ts)
 */

/** Ends the current task: it must switch away (SWITCH_EXITS) next, and never runs again. */
export function exitTask(s: Scheduler, task: number, exitCode: number): void {
  const { i32 } = s
  assert(i32[i32[s.queue + RunQueue.current] + Entity.task] === task, 'only the current task can end')
  assert(Atomics.load(i32, task + TaskRecord.state) === RUNNING, 'a task ends while it runs')
  // It ends where it slept: its state has left the kernel, or its code cannot go on.
  if (Atomics.load(i32, task + TaskRecord.timerArmed) !== 0) cancelTimer(s, task)
  if (i32[task + TaskRecord.owner] !== 0) {
    assert(s.lockHooks !== undefined, 'a task that has owned a lock ends where locks are known')
    s.lockHooks.exiting(task)
  }
  const se = i32[task + TaskRecord.entity]
  if ((i32[se + Entity.policy] & POLICY_BOUND) !== 0) Atomics.sub(i32, s.queue + RunQueue.bound, 1)
  if (i32[s.recording] !== 0) recordExit(s, task, exitCode)
  Atomics.store(i32, task + TaskRecord.state, ZOMBIE) // (A)
}

/**
 * Gives a ZOMBIE's slots back, after a grace period: other threads may still be reading its record. Called
 * once: by its CPU after the switch, or by the recovering thread.
 */
export function reapTask(s: Scheduler, task: number): void {
  const { i32, thread } = s
  waitOffCpu(s, i32[task + TaskRecord.entity])
  assert(Atomics.load(i32, task + TaskRecord.timerArmed) === 0, 'a task that has ended has no timer')
  s.rcu.see(thread, task + TaskRecord.rcu)
  const was = Atomics.compareExchange(i32, task + TaskRecord.state, ZOMBIE, UNUSED) // (B)
  assert(was === ZOMBIE, 'a task is reaped once, when it has ended')
  s.rcu.callRcu(thread, task + TaskRecord.rcu, s.freeTask)
  // A thread that is no CPU has no idle loop to do this in.
  if (s.cpu < 0) s.rcu.runCallbacks(thread)
}
