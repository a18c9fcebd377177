import { acquire, breakLock, Lock, nudgeContended, release } from '../../arena/sync/spinlock.ts'
import { lockRank } from '../../arena/sync/lockorder.ts'
import { nudgeCpu } from '../../machine/core/halt.ts'
import { cpuRecord } from '../../machine/core/cpurecord.ts'
import { wakeTimekeeper } from '../../machine/timekeeper/timekeeper.ts'
import { startAllArrived } from '../core/arrivals.ts'
import { Entity, POLICY_BOUND } from '../core/entity.ts'
import { reapTask } from '../core/exit.ts'
import { repairExt } from '../ext/extrecover.ts'
import { drainQueue, isOnline } from '../balance/hotplug.ts'
import { claimLost, type LostTask } from './lost.ts'
import { enqueueSelected } from '../core/enqueue.ts'
import { IDLE_MAJOR_PRIORITY, majorPriority } from '../core/priority.ts'
import { notePushable } from '../balance/pushable.ts'
import { clearLinks, rebuildRunQueue, rebuildTimers, rebuildWaitTree } from './rebuild.ts'
import { RunQueue } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'
import { mendPriority } from '../core/setpriority.ts'
import { SLEEP_LOST, RUNNING, TaskRecord, UNUSED, WAKENING, ZOMBIE } from '../core/taskrecord.ts'
import { lockTaskQueue } from '../core/taskqueue.ts'
import { finishWakeup } from '../core/wakeup.ts'

/**
 * A CPU has died, at any instruction. Another thread, at any time after, and while all others go on:
 *
 *   1  its own run queue       closed; what it ran is off it; rebuilt (rebuild.ts)
 *   2  locks that it held      each is broken and what it guards rebuilt or, for a pi lock, completed; innermost first
 *   3  RCU                     its list is put in order, what it was about to free is freed; it is offline from here on
 *   4  ended tasks             that it was about to reap
 *   5  new tasks               that it had not finished making are given back
 *   6  tasks that run nowhere  that it had just picked, and had not started: queued elsewhere; those that have arrived: started
 *   7  its queue               moves to other CPUs
 *   8  lost tasks              those that it had started: claimed, and returned (lost.ts)
 *
 * A lock that the dead CPU held names what it was doing. With the pi lock of a task it was waking, stopping,
 * continuing, or changing it:
 *
 *   WAKENING                      it had claimed the task: the wakeup is finished, unless the task is lost (lost.ts)
 *   RUNNING, not stopped, nowhere it had made the task RUNNING, or had cleared STOPPED: the task is queued
 *   anything else                 it had not begun, or had done: nothing
 *
 * A notify that it still had to make, or that woke it in vain, is made here: for the lock that it parked at
 * or gave back last, every CPU and the timekeeper. One too many does no harm.
 *
 * Breaking a lock needs no other lock, so a thread that waits for one of a dead CPU can do that alone
 * (rescueLock), wherever it is; a second death during a recovery is met the same way.
 */

/**
 * Returns the tasks that the CPU had started, claimed: the caller ends them (endLost). With no lock held, not
 * by a CPU that is dead.
 */
export function recoverScheduler(s: Scheduler, dead: number): LostTask[] {
  const { thread, rcu } = s
  s.readClock()
  // What is seen here is not freed under this thread's hands.
  rcu.idleExit(thread)
  nudgeContended(s.i32, dead)
  repairExt(s, dead)
  closeDead(s, dead) // 1
  for (let cpu = 0; cpu < s.cpus; cpu++) {
    mendTimers(s, cpu, dead) // 2
    mendRunQueue(s, cpu, dead)
  }
  mendSleepers(s, dead)
  mendTasks(s, dead)
  freeRest(s, dead) // 3
  rcu.offline(s.i32, dead)
  reapEnded(s, dead) // 4
  dropUnfinished(s, dead) // 5
  queueNowhere(s, dead) // 6
  startAllArrived(s)
  drainQueue(s, dead) // 7
  const wasRunning = s.queueOf(dead) + RunQueue.wasRunning
  const lost = claimLost(s, dead, s.i32[wasRunning]) // 8
  s.i32[wasRunning] = 0
  Atomics.store(s.i32, s.queueOf(dead) + RunQueue.bound, 0)
  rcu.idleEnter(thread)
  rcu.runCallbacks(thread)
  nudgeAll(s)
  return lost
}

/**
 * A thread waits for the dead thread at this lock of the scheduler's: breaks it and mends what it guards.
 * `lock` 0: it waits for a task to be off the dead CPU. It may hold locks that are outer to that one. False:
 * the lock is of another layer.
 */
