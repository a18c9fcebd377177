import { assert } from '../../arena/assert.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { chargeRun, endWait, publishCpu, publishTask, startWait } from './account.ts'
import {
  publishCount,
  publishQueue,
  rqDropCurrent,
  rqPickNextTask,
  rqPutPrevTask,
  rqSetNextTask,
} from '../classes/classrq.ts'
import { Entity, POLICY_ROUND_ROBIN, POLICY_YIELDED } from './entity.ts'
import { recordSwitch } from './events.ts'
import { endRound, startRound } from '../classes/fifo.ts'
import { rotateFifo } from './rotate.ts'
import { rotateFair } from './rotatefair.ts'
import { ClassRq, classRq, ROTATES_FAIR, ROTATES_FIFO, RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'
import { RUNNING, TaskRecord } from './taskrecord.ts'
import { armTick, tickFired } from './tick.ts'
import { TURN_CHARGED } from './turnlength.ts'

/**
 * The switch: prepare, switch, finish. There is no scheduler thread: the CPU goes from one task to the next,
 * and finishes the switch from the old task when the next one is already current.
 *
 * A task that goes to sleep can be woken before it has left its CPU:
 *
 *   CPU 0: the sleeper, switching out          CPU 1: a waker (wakeup.ts), pi lock held
 *   ---------------------------------          ----------------------------------------
 *   state = INTERRUPTIBLE
 *                                              (A) compare-exchange state -> WAKENING
 *   lock; picks, sets next
 *   (B) finish re-reads state: not RUNNING,
 *       so it is not put back; unlock
 *                                              (C) onRq is 0; waits while onCpu is 1
 *   (E) onCpu = 0, last of all
 *                                              (C) goes on: state = RUNNING, selects a queue
 *                                              (D) onRq = 1: enqueues
 *
 * (B) must be a re-read: an interrupt on CPU 0 (a timer of its own that is due) may have made the sleeper
 * RUNNING again since the pick, and then no waker will queue it. If (E) came before (B), the waker could
 * enqueue a task that finish is about to put back. Finish never takes the pi lock: a waker holds it while it
 * waits at (C), for (E).
 *
 * A task that was not put back at (B) cannot become RUNNING, or lose its stopped flag, before (E): a waker
 * that has claimed it and a continue both wait for onCpu first. So finish need not check the state again, and
 * exactly one of finish and a waker enqueues.
 *
 * While the old task stays RUNNING, no thread reads its onRq and onCpu without the run queue's lock (a waker
 * claims the state first, and fails). So they are plain words inside the lock, and a yield costs no atomic
 * access for them.
 */

/** Why a task gave up its CPU: it was preempted. */
export const SWITCH_PREEMPTED = 0
/** It goes to sleep, unless it has been woken since. */
export const SWITCH_SLEEPS = 1
/** It yields to tasks of its own priority. */
export const SWITCH_YIELDS = 2
/** It is a ZOMBIE. */
export const SWITCH_EXITS = 3

/**
 * Switches this CPU from its current entity to the best one, and returns that: the same entity when it should
 * keep the CPU. Called by the CPU itself, with no lock held.
 */
export function schedule(s: Scheduler, why: number): number {
  const { i32, thread, queue } = s
  acquire(thread, queue + RunQueue.lock)
  const prev = i32[queue + RunQueue.current]
  if (why === SWITCH_YIELDS && !s.ticks && s.turn !== TURN_CHARGED) {
    const equal = yieldToEqual(s, prev)
    if (equal !== 0) return equal
  }
  const contends = prev !== i32[queue + RunQueue.idle] && wantsCpu(s, i32[prev + Entity.task], why)
  i32[queue + RunQueue.contender] = contends && !s.ext.leaves ? prev : 0
  if (contends && (why === SWITCH_YIELDS || s.ticks)) {
    const rq = i32[prev + Entity.rq]
    const schedClass = s.classes[i32[rq + ClassRq.classId]]
    if (s.ticks) schedClass.taskTick(s, rq, prev)
    if (why === SWITCH_YIELDS) schedClass.yieldTask(s, rq, prev)
  }
  if (s.ticks) {
    s.ticks = false
    tickFired(s, queue)
  }
  const next = rqPickNextTask(s, queue)
  if (next === prev) {
    i32[prev + Entity.policy] &= ~POLICY_YIELDED
    armTick(s, queue)
    release(thread, queue + RunQueue.lock)
    return prev
  }
  contextSwitchPrepare(s, prev, next, why)
  i32[queue + RunQueue.current] = next
  i32[queue + RunQueue.contender] = next === i32[queue + RunQueue.idle] ? 0 : next
  contextSwitchFinish(s, prev, next, why)
  return next
}

/**
 * A yield from one task to the next of the same list: a FIFO sub-queue (rotate.ts), or the list of the fair
 * class (rotatefair.ts). The run queue is locked; this releases it, unless it returns 0: then the caller
 * takes the slow path.
 */
export function yieldToEqual(s: Scheduler, prev: number): number {
  const { i32, f64, thread, queue } = s
  const task = i32[prev + Entity.task]
  if (i32[task + TaskRecord.stopped] !== 0 || i32[task + TaskRecord.state] !== RUNNING) return 0
  const rotates = i32[i32[prev + Entity.rq] + ClassRq.rotates]
  let next = 0
  if (rotates === ROTATES_FIFO) next = rotateFifo(s, queue, prev)
  else if (rotates === ROTATES_FAIR) next = rotateFair(s, queue, prev)
  if (next === 0) return 0
  i32[next + Entity.onCpu] = 1
  i32[next + Entity.onRq] = 0
  i32[queue + RunQueue.contender] = next
  const { clock } = s
  // Charged or not, it waits from `clock` on, and execStart says so.
  if (clock > f64[(prev + Entity.execStart) >> 1]) chargeTurn(s, prev)
  endWait(s, next)
  i32[next + Entity.turns]++
  i32[queue + RunQueue.turns]++
  if (rotates === ROTATES_FAIR) {
    // Its request is a whole slice.
    const armed = f64[(queue + RunQueue.tickAt) >> 1]
    if (armed === 0 || armed > clock + s.slice || armed > s.nextTimer || armed > s.turnAt) armTick(s, queue)
  } else {
    if ((i32[prev + Entity.policy] & POLICY_ROUND_ROBIN) !== 0) endRound(s, prev)
    if (s.nextTimer !== Infinity || (i32[next + Entity.policy] & POLICY_ROUND_ROBIN) !== 0) {
      startRound(s, next)
      armTick(s, queue)
    }
  }
  if (i32[s.recording] !== 0) recordSwitch(s, prev, next, SWITCH_YIELDS, s.clock)
  i32[prev + Entity.onRq] = 1
  i32[prev + Entity.onCpu] = 0 // (E)
  release(thread, queue + RunQueue.lock)
  s.rcu.quiescentOften(thread)
  return next
}

function chargeTurn(s: Scheduler, se: number): void {
  chargeRun(s, se)
  publishTask(s, se)
  publishCpu(s, s.queue, false)
}

/** Switches this CPU to its idle entity, even if tasks are queued: it is about to go offline. */
export function switchToIdle(s: Scheduler, why: number): void {
  const { i32, thread, queue } = s
  s.readClock()
  acquire(thread, queue + RunQueue.lock)
  const prev = i32[queue + RunQueue.current]
  const idle = i32[queue + RunQueue.idle]
  i32[queue + RunQueue.contender] = 0
  i32[queue + RunQueue.current] = idle
  if (prev === idle) release(thread, queue + RunQueue.lock)
  else contextSwitchFinish(s, prev, idle, why)
}

/** Whether the current task would keep the CPU if no better task were queued. The run queue is locked. */
function wantsCpu(s: Scheduler, task: number, why: number): boolean {
  const { i32 } = s
  if (i32[task + TaskRecord.stopped] !== 0) return false
  // A task that did not go to sleep is RUNNING or a ZOMBIE, and no other thread can change that. A sleeper
  // may be claimed.
  if (why !== SWITCH_SLEEPS) return i32[task + TaskRecord.state] === RUNNING
  return Atomics.load(i32, task + TaskRecord.state) === RUNNING
}

/** The next entity leaves its queue for the CPU. The run queue is locked, and stays so. */
export function contextSwitchPrepare(s: Scheduler, prev: number, next: number, why: number): void {
  const { i32, queue } = s
  if (next !== i32[queue + RunQueue.idle]) {
    const rq = i32[next + Entity.rq]
    assert(i32[next + Entity.onCpu] === 0, 'picked an entity that is on a CPU')
    rqSetNextTask(s, rq, next)
    i32[next + Entity.onCpu] = 1
    i32[next + Entity.onRq] = 0
    endWait(s, next)
    i32[next + Entity.turns]++
  }
  if (why === SWITCH_EXITS) {
    const rq = i32[prev + Entity.rq]
    s.classes[i32[rq + ClassRq.classId]].taskDead(s, rq, prev)
  }
}

/**
 * Puts the old entity back on the queue, or leaves it off. Releases the run queue's lock; clears onCpu last.
 */
export function contextSwitchFinish(s: Scheduler, prev: number, next: number, why: number): void {
  const { i32, thread, queue } = s
  const idle = i32[queue + RunQueue.idle]
  let left = false
  if (i32[s.recording] !== 0) recordSwitch(s, prev, next, why, s.now())
  if (prev !== idle) {
    if (wantsCpu(s, i32[prev + Entity.task], why)) {
      putBack(s, prev, why) // (B) RUNNING
    } else {
      leaveQueue(s, prev, why) // (B) asleep, claimed, stopped or dead
      left = true
    }
  }
  i32[queue + RunQueue.turns]++
  publishCpu(s, queue, next === idle)
  publishQueue(s, queue)
  if (next !== idle) publishCount(s, i32[next + Entity.rq], next)
  armTick(s, queue)
  release(thread, queue + RunQueue.lock)
  if (left) finishLeaving(s, prev)
  s.rcu.quiescent(thread)
}

function putBack(s: Scheduler, prev: number, why: number): void {
  const { i32 } = s
  // Its priority may have changed while it ran: `rq` follows it.
  const rq = classRq(s.queue, i32[prev + Entity.priority] >> 2)
  rqPutPrevTask(s, rq, prev)
  chargeRun(s, prev)
  startWait(s, prev)
  if (why === SWITCH_PREEMPTED) {
    i32[prev + Entity.preempted]++
    i32[s.queue + RunQueue.preempted]++
  }
  publishCount(s, rq, prev)
  publishTask(s, prev)
  i32[prev + Entity.onRq] = 1
  i32[prev + Entity.onCpu] = 0 // (E)
}

function leaveQueue(s: Scheduler, prev: number, why: number): void {
  const { i32 } = s
  const rq = i32[prev + Entity.rq]
  if (why !== SWITCH_EXITS) rqDropCurrent(s, rq, prev)
  chargeRun(s, prev)
  if (why !== SWITCH_EXITS) publishTask(s, prev)
}

/**
 * The old entity was not put back. From (E) on it belongs to the thread that wakes, continues or reaps it.
 */
function finishLeaving({ i32 }: Scheduler, prev: number): void {
  assert(i32[prev + Entity.onCpu] === 1, 'only the CPU that ran a task clears its onCpu')
  Atomics.store(i32, prev + Entity.onCpu, 0) // (E)
  if (Atomics.load(i32, prev + Entity.awaited) !== 0) Atomics.notify(i32, prev + Entity.onCpu) // (H) of wakeup.ts
}
