import type { ArenaPlan, Region } from '../../arena/memory/arena.ts'
import { assert } from '../../arena/assert.ts'
import { LINE_WORDS } from '../../arena/memory/record.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { maskHas } from './cpumask.ts'
import { Entity, POLICY_ARRIVED } from './entity.ts'
import { recordSpawn } from './events.ts'
import { ExtRecord } from '../ext/extlayout.ts'
import { startTask } from './fork.ts'
import { FAIR_MAJOR_PRIORITY } from './priority.ts'
import { RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'
import { isIdle } from './selectcpu.ts'
import { isSleeping, TaskRecord, WAKE_ANY, SLEEP_WOKEN } from './taskrecord.ts'
import { schedulerWakeup } from './wakeup.ts'

/**
 * Arrivals: new tasks on their way to a CPU. Each CPU has a list of them. The spawner pushes to it without a
 * lock; the CPU takes the whole list at its next switch, and starts its tasks on its own queue. So thousands
 * of spawns do not compete with the CPU for the lock of its run queue. Another CPU that runs out of work
 * takes the list too, because its owner may be stuck.
 *
 * A task that has arrived is asleep, like any new task, and its start is its first wakeup. So it can be
 * killed, stopped, changed and moved as usual: a stopped task is started and not queued, and a task with a
 * new mask goes where the mask allows.
 *
 *   spawner                                    CPU that takes the list
 *   -------                                    -----------------------
 *   (A) head = task                            (C) clears the bit
 *   (B) the list was empty: sets the bit,      (D) head = 0: all of the list is its own
 *       kicks the CPU
 *
 * While the list is not empty, the bit is set, or (B) or (D) is still to come: so some CPU takes the list.
 * (B) after (D) leaves a bit without a list: one needless check.
 *
 *   spawner                                    CPU that goes offline
 *   -------                                    ---------------------
 *   (A) head = task                            (E) is no longer active
 *   (F) the CPU is active? no: takes           (G) takes the list, and starts it elsewhere
 *
 * A CPU that dies after (D) leaves tasks that are ARRIVED, asleep, and were never woken. The recovering
 * thread takes all lists and starts every such task, also those that a living CPU is about to start: the pi
 * lock and `woken` let one of the two do it. That CPU may find a task that has ended; its record stays until
 * the CPU is quiescent, and the link has no other use.
 *
 * Only ordinary tasks arrive: fair, allowed on every CPU, of no policy. All others are put on a queue
 * directly.
 */
export interface ArrivalsPlan extends Region {
  readonly cpus: number
}

/** Ends a list. A head of 0 is an empty list. */
const LAST = -1

/**
 * The most pushes to one CPU in a row: one while its list is empty, then half as many as it has not taken
 * yet.
 */
const RUN_MOST = 32

export function reserveArrivals(plan: ArenaPlan, cpus: number): ArrivalsPlan {
  return { ...plan.reserve('arrivals', (1 + cpus) * LINE_WORDS), cpus }
}

/** The lists, as one thread sees them. */
export class Arrivals {
  private readonly i32: Int32Array
  private readonly start: number
  private readonly cpus: number
  /** The CPU that this thread pushed to last, and how many more pushes go there. */
  private target = 0
  private left = 0
  /** How many tasks this thread has pushed to each CPU since its list was last seen empty. */
  private readonly pushed: Int32Array

  constructor(i32: Int32Array, plan: ArrivalsPlan) {
    this.i32 = i32
    this.start = plan.start
    this.cpus = plan.cpus
    this.pushed = new Int32Array(plan.cpus)
  }

  /** Whether a CPU should take its list: a plain read, of a hint, at each switch. */
  has(cpu: number): boolean {
    return ((this.i32[this.start + (cpu >> 5)] >>> (cpu & 31)) & 1) !== 0
  }

  /** A CPU with a list, other than this one; -1: none. Plain reads, as above. */
  elsewhere(cpu: number): number {
    if ((this.i32[this.start] | this.i32[this.start + 1]) === 0) return -1
    for (let other = 0; other < this.cpus; other++) if (other !== cpu && this.has(other)) return other
    return -1
  }

  /** (A) True: the list was empty. */
  push(cpu: number, task: number): boolean {
    const { i32 } = this
    const at = this.headOf(cpu)
    let first = Atomics.load(i32, at)
    for (;;) {
      i32[task + TaskRecord.arrivedNext] = first === 0 ? LAST : first
      const seen = Atomics.compareExchange(i32, at, first, task) // (A)
      if (seen === first) return first === 0
      first = seen
    }
  }

  /** (B) */
  mark(cpu: number): void {
    Atomics.or(this.i32, this.start + (cpu >> 5), 1 << (cpu & 31))
  }

  /** (C), (D) The task that arrived first; the links lead on, up to LAST. */
  take(cpu: number): number {
    const { i32 } = this
    Atomics.and(i32, this.start + (cpu >> 5), ~(1 << (cpu & 31))) // (C)
    let newest = Atomics.exchange(i32, this.headOf(cpu), 0) // (D)
    let oldest = LAST
    while (newest > 0) {
      const next = i32[newest + TaskRecord.arrivedNext]
      i32[newest + TaskRecord.arrivedNext] = oldest
      oldest = newest
      newest = next
    }
    return oldest
  }

  /**
   * Where the next task goes: to the CPU with the lowest load; in a long run of spawns several in a row, so
   * that not every spawn reads the load of all CPUs. -1: no CPU is active.
   */
  choose(s: Scheduler): number {
    const { pushed } = this
    if (this.left > 0 && this.isMarked(this.target)) {
      this.left--
      pushed[this.target]++
      return this.target
    }
    const low = s.activeHalf(0)
    const high = s.activeHalf(1)
    let best = -1
    let least = Infinity
    for (let turn = 0; turn < this.cpus; turn++) {
      const cpu = (this.target + turn) % this.cpus
      if (!maskHas(low, high, cpu)) continue
      if (!this.isMarked(cpu)) pushed[cpu] = 0
      const load = Atomics.load(this.i32, s.queueOf(cpu) + RunQueue.load) + pushed[cpu]
      if (load < least) {
        best = cpu
        least = load
      }
    }
    if (best < 0) return -1
    this.target = best
    this.left = Math.min(RUN_MOST, pushed[best] >> 1)
    pushed[best]++
    return best
  }

  private isMarked(cpu: number): boolean {
    return ((Atomics.load(this.i32, this.start + (cpu >> 5)) >>> (cpu & 31)) & 1) !== 0
  }

  private headOf(cpu: number): number {
    assert(cpu >= 0 && cpu < this.cpus, 'each CPU has a list of arrivals')
    return this.start + (1 + cpu) * LINE_WORDS
  }
}

/**
 * Starts a new task, as startTask does: through a CPU's arrivals where possible. Called by a thread that is
 * no CPU, and that recovers CPUs that die.
 */
export function startByArrival(s: Scheduler, task: number): void {
  const { i32, arrivals } = s
  const se = i32[task + TaskRecord.entity]
  const cpu = mayArrive(s, se) ? arrivals.choose(s) : -1
  if (cpu < 0) {
    startTask(s, task)
    return
  }
  const level = i32[se + Entity.priority] >> 2
  s.classes[level].taskFork(s, 0, se)
  i32[se + Entity.cpu] = cpu
  i32[se + Entity.policy] |= POLICY_ARRIVED
  if (i32[s.recording] !== 0) recordSpawn(s, task, se)
  if (arrivals.push(cpu, task)) {
    arrivals.mark(cpu) // (B)
    s.resched(cpu)
  }
  if (!s.isActive(cpu)) takeArrivals(s, cpu) // (F)
}

/** Starts all tasks that arrived for a CPU: on this CPU's queue if it is one, and online. No lock is held. */
export function takeArrivals(s: Scheduler, cpu: number): void {
  const { i32, queue } = s
  let task = s.arrivals.take(cpu)
  if (task === LAST) return
  const here = queue !== 0 && i32[queue + RunQueue.online] !== 0 ? queue : 0
  if (!s.turnsAreShort) s.readClock()
  while (task !== LAST) {
    const next = i32[task + TaskRecord.arrivedNext]
    startArrived(s, task, here)
    task = next
  }
  if (here !== 0 && Atomics.load(i32, queue + RunQueue.load) > 1) kickIdle(s)
}

/** More tasks arrived than this CPU runs now: kicks an idle CPU, which may steal some. */
function kickIdle(s: Scheduler): void {
  for (let cpu = 0; cpu < s.cpus; cpu++) {
    if (cpu !== s.cpu && s.isActive(cpu) && isIdle(s, cpu)) {
      s.kick(cpu)
      return
    }
  }
}

/**
 * Recovery: starts the tasks that a dead CPU had taken, and all that arrived and were never started. Called
 * by the thread that pushes.
 */
export function startAllArrived(s: Scheduler): void {
  const { i32, tasks, arrivals } = s
  for (let cpu = 0; cpu < s.cpus; cpu++) arrivals.take(cpu)
  for (let task = tasks.after(i32, 0); task !== 0; task = tasks.after(i32, task)) {
    if (tasks.isPublished(i32, task) && isSleeping(Atomics.load(i32, task + TaskRecord.state)))
      startArrived(s, task, 0)
  }
}

/**
 * The first wakeup of a task that has arrived; done once, also if two threads try. `here`: the queue that it
 * goes to, if it may; 0: any.
 */
function startArrived(s: Scheduler, task: number, here: number): void {
  const { i32, thread } = s
  const se = i32[task + TaskRecord.entity]
  s.holdKicks()
  acquire(thread, se + Entity.piLock)
  if ((i32[se + Entity.policy] & POLICY_ARRIVED) !== 0 && i32[se + Entity.woken] === 0) {
    schedulerWakeup(s, task, WAKE_ANY, SLEEP_WOKEN, here)
  }
  release(thread, se + Entity.piLock)
  s.sendKicks()
}

function mayArrive(s: Scheduler, se: number): boolean {
  const { i32 } = s
  return (
    s.cpu < 0 &&
    i32[se + Entity.priority] >> 2 === FAIR_MAJOR_PRIORITY &&
    (i32[se + Entity.affinityMask] & i32[se + Entity.affinityMask + 1]) === -1 &&
    Atomics.load(i32, s.ext.record + ExtRecord.takes) === 0
  )
}