export function rescueLock(s: Scheduler, dead: number, lock: number): boolean {
  repairExt(s, dead)
  if (lock === 0) {
    closeDead(s, dead)
    return true
  }
  const { i32 } = s
  switch (i32[lock + Lock.rank]) {
    case RUN_QUEUE:
      mendRunQueue(s, i32[lock - RunQueue.lock + RunQueue.cpu], dead)
      return true
    case TIMER:
      mendTimers(s, i32[lock - RunQueue.timerLock + RunQueue.cpu], dead)
      return true
    case PI:
      mendPi(s, i32[lock - Entity.piLock + Entity.task], lock - Entity.piLock, dead)
      return true
    case SLEEP:
      mendSleepers(s, dead)
      return true
    case DISPATCH_QUEUE:
      return true
    default:
      return false
  }
}

const RUN_QUEUE = lockRank('run queue')
const DISPATCH_QUEUE = lockRank('dispatch queue')
const TIMER = lockRank('timer')
const PI = lockRank('pi')
const SLEEP = lockRank('sleep')

/**
 * The dead CPU takes no more tasks and runs none. Whoever waits for one of them to be off it goes on. Done
 * twice, it does no harm.
 */
function closeDead(s: Scheduler, dead: number): void {
  const { i32, thread, entities } = s
  const queue = s.queueOf(dead)
  const lock = queue + RunQueue.lock
  if (!breakLock(thread, lock, dead)) acquire(thread, lock)
  i32[queue + RunQueue.online] = 0 // (A) of place.ts
  s.setActive(dead, false)
  const idle = i32[queue + RunQueue.idle]
  if (i32[queue + RunQueue.current] !== idle) i32[queue + RunQueue.wasRunning] = i32[queue + RunQueue.current]
  i32[queue + RunQueue.current] = idle
  i32[queue + RunQueue.contender] = 0
  rebuildRunQueue(s, queue)
  // Under the lock: none of those that are queued is taken elsewhere before its onCpu is 0.
  for (let se = entities.after(i32, 0); se !== 0; se = entities.after(i32, se)) {
    if (Atomics.load(i32, se + Entity.cpu) !== dead) continue
    if (Atomics.load(i32, se + Entity.onCpu) !== 0) {
      // It may have died in the middle of putting it back.
      if (Atomics.load(i32, se + Entity.onRq) === 0) clearLinks(i32, se)
      Atomics.store(i32, se + Entity.onCpu, 0)
    }
    // Or between (E) and (H) of wakeup.ts.
    Atomics.notify(i32, se + Entity.onCpu)
  }
  release(thread, lock)
}

function mendRunQueue(s: Scheduler, cpu: number, dead: number): void {
  const { i32, thread } = s
  const queue = s.queueOf(cpu)
  const lock = queue + RunQueue.lock
  if (!breakLock(thread, lock, dead)) return
  if (i32[queue + RunQueue.online] === 0) s.rcu.endAdoption(i32, cpu, dead)
  rebuildRunQueue(s, queue)
  release(thread, lock)
  s.resched(cpu)
}

/**
 * The dead CPU's own timers are rebuilt in any case: it may have taken one off, and not woken the sleeper.
 */
function mendTimers(s: Scheduler, cpu: number, dead: number): void {
  const { thread } = s
  const lock = s.queueOf(cpu) + RunQueue.timerLock
  if (!breakLock(thread, lock, dead)) {
    if (cpu !== dead) return
    acquire(thread, lock)
  }
  rebuildTimers(s, cpu)
  release(thread, lock)
}

function mendSleepers(s: Scheduler, dead: number): void {
  if (!breakLock(s.thread, s.sleepLock, dead)) return
  rebuildWaitTree(s)
  release(s.thread, s.sleepLock)
}

function mendTasks(s: Scheduler, dead: number): void {
  const { i32, tasks } = s
  for (let task = tasks.after(i32, 0); task !== 0; task = tasks.after(i32, task)) {
    if (!tasks.isPublished(i32, task)) continue
    mendPi(s, task, i32[task + TaskRecord.entity], dead)
  }
}

function mendPi(s: Scheduler, task: number, se: number, dead: number): void {
  const { i32, thread } = s
  const lock = se + Entity.piLock
  if (!breakLock(thread, lock, dead)) return
  // Nothing ever happens to an idle task: whoever had its lock was going through all of them.
  if (majorPriority(i32[se + Entity.basePriority]) !== IDLE_MAJOR_PRIORITY) mendTask(s, task, se)
  release(thread, lock)
}

