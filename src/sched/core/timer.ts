import { assert } from '../../arena/assert.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { Entity } from './entity.ts'
import { RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'
import { isSleeping, TaskRecord, SLEEP_TIMED_OUT, WAKE_ANY } from './taskrecord.ts'
import { isCurrent, schedulerWakeup, wakeSelf } from './wakeup.ts'

/**
 * Sleeps that end at a time. Each CPU has a deadline queue. A sleeper puts its timer on the queue of the CPU
 * it runs on, and that CPU expires it, at a tick or after a halt.
 *
 * A timer that fires late must not end the task's next sleep:
 *
 *   the CPU of the timer                       the task
 *   --------------------                       --------
 *   timer lock; takes the timer off;
 *   (A) reads how many sleeps the task
 *       has had; unlock
 *                                              another waker wakes it; (B) cancels: sleeps + 1; sleeps again
 *   pi lock; (C) the task is asleep;
 *   (D) sleeps is not what (A) saw:
 *   it leaves the task alone
 *
 * (C) comes before (D). If the task is still in the sleep that the timer was for at (C), it stays in it,
 * because a wakeup takes the pi lock. If it is in a later sleep, it has passed (B), and (D) sees that. With
 * (D) first, the task could be awake and before (B) at (D), and asleep again when the wakeup reads its state.
 *
 * A CPU expires timers also while its own task sleeps and has not switched yet (cpuloop.ts), and waits here
 * for pi locks. A waker may hold such a lock while it waits for the switch of its task on another CPU, which
 * may expire timers too. No cycle of such waits is possible. A task that is on another CPU has armed its
 * present timer there, so its old one was taken off here, (A), before (B), and (B) is before its present
 * sleep. And (A) is after the sleep of this CPU's task. So each sleep of a cycle would be before itself.
 *
 * `timerArmed` and `timerCpu` say which queue a timer is on; the lock of the CPU in `timerCpu` guards both,
 * and the node. A thread that holds another timer lock reads them in the order that makes them exact, and
 * writes to no node that is not on its own queue:
 *
 *   holder of the lock of Q's timers           the task, on CPU P
 *   --------------------------------           ------------------
 *                                              timer lock of P
 *   (G) timerArmed: 1                          (E) timerCpu = P
 *   (H) timerCpu: P, so it is not Q's          puts the timer on its queue; (F) timerArmed = 1; unlock
 *
 * (E) before (F) and (G) before (H): a timer that is seen armed and still has Q as its CPU is Q's, and cannot
 * leave Q without its lock.
 */

/** The current task's sleep ends at `deadline`. On its CPU, before its state says that it sleeps. */
export function armTimer(s: Scheduler, task: number, deadline: number): void {
  const { i32, thread, queue } = s
  assert(queue !== 0, 'a task sleeps on a CPU')
  acquire(thread, queue + RunQueue.timerLock)
  assert(Atomics.load(i32, task + TaskRecord.timerArmed) === 0, 'a task has one timer')
  Atomics.store(i32, task + TaskRecord.timerCpu, s.cpu) // (E)
  Atomics.add(i32, task + TaskRecord.sleeps, 1)
  s.timers[s.cpu].forget(task + TaskRecord.timer)
  s.timers[s.cpu].insert(task + TaskRecord.timer, deadline)
  Atomics.store(i32, task + TaskRecord.timerArmed, 1) // (F)
  release(thread, queue + RunQueue.timerLock)
  if (deadline < s.nextTimer) s.nextTimer = deadline
}

/** Cancels the task's timer, if it has not fired. Called by the task itself, after its sleep, on any CPU. */
export function cancelTimer(s: Scheduler, task: number): void {
  const { i32, thread } = s
  for (;;) {
    const cpu = Atomics.load(i32, task + TaskRecord.timerCpu)
    const lock = s.queueOf(cpu) + RunQueue.timerLock
    acquire(thread, lock)
    const here = Atomics.load(i32, task + TaskRecord.timerCpu) === cpu
    if (here) {
      Atomics.add(i32, task + TaskRecord.sleeps, 1) // (B)
      const armed = Atomics.exchange(i32, task + TaskRecord.timerArmed, 0) !== 0
      if (armed && s.timers[cpu].isQueued(task + TaskRecord.timer))
        s.timers[cpu].remove(task + TaskRecord.timer)
      // Another CPU finds out when it wakes up without a timer that is due.
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
    const task = node - TaskRecord.timer
    const sleeps = node === 0 ? 0 : Atomics.load(i32, task + TaskRecord.sleeps) // (A)
    release(thread, queue + RunQueue.timerLock)
    if (node === 0) return woken
    if (timeOut(s, task, sleeps)) woken++
  }
}

function timeOut(s: Scheduler, task: number, sleeps: number): boolean {
  const { i32, thread } = s
  const se = i32[task + TaskRecord.entity]
  if (isCurrent(s, se)) return wakeSelf(s, task, WAKE_ANY, SLEEP_TIMED_OUT)
  acquire(thread, se + Entity.piLock)
  const woke =
    isSleeping(Atomics.load(i32, task + TaskRecord.state)) && // (C)
    Atomics.load(i32, task + TaskRecord.sleeps) === sleeps && // (D)
    schedulerWakeup(s, task, WAKE_ANY, SLEEP_TIMED_OUT)
  release(thread, se + Entity.piLock)
  return woke
}

/** Whether the timer is armed on this CPU. Exact while the lock of its timers is held. */
export function isArmedOn({ i32 }: Scheduler, task: number, cpu: number): boolean {
  return (
    Atomics.load(i32, task + TaskRecord.timerArmed) !== 0 &&
    Atomics.load(i32, task + TaskRecord.timerCpu) === cpu
  ) // (G) (H)
}

/**
 * The timers of a CPU that has gone move to this one, one at a time. Two timer locks are never held together,
 * so a timer is on neither queue for a moment:
 *
 *   CPU 1, adopts                              CPU 2
 *   -------------                              -----
 *   timer lock of the CPU that has gone;
 *   takes the timer off; timerCpu = 1; unlock
 *                                              wakes the sleeper, runs it; it cancels its timer of CPU 1,
 *                                              and sleeps again, with a timer on the queue of CPU 2
 *   own timer lock; (I) the timer is armed,
 *   but not here: leaves it alone
 *
 * Or, if a third CPU dies while it holds the timer lock of CPU 1, the recovering thread rebuilds these timers
 * and finds it armed here. Then it is on the queue already at (I).
 */
export function adoptTimers(s: Scheduler, gone: number): number {
  const { i32, thread } = s
  assert(s.queue !== 0 && gone !== s.cpu, 'a CPU adopts the timers of another')
  const lock = s.queueOf(gone) + RunQueue.timerLock
  for (let adopted = 0; ; adopted++) {
    acquire(thread, lock)
    const node = s.timers[gone].first()
    const task = node - TaskRecord.timer
    let deadline = Infinity
    if (node !== 0) {
      deadline = s.timers[gone].deadlineOf(node)
      s.timers[gone].remove(node)
      Atomics.store(i32, task + TaskRecord.timerCpu, s.cpu)
    }
    release(thread, lock)
    if (node === 0) return adopted
    acquire(thread, s.queue + RunQueue.timerLock)
    if (isArmedOn(s, task, s.cpu) && !s.timers[s.cpu].isQueued(node)) s.timers[s.cpu].insert(node, deadline) // (I)
    release(thread, s.queue + RunQueue.timerLock)
    if (deadline < s.nextTimer) s.nextTimer = deadline
  }
}
