import { assert } from '../arena/assert.ts'
import { acquire, release } from '../arena/spinlock.ts'
import { Entity } from './entity.ts'
import { RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'
import { isSleeping, Task, TIMED_OUT, WAKE_ANY } from './taskrecord.ts'
import { isCurrent, schedulerWakeup, wakeSelf } from './wakeup.ts'

/**
 * Sleeps that end at a time. Each CPU has a deadline queue; a sleeper puts its timer on that of the CPU it runs on, and
 * that CPU lets it expire, at a tick or out of a halt.
 *
 * A timer that fires late must not end the task's next sleep:
 *
 *   the CPU of the timer                       the task
 *   --------------------                       --------
 *   timer lock; takes the timer off;
 *   (A) notes how many sleeps the task
 *       has had; unlock
 *                                              is woken by someone else; (B) cancels: sleeps + 1; sleeps again
 *   pi lock; (C) the task is asleep;
 *   (D) sleeps is not what (A) saw:
 *   it leaves the task alone
 *
 * (C) comes before (D). Asleep at (C) in the sleep that the timer was for, the task stays so: waking it takes the pi lock.
 * Asleep at (C) in a later one, it has been at (B), and (D) sees that. With (D) first, the task could be awake and not
 * yet at (B) there, and asleep again when the wakeup looks at its state.
 */

/** The current task's sleep ends at `deadline`. On its CPU, before its state says that it sleeps. */
export function armTimer(s: Scheduler, task: number, deadline: number): void {
  const { i32, thread, queue } = s
  assert(queue !== 0, 'a task sleeps on a CPU')
  acquire(thread, queue + RunQueue.timerLock)
  Atomics.store(i32, task + Task.timerCpu, s.cpu)
  Atomics.add(i32, task + Task.sleeps, 1)
  s.timers[s.cpu].insert(task + Task.timer, deadline)
  i32[task + Task.timerArmed] = 1
  release(thread, queue + RunQueue.timerLock)
  if (deadline < s.nextTimer) s.nextTimer = deadline
}

/** Takes the task's timer off, if it has not fired. By the task itself, after its sleep, wherever it runs now. */
export function cancelTimer(s: Scheduler, task: number): void {
  const { i32, thread } = s
  for (;;) {
    const cpu = Atomics.load(i32, task + Task.timerCpu)
    const lock = s.queueOf(cpu) + RunQueue.timerLock
    acquire(thread, lock)
    const here = Atomics.load(i32, task + Task.timerCpu) === cpu
    if (here) {
      Atomics.add(i32, task + Task.sleeps, 1) // (B)
      i32[task + Task.timerArmed] = 0
      if (s.timers[cpu].isQueued(task + Task.timer)) s.timers[cpu].remove(task + Task.timer)
      // Another CPU learns it when it wakes for nothing.
      if (cpu === s.cpu) s.nextTimer = s.timers[cpu].next()
    }
    release(thread, lock)
    if (here) return
  }
}

/** Wakes the tasks whose timers on this CPU are due. Called by the CPU, holding no lock. */
export function expireTimers(s: Scheduler): number {
  const { i32, thread, queue } = s
  if (s.clock < s.nextTimer) return 0
  const timers = s.timers[s.cpu]
  let woken = 0
  for (;;) {
    acquire(thread, queue + RunQueue.timerLock)
    const node = timers.expire(s.clock)
    s.nextTimer = timers.next()
    const task = node - Task.timer
    const sleeps = node === 0 ? 0 : Atomics.load(i32, task + Task.sleeps) // (A)
    release(thread, queue + RunQueue.timerLock)
    if (node === 0) return woken
    if (timeOut(s, task, sleeps)) woken++
  }
}

function timeOut(s: Scheduler, task: number, sleeps: number): boolean {
  const { i32, thread } = s
  const se = i32[task + Task.entity]
  if (isCurrent(s, se)) return wakeSelf(s, task, WAKE_ANY, TIMED_OUT)
  acquire(thread, se + Entity.piLock)
  const woke =
    isSleeping(Atomics.load(i32, task + Task.state)) && // (C)
    Atomics.load(i32, task + Task.sleeps) === sleeps && // (D)
    schedulerWakeup(s, task, WAKE_ANY, TIMED_OUT)
  release(thread, se + Entity.piLock)
  return woke
}

/**
 * The timers of a CPU that has gone move to this one, one at a time. Two timer locks are never held together, so a timer
 * is on neither queue for a moment: `timerArmed`, which the lock of the CPU in `timerCpu` guards, says whether it was
 * cancelled meanwhile.
 */
export function adoptTimers(s: Scheduler, gone: number): number {
  const { i32, thread } = s
  assert(s.queue !== 0 && gone !== s.cpu, 'a CPU adopts the timers of another')
  const lock = s.queueOf(gone) + RunQueue.timerLock
  for (let adopted = 0; ; adopted++) {
    acquire(thread, lock)
    const node = s.timers[gone].first()
    const task = node - Task.timer
    let deadline = Infinity
    if (node !== 0) {
      deadline = s.timers[gone].deadlineOf(node)
      s.timers[gone].remove(node)
      Atomics.store(i32, task + Task.timerCpu, s.cpu)
    }
    release(thread, lock)
    if (node === 0) return adopted
    acquire(thread, s.queue + RunQueue.timerLock)
    if (i32[task + Task.timerArmed] !== 0) s.timers[s.cpu].insert(node, deadline)
    release(thread, s.queue + RunQueue.timerLock)
    if (deadline < s.nextTimer) s.nextTimer = deadline
  }
}