/** Finishes what was under way with a task. Its pi lock is held. */
function mendTask(s: Scheduler, task: number, se: number): void {
  const { i32, thread } = s
  const queue = lockTaskQueue(s, se)
  notePushable(s, se)
  release(thread, queue + RunQueue.lock)
  mendPriority(s, task)
  if (Atomics.load(i32, task + TaskRecord.state) !== WAKENING) queueIfNowhere(s, task, se)
  else if (i32[task + TaskRecord.wakeReason] !== SLEEP_LOST) finishWakeup(s, task, se)
}

/** Queues a task that is runnable and nowhere. Its pi lock is held: nobody else will. */
function queueIfNowhere(s: Scheduler, task: number, se: number): void {
  const { i32 } = s
  if (Atomics.load(i32, task + TaskRecord.state) !== RUNNING) return
  if (Atomics.load(i32, se + Entity.onRq) !== 0 || Atomics.load(i32, se + Entity.onCpu) !== 0) return
  const queue = lockTaskQueue(s, se)
  const stopped = i32[task + TaskRecord.stopped] !== 0
  release(s.thread, queue + RunQueue.lock)
  if (!stopped) enqueueSelected(s, se)
}

/** Gives back the slots of tasks that the dead CPU had reaped, and had on no list yet, or no more. */
function freeRest(s: Scheduler, dead: number): void {
  const { i32, tasks, entities, rcu } = s
  const listed = rcu.repair(i32, dead)
  for (let task = tasks.after(i32, 0); task !== 0; task = tasks.after(i32, task)) {
    if (!tasks.isPublished(i32, task) || Atomics.load(i32, task + TaskRecord.state) !== UNUSED) continue
    if (!rcu.leftBy(i32, task + TaskRecord.rcu, dead, listed)) continue
    const se = i32[task + TaskRecord.entity]
    const whole = entities.isPublished(i32, se) && i32[se + Entity.task] === task
    // Its entity is gone: the grace period is over. Else it may not have begun.
    if (whole) rcu.callRcu(s.thread, task + TaskRecord.rcu, s.freeTask)
    else tasks.free(i32, task)
  }
}

/** Reaps the tasks that ended on the dead CPU. */
function reapEnded(s: Scheduler, dead: number): void {
  const { i32, tasks } = s
  for (let task = tasks.after(i32, 0); task !== 0; task = tasks.after(i32, task)) {
    if (!tasks.isPublished(i32, task) || Atomics.load(i32, task + TaskRecord.state) !== ZOMBIE) continue
    if (Atomics.load(i32, i32[task + TaskRecord.entity] + Entity.cpu) === dead) reapTask(s, task) // (C) of exit.ts
  }
}

/** Frees the tasks that the dead CPU was making: they were not published. */
function dropUnfinished(s: Scheduler, dead: number): void {
  const { i32, tasks, entities } = s
  for (let task = tasks.after(i32, 0); task !== 0; task = tasks.after(i32, task)) {
    if (!tasks.isUnpublishedBy(i32, task, dead)) continue
    const se = i32[task + TaskRecord.entity]
    if (se !== 0 && entities.isPublished(i32, se) && i32[se + Entity.task] === task) entities.free(i32, se)
  }
  tasks.reclaim(i32, dead)
  entities.reclaim(i32, dead)
}

function queueNowhere(s: Scheduler, dead: number): void {
  const { i32, thread, entities } = s
  for (let se = entities.after(i32, 0); se !== 0; se = entities.after(i32, se)) {
    if (!entities.isPublished(i32, se) || Atomics.load(i32, se + Entity.cpu) !== dead) continue
    if (se === i32[s.queueOf(dead) + RunQueue.idle] || Atomics.load(i32, se + Entity.onRq) !== 0) continue
    acquire(thread, se + Entity.piLock)
    if ((i32[se + Entity.policy] & POLICY_BOUND) === 0) queueIfNowhere(s, i32[se + Entity.task], se)
    release(thread, se + Entity.piLock)
  }
}

/** The dead thread may have died before a notify, or before it asked a CPU to look. */
function nudgeAll(s: Scheduler): void {
  for (let cpu = 0; cpu < s.cpus; cpu++) {
    nudgeCpu(s.i32, cpuRecord(s.machine, cpu))
    if (isOnline(s, cpu)) s.resched(cpu)
  }
  wakeTimekeeper(s.i32, s.machine)
}
