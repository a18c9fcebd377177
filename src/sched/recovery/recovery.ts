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
import { unbindPacked } from '../balance/move.ts'
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
 * A CPU has died, at any instruction. Another thread recovers it, at any time after, while all others run:
 *
 *   1  its own run queue       closed and rebuilt; its current task is off it (rebuild.ts)
 *   2  locks that it held      each is broken, and what it guards rebuilt or, for a pi lock, completed;
 *                              innermost first
 *   3  RCU                     its list is repaired, and what it was about to free is freed; it is offline
 *   4  ended tasks             that it was about to reap are reaped
 *   5  new tasks               that it had not published are freed
 *   6  packed tasks            tasks whose state is in the arena are not bound to it any more (move.ts);
 *      runnable, on no queue   tasks that it had picked and not started are queued; tasks that arrived are
 *                              started
 *   7  its queue               moves to other CPUs
 *   8  lost tasks              tasks that it had started are claimed, and returned (lost.ts)
 *
 * The locks that the dead CPU held show what it was doing. If it held the pi lock of a task, it was waking,
 * stopping, continuing or changing the task:
 *
 *   WAKENING                       it had claimed the task: finishes the wakeup, unless the task is lost
 *   RUNNING, not stopped, nowhere  it had made the task RUNNING, or had cleared STOPPED: queues the task
 *   anything else                  it had not begun, or had finished: nothing to do
 *
 * Recovery also makes each notify that the dead CPU may have owed or received: for the lock that it parked at
 * or released last, every CPU and the timekeeper. A needless notify does no harm.
 *
 * Breaking a lock needs no other lock. So a thread that waits for a lock of a dead CPU can break it alone
 * (rescueLock), wherever it waits. A second death during a recovery is handled in the same way.
 */

/**
 * Returns the tasks that the CPU had started, claimed: the caller ends them (endLost). Called with no lock
 * held.
 */
export function recoverScheduler(s: Scheduler, dead: number): LostTask[] {
  const { thread, rcu } = s
  s.readClock()
  // RCU does not free what this thread reads from here on.
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
  s.tasks.reclaim(s.i32, dead) // 5
  unbindPacked(s, dead) // 6
  queueNowhere(s, dead)
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
 * Called by a thread that waits for the dead thread at this lock of the scheduler: breaks it and repairs what
 * it guards. `lock` 0: it waits for a task to be off the dead CPU. The caller may hold outer locks. False:
 * the lock belongs to another layer.
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
 * The dead CPU takes no more tasks and runs none. Threads that wait for a task to be off it continue. A
 * second call does no harm.
 */
function closeDead(s: Scheduler, dead: number): void {
  const { i32, thread, entities } = s
  const queue = s.queueOf(dead)
  const lock = queue + RunQueue.lock
  if (!breakLock(thread, lock, dead)) acquire(thread, lock)
  i32[queue + RunQueue.online] = 0 // (A) of enqueue.ts
  s.setActive(dead, false)
  const idle = i32[queue + RunQueue.idle]
  if (i32[queue + RunQueue.current] !== idle) i32[queue + RunQueue.wasRunning] = i32[queue + RunQueue.current]
  i32[queue + RunQueue.current] = idle
  i32[queue + RunQueue.contender] = 0
  rebuildRunQueue(s, queue)
  // Under the lock: no other CPU takes a queued entity before its onCpu is 0.
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

/** Always rebuilds the dead CPU's own timers: it may have expired one, and not woken the sleeper. */
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
  // No idle task is ever changed: a thread that held its lock was visiting all tasks.
  if (majorPriority(i32[se + Entity.basePriority]) !== IDLE_MAJOR_PRIORITY) mendTask(s, task, se)
  release(thread, lock)
}

/** Finishes a change of a task that was under way. Its pi lock is held. */
function mendTask(s: Scheduler, task: number, se: number): void {
  const { i32, thread } = s
  const queue = lockTaskQueue(s, se)
  notePushable(s, se)
  release(thread, queue + RunQueue.lock)
  mendPriority(s, task)
  if (Atomics.load(i32, task + TaskRecord.state) !== WAKENING) queueIfNowhere(s, task, se)
  else if (i32[task + TaskRecord.wakeReason] !== SLEEP_LOST) finishWakeup(s, task, se)
}

/** Queues a task that is runnable and nowhere. Its pi lock is held, so no other thread does. */
function queueIfNowhere(s: Scheduler, task: number, se: number): void {
  const { i32 } = s
  if (Atomics.load(i32, task + TaskRecord.state) !== RUNNING) return
  if (Atomics.load(i32, se + Entity.onRq) !== 0 || Atomics.load(i32, se + Entity.onCpu) !== 0) return
  const queue = lockTaskQueue(s, se)
  const stopped = i32[task + TaskRecord.stopped] !== 0
  release(s.thread, queue + RunQueue.lock)
  if (!stopped) enqueueSelected(s, se)
}

/** Frees the slots of tasks that the dead CPU had reaped, and that are on no list of callbacks. */
function freeRest(s: Scheduler, dead: number): void {
  const { i32, tasks, rcu } = s
  const listed = rcu.repair(i32, dead)
  for (let task = tasks.after(i32, 0); task !== 0; task = tasks.after(i32, task)) {
    if (!tasks.isPublished(i32, task) || Atomics.load(i32, task + TaskRecord.state) !== UNUSED) continue
    if (!rcu.leftBy(i32, task + TaskRecord.rcu, dead, listed)) continue
    // Its grace period may be over, or may not have begun: it gets another one.
    rcu.callRcu(s.thread, task + TaskRecord.rcu, s.freeTask)
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

/** The thread may have died before a notify, or before a request to reschedule. */
function nudgeAll(s: Scheduler): void {
  for (let cpu = 0; cpu < s.cpus; cpu++) {
    nudgeCpu(s.i32, cpuRecord(s.machine, cpu))
    if (isOnline(s, cpu)) s.resched(cpu)
  }
  wakeTimekeeper(s.i32, s.machine)
}
